//! The C header against the library: what one declares the other exports, and with the
//! same types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A function as text: its result and its parameters, in C.
#[derive(Debug, PartialEq, Eq)]
struct Prototype {
    result: String,
    parameters: Vec<String>,
}

/// Called by the library's own C++, and by nobody else.
const INTERNAL: [&str; 2] = ["aoti_wgpu_end_block", "aoti_wgpu_refuse_callback"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Text without C comments and preprocessor lines.
fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").unwrap().1;
    }
    plain.push_str(rest);
    plain.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// Words and stars, so that spaces do not matter; types by one of their names.
fn words(text: &str) -> String {
    let same = |word| match word {
        "AOTITorchError" => "int32_t",
        "unsigned" => "uint32_t",
        other => other,
    };
    text.replace('*', " * ").split_whitespace().map(same).collect::<Vec<_>>().join(" ")
}

/// What `include/aoti_wgpu.h` declares.
fn declared() -> BTreeMap<String, Prototype> {
    let text = std::fs::read_to_string(root().join("include/aoti_wgpu.h")).unwrap();
    let mut functions = BTreeMap::new();
    for declaration in without_comments(&text).split("AOTI_WGPU_EXPORT ").skip(1) {
        let declaration = declaration.split(';').next().unwrap();
        let (head, parameters) = declaration.split_once('(').unwrap();
        let (result, name) = head.trim().rsplit_once(char::is_whitespace).unwrap();
        let parameters = parameters.trim().trim_end_matches(')');
        let parameters =
            parameters.split(',').map(str::trim).filter(|p| !matches!(*p, "" | "void"));
        // The last word is the parameter's name.
        let parameters = parameters.map(|parameter| {
            let (_, name) = parameter.rsplit_once([' ', '*']).unwrap();
            words(parameter.strip_suffix(name).unwrap())
        });
        let prototype = Prototype { result: words(result), parameters: parameters.collect() };
        assert!(functions.insert(name.to_owned(), prototype).is_none(), "{name} twice");
    }
    functions
}

/// A Rust type in C.
fn in_c(kind: &str) -> String {
    let kind = kind.trim();
    if let Some(of) = kind.strip_prefix("*mut ") {
        return format!("{} *", in_c(of));
    }
    if let Some(of) = kind.strip_prefix("*const ") {
        if of.starts_with('*') {
            return format!("{} const *", in_c(of));
        }
        return format!("const {} *", in_c(of));
    }
    match kind {
        "i8" | "i16" | "i32" | "i64" => format!("int{}_t", &kind[1..]),
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &kind[1..]),
        "usize" => "size_t".into(),
        "f32" => "float".into(),
        "f64" => "double".into(),
        "c_char" => "char".into(),
        "c_void" | "()" => "void".into(),
        // How the modules that call C++ name it.
        "Function" => "AOTIMetalKernelFunctionHandle".into(),
        _ if kind.starts_with("Option<unsafe extern \"C-unwind\" fn(Function") => {
            "aoti_torch_mps_command_block_callback_t".into()
        }
        other => other.into(),
    }
}

/// What the sources of `src/ffi` export, by their text.
fn exported_by_source() -> BTreeMap<String, Prototype> {
    let mut functions = BTreeMap::new();
    let folders = [root().join("src/ffi"), root().join("src/ffi/ops")];
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let starts = text.match_indices("extern \"C").filter(|(at, _)| {
            // A definition, not a block of foreign functions or a type.
            let line = text[..*at].rsplit('\n').next().unwrap().trim_start();
            matches!(line, "pub unsafe " | "pub " | "")
        });
        for (at, _) in starts {
            let Some((abi, signature)) = text[at..].split_once(" fn ") else { continue };
            let (name, rest) = signature.split_once('(').unwrap();
            let ours = name.starts_with("aoti_") || name.starts_with("cleanup_");
            if abi.contains('{') || !ours {
                continue;
            }
            // Up to the body; parameters may have parentheses of their own.
            let (rest, _) = rest.split_once('{').unwrap();
            let (parameters, result) = match rest.rsplit_once(") -> ") {
                Some((parameters, result)) if !result.contains(')') => (parameters, result),
                _ => (rest.trim_end().trim_end_matches(')'), "()"),
            };
            let parameters = match parameters.split_once("Option<") {
                // The one parameter whose type has commas.
                Some((before, after)) => {
                    let (kind, after) = after.split_once(">,").unwrap();
                    let mut list: Vec<String> = kinds(before.trim_end_matches("callback: "));
                    list.push(in_c(&format!("Option<{kind}")));
                    list.extend(kinds(after));
                    list
                }
                None => kinds(parameters),
            };
            let result = words(&in_c(result));
            functions.insert(name.to_owned(), Prototype { result, parameters });
        }
    }
    functions
}

fn kinds(parameters: &str) -> Vec<String> {
    parameters
        .split(',')
        .filter_map(|parameter| parameter.split_once(": "))
        .map(|(_, kind)| words(&in_c(kind)))
        .collect()
}

#[test]
fn prototypes_are_those_of_the_source() {
    let (header, mut source) = (declared(), exported_by_source());
    for name in INTERNAL {
        source.remove(name).unwrap();
    }
    assert!(header.len() > 100, "{}", header.len());
    for (name, prototype) in &header {
        let exported = source.remove(name);
        assert_eq!(exported.as_ref(), Some(prototype), "{name}");
    }
    assert!(source.is_empty(), "not declared: {:?}", source.keys());
}

/// The shared library that cargo built beside this test.
fn shared_library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    folder.join(format!(
        "{}aoti_wgpu{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ))
}

#[test]
#[cfg_attr(windows, ignore = "there is no nm")]
fn the_shared_library_exports_what_the_header_declares() {
    let arguments: &[&str] =
        if cfg!(target_os = "macos") { &["-gU"] } else { &["-D", "--defined-only"] };
    let library = shared_library();
    let output = Command::new("nm").args(arguments).arg(&library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|name| if cfg!(target_os = "macos") { name.trim_start_matches('_') } else { name })
        .filter(|name| name.starts_with("aoti_") || name.starts_with("cleanup_"))
        .filter(|name| !INTERNAL.contains(name))
        .filter(|name| !aoti_wgpu::ffi::ops::stubs::NAMES.contains(name))
        .collect();
    let header = declared();
    let declared: BTreeSet<&str> = header.keys().map(String::as_str).collect();
    assert_eq!(exported, declared);
}
