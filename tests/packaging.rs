//! The installed package as somebody else's project sees it.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packaging")
}

/// Runs a command and gives its output, or what went wrong.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    Err(format!("{command:?}: {}\n{out}{err}", output.status))
}

/// Installs the libraries that cargo built beside this test, once, and gives the prefix.
fn installed() -> Result<&'static Path, String> {
    static PREFIX: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| {
        let exe = std::env::current_exe().map_err(|error| error.to_string())?;
        let prefix = folder().join("prefix");
        run(Command::new(root().join("packaging/install"))
            .arg(&prefix)
            .arg(exe.parent().ok_or("a test has a folder")?))?;
        Ok(prefix)
    });
    prefix.as_deref().map_err(Clone::clone)
}

/// A project outside the tree, configured against the package and built.
fn cmake_host(name: &str, linking: &str) -> Result<PathBuf, String> {
    let source = folder().join(name).join("source");
    let build = folder().join(name).join("build");
    let _ = std::fs::remove_dir_all(folder().join(name));
    std::fs::create_dir_all(&source).map_err(|error| error.to_string())?;
    let project = root().join("tests/cmake");
    let lists = std::fs::read_to_string(project.join("CMakeLists.txt"))
        .map_err(|error| error.to_string())?;
    std::fs::write(source.join("CMakeLists.txt"), lists.replace("AOTI_WGPU_STATIC ON", linking))
        .map_err(|error| error.to_string())?;
    std::fs::copy(project.join("host.cpp"), source.join("host.cpp"))
        .map_err(|error| error.to_string())?;
    run(Command::new("cmake")
        .arg("-S")
        .arg(&source)
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", installed()?.display())))?;
    run(Command::new("cmake").arg("--build").arg(&build))?;
    Ok(build.join("host"))
}

fn runs_rope(name: &str, linking: &str, rope: &Path) -> Result<(), Failed> {
    let out =
        run(Command::new(cmake_host(name, linking)?).env_remove("AOTI_WGPU_BACKEND").arg(rope))?;
    if out.contains("rope: right") { Ok(()) } else { Err(out.into()) }
}

/// Each pkg-config file gives flags with which the host links.
fn pkg_config(rope: &Path) -> Result<(), Failed> {
    for package in ["aoti_wgpu", "aoti_wgpu-static"] {
        let flags = run(Command::new("pkg-config")
            .args(["--cflags", "--libs", package])
            .env("PKG_CONFIG_PATH", installed()?.join("lib/pkgconfig")))?;
        let host = folder().join(package);
        run(Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".into()))
            .arg("-std=c++17")
            .arg(root().join("tests/cmake/host.cpp"))
            .args(flags.split_whitespace())
            .arg("-o")
            .arg(&host))?;
        run(Command::new(host).env_remove("AOTI_WGPU_BACKEND").arg(rope))?;
    }
    Ok(())
}

/// The names that the header declares.
fn declared() -> Result<Vec<String>, String> {
    let header = std::fs::read_to_string(root().join("include/aoti_wgpu.h"))
        .map_err(|error| error.to_string())?;
    let code: String =
        header.split("/*").map(|part| part.split_once("*/").map_or(part, |p| p.1)).collect();
    let mut names: Vec<String> = code
        .match_indices('(')
        .filter_map(|(at, _)| {
            let name = code.get(..at)?.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            (name.starts_with("aoti_") || name.starts_with("cleanup_")).then(|| name.to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The shared library exports all that the header declares and what the delegate links, in
/// C++ files or not.
fn exports() -> Result<(), Failed> {
    let shared = installed()?.join("lib/libaoti_wgpu.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(shared))?;
    let exported: Vec<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let mut names = declared()?;
    assert!(names.len() > 100, "the header's functions were not found");
    names.extend(
        [
            "_ZN10executorch8backends5metal21getCurrentMetalStreamEv",
            "_ZN10executorch8backends5metal13ETMetalStream16setFlushIntervalEi",
            "_ZN10executorch8backends5metal24synchronize_metal_streamEv",
        ]
        .map(str::to_owned),
    );
    names.retain(|name| !exported.contains(&name.as_str()));
    if names.is_empty() { Ok(()) } else { Err(format!("not exported: {names:?}").into()) }
}

fn main() {
    let arguments = Arguments::from_args();
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let linux = cfg!(target_os = "linux");
    let shared = root().join("../shared");
    // A worktree lies one level further down.
    let shared = if shared.is_dir() { shared } else { root().join("../../shared") };
    let rope = shared.join("aoti-models/mps/rope");
    let can_run = rope.join("model.so").exists()
        && cfg!(target_arch = "x86_64")
        && !aoti_wgpu::runtime::list_adapters().is_empty();
    let (a, b, c) = (rope.clone(), rope.clone(), rope);
    let trials = vec![
        Trial::test("exports", exports).with_ignored_flag(!linux || !has("nm")),
        Trial::test("cmake_static", move || runs_rope("static", "AOTI_WGPU_STATIC ON", &a))
            .with_ignored_flag(!can_run || !has("cmake")),
        Trial::test("cmake_shared", move || runs_rope("shared", "AOTI_WGPU_STATIC OFF", &b))
            .with_ignored_flag(!can_run || !has("cmake")),
        Trial::test("pkg_config", move || pkg_config(&c))
            .with_ignored_flag(!can_run || !has("pkg-config")),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}
