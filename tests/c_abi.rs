//! C11 and C++17 clients of the header, built with warnings as errors and AddressSanitizer
//! (with its search for leaks on Linux), linked with the static library, and run in both
//! memory modes.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The clients, each built once, when the first test needs it.
static CLIENTS: [(&str, OnceLock<Result<PathBuf, String>>); 3] = [
    ("lifecycle.c", OnceLock::new()),
    ("random.c", OnceLock::new()),
    ("client.cpp", OnceLock::new()),
];

/// The settings that each client runs with: all copies by the GPU where there is one.
const MODES: [(&str, &[(&str, &str)]); 5] = [
    ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
    ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
    ("unified_auto", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "auto")]),
    ("strided_views", &[("AOTI_WGPU_VIEWS", "strided")]),
    ("host", &[("AOTI_WGPU_BACKEND", "host")]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The static library that cargo built beside this test.
fn static_library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().join("libaoti_wgpu.a")
}

/// Builds a client and gives its path.
fn build(source: &str) -> Result<PathBuf, String> {
    let (compiler, standard) =
        if source.ends_with(".cpp") { ("c++", "c++17") } else { ("cc", "c11") };
    let compiler = std::env::var(if compiler == "cc" { "CC" } else { "CXX" })
        .unwrap_or_else(|_| compiler.to_owned());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(source.replace('.', "_"));
    let mut command = Command::new(compiler);
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1", "-fsanitize=address"])
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("tests/c").join(source))
        .arg(static_library())
        .args(["-o".as_ref(), program.as_os_str()]);
    if cfg!(target_os = "macos") {
        command.arg("-lc++");
        for framework in ["Metal", "QuartzCore", "CoreGraphics", "Foundation", "AppKit"] {
            command.args(["-framework", framework]);
        }
    } else {
        command.args(["-lstdc++", "-ldl", "-lpthread", "-lm"]);
    }
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(program)
}

fn run(
    source: &str,
    program: &OnceLock<Result<PathBuf, String>>,
    settings: &[(&str, &str)],
) -> Result<(), Failed> {
    let program = program.get_or_init(|| build(source)).as_ref()?;
    let suppressions =
        format!("suppressions={}:print_suppressions=0", root().join("tests/c/lsan.supp").display());
    let output = Command::new(program)
        .envs(settings.iter().copied())
        .env("ASAN_OPTIONS", if cfg!(target_os = "linux") { "detect_leaks=1" } else { "" })
        .env("LSAN_OPTIONS", suppressions)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!(
        "{source} with {settings:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
    .into())
}

fn main() {
    let arguments = Arguments::from_args();
    let no_gpu = aoti_wgpu::runtime::list_adapters().is_empty();
    let mut trials = Vec::new();
    for (source, program) in &CLIENTS {
        for (mode, settings) in MODES {
            let name = format!("{source}_{mode}");
            let on_gpu = mode != "host";
            trials.push(
                Trial::test(name, move || run(source, program, settings))
                    .with_ignored_flag(on_gpu && no_gpu),
            );
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
