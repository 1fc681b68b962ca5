//! A module of `src` uses only the modules above it in the map of `lib.rs`.

use std::path::{Path, PathBuf};

/// The modules in the order of the map; each may use itself and those before it.
const ORDER: &[&str] = &[
    "error", "config", "dtype", "layout", "copy", "msl", "gpu", "memory", "tensor", "runtime",
    "ops", "ffi",
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

fn module_of(root: &Path, path: &Path) -> String {
    let first = path.strip_prefix(root).unwrap().components().next().unwrap();
    first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

#[test]
fn modules_depend_downwards_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let rank = |module: &str| ORDER.iter().position(|&name| name == module);
    let mut wrong = Vec::new();
    for path in files {
        let module = module_of(&root, &path);
        if module == "lib" {
            continue;
        }
        let own = rank(&module).unwrap_or_else(|| panic!("{module} is not in the map"));
        for (number, line) in (1..).zip(std::fs::read_to_string(&path).unwrap().lines()) {
            for used in line.split("crate::").skip(1) {
                let used: String =
                    used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if rank(&used).is_some_and(|rank| rank > own) {
                    wrong.push(format!("{}:{number}: {module} uses {used}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_map_in_lib_names_the_same_modules() {
    let lib = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let lib = lib.unwrap();
    let declared: Vec<_> = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
        .map(|name| name.trim_end_matches(';'))
        .collect();
    assert!(!declared.is_empty());
    for name in declared {
        assert!(ORDER.contains(&name), "{name} has no place in the order");
        assert!(lib.contains(&format!("`{name}`")), "{name} is not in the map");
    }
}
