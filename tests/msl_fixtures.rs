//! The fixture kernels as WGSL, for the eye, and written out for every backend.
//!
//! `tests/fixtures/msl/NAME.wgsl` shows the kernels of `NAME.metal`, without the functions of
//! `shaders/msl` that they call. After a change that is meant,
//! `UPDATE_SNAPSHOTS=1 cargo test --test msl_fixtures` writes them anew.

mod msl_common;

use std::path::{Path, PathBuf};

use aoti_wgpu::msl::Library;

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/msl");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "metal"));
    paths.sort();
    paths
}

/// The text without the functions of the library.
fn without_library(wgsl: &str) -> String {
    let library = ["fn msl_", "fn math_", "fn metal_", "fn c10_metal_", "struct Math"];
    let mut text = String::new();
    let mut skipping = false;
    for line in wgsl.lines() {
        skipping |= library.iter().any(|start| line.starts_with(start));
        if !skipping {
            text += line.trim_end();
            text += "\n";
        }
        skipping &= line != "}";
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

#[test]
fn snapshots() {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut stale = Vec::new();
    for path in fixtures() {
        let source = std::fs::read_to_string(&path).unwrap();
        let library =
            Library::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut text = String::new();
        for kernel in library.kernels() {
            let program = msl_common::lower(kernel)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let wgsl = without_library(&msl_common::wgsl(&program.module).unwrap());
            text += &format!(
                "// {}: {:?}, writable {:?}\n{wgsl}\n",
                kernel.name(),
                program.params,
                program.writable
            );
        }
        let snapshot = path.with_extension("wgsl");
        if update {
            std::fs::write(&snapshot, text).unwrap();
        } else if std::fs::read_to_string(&snapshot).ok().as_deref() != Some(&text) {
            stale.push(snapshot.display().to_string());
        }
    }
    assert!(stale.is_empty(), "not as before; UPDATE_SNAPSHOTS=1 accepts what is new: {stale:?}");
}

#[test]
fn every_backend_takes_them() {
    for path in fixtures() {
        let library = Library::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for kernel in library.kernels() {
            let program = msl_common::lower(kernel).unwrap();
            let written = msl_common::write_out(&program.module);
            assert_eq!(written, Ok(()), "{}", path.display());
        }
    }
}
