//! C clients under valgrind's memcheck: no error and no definite leak, apart from the Vulkan
//! driver's own. On Mesa's lavapipe the compiled shaders run under it as well.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;

const MODES: [(&str, &[(&str, &str)]); 3] = [
    ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
    ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
    ("host", &[("AOTI_WGPU_BACKEND", "host")]),
];

/// Memcheck cannot follow a program that has AddressSanitizer in it, so these clients are
/// built without.
fn build(source: &str, mode: &str) -> Result<PathBuf, Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = Path::new(source).file_stem().ok_or("no name")?.to_string_lossy().into_owned();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memcheck_{name}_{mode}"));
    let exe = std::env::current_exe()?;
    let output = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-I{}", root.join("include").display()))
        .arg(root.join(source))
        .arg(exe.with_file_name("libaoti_wgpu.a"))
        .args(["-lstdc++", "-ldl", "-lpthread", "-lm", "-o"])
        .arg(&program)
        .output()?;
    match output.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn memcheck(source: &str, mode: &str, settings: &[(&str, &str)]) -> Result<(), Failed> {
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=99", "--leak-check=full"])
        .args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
        .arg(format!("--suppressions={}/tests/valgrind.supp", env!("CARGO_MANIFEST_DIR")))
        .arg(build(source, mode)?)
        .env_remove("AOTI_WGPU_BACKEND")
        .envs(settings.iter().copied())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)).into())
}

fn main() {
    let arguments = Arguments::from_args();
    let no_valgrind = !Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    let no_gpu = aoti_wgpu::runtime::list_adapters().is_empty();
    let mut trials = Vec::new();
    for source in ["examples/c_client.c", "tests/c/lifecycle.c"] {
        for (mode, settings) in MODES {
            if source.ends_with("lifecycle.c") && mode == "device" {
                // Two minutes, for what the other two modes show.
                continue;
            }
            let trial =
                Trial::test(format!("{source}_{mode}"), move || memcheck(source, mode, settings));
            let ignored = no_valgrind || cfg!(not(target_os = "linux"));
            trials.push(trial.with_ignored_flag(ignored || (mode != "host" && no_gpu)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
