//! The fuzz targets' short forms: random arguments, random layouts, and Metal sources in
//! which something was cut out, doubled or replaced. `SOAK_CASES` sets how many of each.

mod bodies;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn cases() -> u32 {
    std::env::var("SOAK_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn run<S: Strategy>(strategy: S, body: impl Fn(S::Value)) {
    // Not written to files: what fails becomes a test of its own.
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&strategy, |value| {
        body(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

#[test]
fn c_arguments() {
    run(bytes(), |bytes| bodies::c_arguments(&bytes));
}

#[test]
fn planner() {
    run(bytes(), |bytes| bodies::planner(&bytes));
}

#[test]
fn metal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/msl");
    let mut sources: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "metal"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    sources.sort();
    let pieces = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "*",
        "&",
        "<",
        ">",
        "0",
        "-1",
        "4294967296",
        "99999999999999999999",
        "1e999",
        "float",
        "half2",
        "device",
        "constant",
        "kernel",
        "void",
        "for",
        "if",
        "return",
        "::",
        ".",
        "->",
        "?",
        ":",
        "+=",
        "<<",
        "/*",
        "\"",
        "#define",
        "é",
        "\0",
        "out",
        "i",
    ];
    let edit = (any::<prop::sample::Index>(), 0usize..40, 0usize..3, 0..pieces.len());
    let edits = proptest::collection::vec(edit, 1..5);
    run((0..sources.len(), edits), |(source, edits)| {
        let mut text: Vec<char> = sources[source].chars().collect();
        for (at, length, kind, piece) in edits {
            if text.is_empty() {
                break;
            }
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            let replacement: Vec<char> = match kind {
                0 => Vec::new(),
                1 => text[start..end].iter().chain(&text[start..end]).copied().collect(),
                _ => pieces[piece].chars().collect(),
            };
            let end = if kind == 2 { start + length.min(3).min(end - start) } else { end };
            text.splice(start..end, replacement);
        }
        bodies::metal(&text.into_iter().collect::<String>());
    });
}

/// Depth, length and repetition that a recursive parser may not survive.
#[test]
fn metal_of_any_depth() {
    let wrap = |body: &str| format!("kernel void f(device int* out [[buffer(0)]]) {{ {body} }}");
    for count in [100, 10_000, 200_000] {
        let nested = format!("out[0] = {}1{};", "(".repeat(count), ")".repeat(count));
        bodies::metal(&wrap(&nested));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "-".repeat(count))));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "!".repeat(count))));
        bodies::metal(&wrap(&format!("{}{}", "{".repeat(count), "}".repeat(count))));
        bodies::metal(&wrap(&format!("{}out[0] = 1;", "if (1) ".repeat(count))));
        bodies::metal(&wrap(&format!("{}out[0] = 1;", "for (;;) ".repeat(count))));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "1 ? 1 : ".repeat(count))));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "1 + ".repeat(count))));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "a = ".repeat(count))));
        bodies::metal(&wrap(&format!("out{};", "[0]".repeat(count))));
        bodies::metal(&wrap(&format!("out[0] = {}1;", "(int)".repeat(count))));
        bodies::metal(&wrap(&format!(
            "out[0] = {}1{};",
            "min(1, ".repeat(count),
            ")".repeat(count)
        )));
    }
}
