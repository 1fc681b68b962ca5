//! The fuzz targets' short forms: random arguments, random layouts, Metal sources and `.npy`
//! files in which something was cut out, doubled or replaced. `SOAK_CASES` sets how many of
//! each. `found` holds a folder a target with inputs that once failed, or were slow.

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
fn npy() {
    let heads = [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '>i2', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '|b1', 'fortran_order': True, 'shape': (), }",
        "{\"shape\": (0, 4), \"fortran_order\": False, \"descr\": \"f8\"}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (9223372036854775807, 3), }",
    ];
    let pieces = ["{", "}", "(", ")", "'", "\"", ",", ":", "-", "9", "0", "\\", "é", "True", " "];
    let edit = (any::<prop::sample::Index>(), 0..pieces.len(), 0usize..8);
    let edits = proptest::collection::vec(edit, 0..4);
    let parts = (0..heads.len(), edits, -8i64..8, 0u8..5, bytes());
    run(parts, |(head, edits, longer, version, data)| {
        let mut text: Vec<char> = heads[head].chars().collect();
        for (at, piece, cut) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + cut).min(text.len());
            text.splice(start..end, pieces[piece].chars());
        }
        let head: String = text.into_iter().collect();
        let length = (head.len() as i64 + longer).max(0) as u32;
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((length as u16).to_le_bytes()),
            _ => file.extend(length.to_le_bytes()),
        }
        file.extend(head.as_bytes());
        file.extend(data);
        bodies::npy(&file);
    });
    run(bytes(), |bytes| bodies::npy(&bytes));
}

#[test]
fn found() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile_text/found");
    let mut count = 0;
    for target in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        for path in std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path()) {
            println!("{}", path.display());
            let bytes = std::fs::read(&path).unwrap();
            match target.file_name().and_then(|name| name.to_str()) {
                Some("c_arguments") => bodies::c_arguments(&bytes),
                Some("planner") => bodies::planner(&bytes),
                Some("npy") => bodies::npy(&bytes),
                Some("metal") => bodies::metal(&String::from_utf8(bytes).unwrap()),
                other => panic!("{other:?} is no target"),
            }
            count += 1;
        }
    }
    assert!(count > 0);
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
