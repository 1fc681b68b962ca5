//! Finds the kernels of a source without looking at what else it holds.
//!
//! Programs carry their kernels after up to 165 KB of headers, full of C++ templates. What is
//! used of those is known by name, so that the headers are only skipped: comments, strings and
//! preprocessor lines are passed over, and `kernel void NAME(` starts a kernel.

use super::types::Type;

/// Where a kernel stands in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site<'a> {
    pub name: &'a str,
    /// Byte offset of the line that `kernel` is on.
    pub line_start: usize,
    /// Byte offset of the `(` before the parameters.
    pub parameters: usize,
    /// The argument of `[[max_total_threads_per_threadgroup(n)]]`.
    pub max_threads: Option<u32>,
}

/// Where a function outside of all namespaces may be defined: it takes what precedes its name for
/// a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HelperSite<'a> {
    pub name: &'a str,
    /// Byte offset of its type.
    pub start: usize,
}

/// What a source holds, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sites<'a> {
    pub kernels: Vec<Site<'a>>,
    /// What may be functions of its own.
    pub helpers: Vec<HelperSite<'a>>,
    /// Where what may be constants of its own starts, as byte offsets.
    pub constants: Vec<usize>,
}

pub(super) fn sites(source: &str) -> Sites<'_> {
    let mut sites = Sites::default();
    let mut words = Words { source, at: 0, line_has_code: false, depth: 0 };
    let mut previous = ("", 0);
    let mut max_threads = None;
    while let Some((word, start)) = words.next() {
        let (before, before_start) = std::mem::replace(&mut previous, (word, start));
        if words.depth == 0
            && Type::from_name(before).is_some()
            && source[words.at..].trim_start().starts_with('(')
        {
            sites.helpers.push(HelperSite { name: word, start: before_start });
        }
        if words.depth == 0 && word == "constant" && before != "constexpr" {
            // `constant T NAME = ...;`: nothing else comes before the `=`.
            let rest = &source[words.at..];
            let sign = rest.find(['=', ',', '(', ')', '{', '}', ';', '*', '&', '[', '"', '#', '/']);
            if sign.is_some_and(|sign| rest[sign..].starts_with('=')) {
                sites.constants.push(start);
            }
        }
        match word {
            "max_total_threads_per_threadgroup" => {
                max_threads = number_in_parentheses(&source[words.at..]);
            }
            "kernel" => {
                let Some(site) = site(source, start, words.at, max_threads) else {
                    continue;
                };
                max_threads = None;
                words.at = site.parameters;
                sites.kernels.push(site);
            }
            "namespace" | "struct" | "template" => max_threads = None,
            _ => {}
        }
    }
    sites
}

fn site(source: &str, start: usize, after: usize, max_threads: Option<u32>) -> Option<Site<'_>> {
    let rest = &source[after..];
    // `[[kernel]] void NAME(` is the other spelling.
    let trimmed = rest.trim_start();
    let trimmed = trimmed.strip_prefix("]]").map_or(trimmed, str::trim_start);
    let trimmed = trimmed.strip_prefix("void")?;
    if !trimmed.starts_with(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let trimmed = trimmed.trim_start();
    let length = trimmed.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let name = &trimmed[..length];
    let tail = trimmed[length..].trim_start();
    if name.is_empty() || !tail.starts_with('(') {
        return None;
    }
    let parameters = source.len() - tail.len();
    let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
    Some(Site { name, line_start, parameters, max_threads })
}

fn number_in_parentheses(text: &str) -> Option<u32> {
    let inside = text.trim_start().strip_prefix('(')?;
    inside.get(..inside.find(')')?)?.trim().parse().ok()
}

/// The words of a source outside comments, strings and preprocessor lines.
struct Words<'a> {
    source: &'a str,
    at: usize,
    line_has_code: bool,
    /// Braces that are open.
    depth: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<(&'a str, usize)> {
        let bytes = self.source.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            let next = bytes.get(self.at + 1).copied();
            match byte {
                b'\n' => {
                    self.line_has_code = false;
                    self.at += 1;
                }
                b'/' if next == Some(b'/') => self.at = self.find(self.at, "\n"),
                b'/' if next == Some(b'*') => {
                    self.at = self.find(self.at + 2, "*/").saturating_add(2).min(bytes.len());
                }
                b'#' if !self.line_has_code => self.skip_directive(),
                b'"' => self.skip_string(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    self.line_has_code = true;
                    let start = self.at;
                    self.at = self.past_word(start);
                    return self.source.get(start..self.at).map(|word| (word, start));
                }
                b'0'..=b'9' => self.at = self.past_word(self.at),
                _ => {
                    match byte {
                        b'{' => self.depth += 1,
                        b'}' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    self.line_has_code |= !byte.is_ascii_whitespace();
                    self.at += 1;
                }
            }
        }
        None
    }

    fn past_word(&self, start: usize) -> usize {
        let rest = self.source.as_bytes().get(start..).unwrap_or_default();
        start + rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
    }

    fn find(&self, from: usize, what: &str) -> usize {
        let found = self.source.get(from..).and_then(|rest| rest.find(what));
        found.map_or(self.source.len(), |found| from + found)
    }

    /// Past a directive and the lines that a backslash joins to it.
    fn skip_directive(&mut self) {
        loop {
            let end = self.find(self.at, "\n");
            let line = self.source.get(self.at..end).unwrap_or_default();
            self.at = end;
            if end >= self.source.len() || !line.trim_end().ends_with('\\') {
                return;
            }
            self.at = end + 1;
        }
    }

    fn skip_string(&mut self) {
        let bytes = self.source.as_bytes();
        self.at += 1;
        while let Some(&byte) = bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' || byte == b'\n' {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kernels_after_a_prelude() {
        let source = "#define K kernel void no(\\\n kernel void no2(\n// kernel void no3(\n\
            /* kernel void no4( */ const char* s = \"kernel void no5(\";\n\
            template <typename T> T kernel_of(T kernel);\n\
            [[max_total_threads_per_threadgroup(12)]]\n  kernel void yes (device float* a) {}\n\
            [[kernel]] void also(device float* a) {}\n";
        let sites = sites(source).kernels;
        let found: Vec<_> = sites.iter().map(|site| (site.name, site.max_threads)).collect();
        assert_eq!(found, [("yes", Some(12)), ("also", None)]);
        assert!(sites.iter().all(|site| source[site.parameters..].starts_with('(')));
    }

    #[test]
    fn survives_open_ends() {
        for source in ["\"abc\\", "/* x", "# \\", "kernel void", "kernel void a", "", "kernel"] {
            assert_eq!(sites(source), Sites::default());
        }
    }
}
