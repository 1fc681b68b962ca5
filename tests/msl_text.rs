//! Bad text: errors that name what is wrong and where, and never a panic.

mod msl_common;

use aoti_wgpu::msl::{Access, Error, Layout, Library, ParamKind, Scalar};
use proptest::prelude::*;

const FIXTURES: [&str; 11] = [
    include_str!("fixtures/msl/add.metal"),
    include_str!("fixtures/msl/atomics.metal"),
    include_str!("fixtures/msl/control.metal"),
    include_str!("fixtures/msl/early_return.metal"),
    include_str!("fixtures/msl/functions.metal"),
    include_str!("fixtures/msl/helpers.metal"),
    include_str!("fixtures/msl/multistage.metal"),
    include_str!("fixtures/msl/narrow_stores.metal"),
    include_str!("fixtures/msl/reductions.metal"),
    include_str!("fixtures/msl/slice_update.metal"),
    include_str!("fixtures/msl/vectors.metal"),
];

/// A kernel around a body.
fn kernel(body: &str) -> String {
    format!(
        "#include <metal_stdlib>\nkernel void k(device float* out, constant half* in, constant long& n,\n\
         uint i [[thread_position_in_grid]]) {{\n{body}\n}}\n"
    )
}

fn error_of(body: &str) -> String {
    let source = kernel(body);
    let result = Library::parse(&source).and_then(|library| {
        let kernel = library.kernel("k").unwrap();
        msl_common::lower(kernel).map(|_| ())
    });
    result.err().unwrap_or_else(|| panic!("accepted: {body}")).to_string()
}

#[test]
fn errors_name_construct_line_kernel_and_quote() {
    let cases = [
        ("out[i] = metal::gamma_of(in[i]);", "function `metal::gamma_of`"),
        ("switch (i) {}", "`switch`"),
        ("auto f = [](float a) { return a; };", "a lambda"),
        ("double x = 1;", "expected"),
        ("out[i] = 1.0 % 2.0;", "this operator on float and float"),
        ("int a[3][3];", "an array of arrays"),
        ("out[i] = unknown;", "the name `unknown`"),
        (
            "if (i < 3) { threadgroup_barrier(metal::mem_flags::mem_threadgroup); }",
            "a barrier below a condition",
        ),
        ("in[i] = 1;", "a write to constant memory"),
        ("out[0.5] = 1;", "an index of type float"),
        ("out = 3;", "an assignment to `out`"),
        ("in[i] = ;", "expected an expression, found `;`"),
        ("out[i] = 3 +;", "expected an expression"),
        ("out[i] = $;", "unexpected character '$'"),
        ("#define A 1", "a preprocessor directive"),
        ("float2 v = float2(1, 2); out[i] = v.z;", "`.z` of float2"),
        ("out[i] = as_type<long>(1.0f).x;", "the bits of float as long"),
        ("return 3;", "returns a value"),
        ("threadgroup float a[10] = 3;", "with a value"),
    ];
    for (body, construct) in cases {
        let message = error_of(body);
        let line = body.lines().next().unwrap();
        for part in [construct, "kernel `k`", "line 4", line] {
            assert!(message.contains(part), "{body}: no {part:?} in: {message}");
        }
    }
}

#[test]
fn errors_in_functions_name_them() {
    let with = |function: &str| {
        let source = format!("{function}\n{}", kernel("out[i] = f(i);"));
        let library = Library::parse(&source).unwrap();
        msl_common::lower(library.kernel("k").unwrap()).map(|_| ()).unwrap_err().to_string()
    };
    for (function, part) in [
        ("float f(float x) { return f(x - 1); }", "in `f`, in `f`, recursion"),
        ("float f(float x) { return y; }", "in `f`, the name `y`"),
        ("float f(float x) { return; }", "in `f`, a function that returns nothing"),
        ("float f(float x) { return 1; }\nfloat f(int x) { return 2; }", "there are several"),
        ("float f(float x, float y) { return 1; }", "`f` with 1 arguments"),
        ("float f(device float* x) { return 1; }", "function `f`"),
        ("float2 f(float x) { return x; }", "returns a vector"),
    ] {
        let message = with(function);
        for part in [part, "kernel `k`", "out[i] = f(i);"] {
            assert!(message.contains(part), "{function}: no {part:?} in: {message}");
        }
    }
}

#[test]
fn a_long_is_refused_without_the_feature() {
    let source = kernel("long m = i;\nout[i] = m;");
    let library = Library::parse(&source).unwrap();
    let layout =
        Layout { slots: &[0, 1], group: [64, 1, 1], max_immediate_bytes: 128, int64: false };
    let error = library.kernel("k").unwrap().lower(&layout).unwrap_err();
    assert!(matches!(error, Error::Int64 { line: 4, .. }), "{error}");
    assert!(error.to_string().contains("SHADER_INT64"));
    // An integer argument that is not used asks for nothing.
    let library = Library::parse(&kernel("out[i] = in[i];")).unwrap();
    library.kernel("k").unwrap().lower(&layout).unwrap();
    let library = Library::parse(&kernel("out[i] = n;")).unwrap();
    assert!(library.kernel("k").unwrap().lower(&layout).is_err());
}

#[test]
fn parameters_are_described() {
    let library = Library::parse(FIXTURES[0]).unwrap();
    let names: Vec<_> = library.kernels().map(|kernel| kernel.name()).collect();
    assert_eq!(names, ["add", "scale"]);
    let scale = library.kernel("scale").unwrap();
    let kinds: Vec<_> = scale.params().iter().map(|param| (param.index, param.kind)).collect();
    let element = aoti_wgpu::msl::Type::scalar(Scalar::Float);
    assert_eq!(
        kinds,
        [
            (0, ParamKind::Buffer { element, access: Access::ReadWrite }),
            (1, ParamKind::Buffer { element, access: Access::Read }),
            (2, ParamKind::Int)
        ]
    );
    assert!(!scale.uses_barriers());
    let reductions = Library::parse(FIXTURES[8]).unwrap();
    let reductions = reductions.kernel("generated_kernel").unwrap();
    assert!(reductions.uses_barriers());
    assert_eq!(reductions.max_threads(), Some(1024));
}

#[test]
fn layouts_are_checked() {
    let library = Library::parse(FIXTURES[0]).unwrap();
    let add = library.kernel("add").unwrap();
    let lower = |slots: &[u32], group| {
        add.lower(&Layout { slots, group, max_immediate_bytes: 128, int64: true })
            .map(|program| program.writable)
    };
    assert_eq!(lower(&[0, 1, 2], [64, 1, 1]), Ok(vec![true, false, false]));
    assert_eq!(lower(&[0, 0, 1], [64, 1, 1]), Ok(vec![true, false]));
    assert!(lower(&[0, 1], [64, 1, 1]).is_err());
    assert!(lower(&[0, 1, 5000], [64, 1, 1]).is_err());
    assert!(lower(&[0, 1, 2], [0, 1, 1]).is_err());
    assert!(lower(&[0, 1, 2], [1024, 2, 1]).is_err());
    assert!(lower(&[0, 1, 2], [u32::MAX, u32::MAX, 4]).is_err());
}

#[test]
fn depth_is_bounded() {
    let deep = |open: &str, middle: &str, close: &str| {
        open.repeat(20_000) + middle + &close.repeat(20_000)
    };
    let bodies = [
        format!("out[i] = {};", deep("(", "1", ")")),
        format!("out[i] = {};", deep("-", "1", "")),
        format!("out[i] = {};", deep("1 + ", "1", "")),
        format!("out[i] = {};", deep("1 ? 2 : ", "1", "")),
        format!("out[i] = {};", deep("out[", "1", "]")),
        format!("out[i] = {};", deep("metal::abs(", "1", ")")),
        format!("out[i] = {};", deep("(float)", "1", "")),
        format!("out[i] = x{};", ".x".repeat(20_000)),
        format!("x = {};", deep("y = ", "1", "")),
        deep("{", "", "}"),
        deep("if (1) ", ";", ""),
        deep("if (1) {} else ", ";", ""),
        format!("out[i] = {};", deep("static_cast<decltype(", "1", ")>(2)")),
        format!("{} x;", deep("AtomicType<", "int", ">")),
    ];
    for body in bodies {
        let error = Library::parse(&kernel(&body)).map(|_| ()).unwrap_err();
        assert!(error.to_string().len() < 1000, "{error}");
    }
    // What is accepted can be lowered on the stack of a thread.
    let shapes: [fn(usize) -> String; 5] = [
        |n| format!("out[i] = {}1{};", "(1 + ".repeat(n), ")".repeat(n)),
        |n| format!("out[i] = {}1;", "- ".repeat(n)),
        |n| format!("out[i] = {}1;", "i ? in[i] : ".repeat(n)),
        |n| format!("out[i] = {}1{};", "metal::abs(out[i] && ".repeat(n), ")".repeat(n)),
        |n| format!("{}out[i] = 1;{}", "if (out[i] < 1) {".repeat(n), "}".repeat(n)),
    ];
    for shape in shapes {
        let parse = |n| Library::parse(&kernel(&shape(n))).ok();
        let (n, deepest) = (0..200).rev().find_map(|n| Some((n, parse(n)?))).unwrap();
        assert!(n > 20, "{n}");
        msl_common::lower(deepest.kernel("k").unwrap()).unwrap();
    }
    // The depth that generated kernels reach is far below the bound.
    let sum = vec!["out[i]"; 60].join(" + ");
    let library = Library::parse(&kernel(&format!("out[i] = {sum};"))).unwrap();
    msl_common::lower(library.kernel("k").unwrap()).unwrap();
}

/// Parses and lowers whatever comes; a module that lowering gives must be valid.
fn survives(source: &str) -> Result<(), TestCaseError> {
    let Ok(library) = Library::parse(source) else {
        return Ok(());
    };
    for kernel in library.kernels() {
        if let Ok(program) = msl_common::lower(kernel) {
            let valid = msl_common::wgsl(&program.module);
            prop_assert!(valid.is_ok(), "{}\n{source}", valid.unwrap_err());
        }
    }
    Ok(())
}

/// The words and signs of a text.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match word(first) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        pieces.push(&rest[..length]);
        rest = &rest[length..];
    }
    pieces
}

/// How often each property is tried: `PROPTEST_CASES`, or a number that takes a second.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_moved_about(
        fixture in 0..FIXTURES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4), 1..6),
    ) {
        let mut pieces = pieces(FIXTURES[fixture]);
        for (at, from, kind) in edits {
            let (at, from) = (at.index(pieces.len()), from.index(pieces.len()));
            match kind {
                0 => pieces[at] = pieces[from],
                1 => pieces.insert(at, pieces[from]),
                2 => pieces.swap(at, from),
                _ => drop(pieces.remove(at)),
            }
        }
        survives(&pieces.concat())?;
    }

    #[test]
    fn bytes_replaced(
        fixture in 0..FIXTURES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = FIXTURES[fixture].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survives(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(&text)?;
        survives(&kernel(&text))?;
    }
}
