//! The figures as a bar chart in SVG.

use super::Figures;
use std::fmt::Write;

const ROW: usize = 22;
const LABELS: usize = 300;
const BARS: f64 = 460.0;

/// One bar a case against the contiguous copy, which is the line.
pub fn draw(adapter: &str, all: &[Figures]) -> String {
    let limit = all.first().map_or(1.0, Figures::rate);
    let most = all.iter().map(Figures::rate).fold(limit, f64::max);
    let height = ROW * (all.len() + 3);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{height}" font-family="sans-serif" font-size="12">"#
    );
    let _ = writeln!(svg, r#"<rect width="100%" height="100%" fill="white"/>"#);
    let _ = writeln!(
        svg,
        r#"<text x="10" y="16" font-size="14">{} - GB/s read plus written</text>"#,
        escape(adapter)
    );
    for (i, figures) in all.iter().enumerate() {
        let y = ROW * (i + 1) + 8;
        let width = BARS * figures.rate() / most;
        let _ = writeln!(
            svg,
            r##"<text x="{}" y="{}" text-anchor="end">{}</text><rect x="{LABELS}" y="{y}" width="{width:.1}" height="16" fill="#3b6ea5"/><text x="{:.1}" y="{}">{:.0}</text>"##,
            LABELS - 8,
            y + 13,
            escape(figures.name),
            LABELS as f64 + width + 6.0,
            y + 13,
            figures.rate()
        );
    }
    let x = LABELS as f64 + BARS * limit / most;
    let _ = writeln!(
        svg,
        r##"<line x1="{x:.1}" y1="{ROW}" x2="{x:.1}" y2="{}" stroke="#b03030" stroke-dasharray="4 3"/><text x="{x:.1}" y="{}" text-anchor="middle">contiguous compute copy</text>"##,
        ROW * (all.len() + 1) + 12,
        ROW * (all.len() + 2) + 6
    );
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
