//! The library against ExecuTorch itself: the wheel's headers and `libexecutorch.so`, a
//! delegate that does what the Metal one does, and programs that it loads; in C++ under
//! AddressSanitizer, in `tests/executorch/`.
//!
//! The wheel (Linux, x86-64) is downloaded once, into the target folder. Where it cannot be
//! had the tests are shown as ignored.

use aoti_wgpu::ffi::ops::stubs;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCES: [&str; 4] = ["main.cpp", "tensors.cpp", "models.cpp", "delegate.cpp"];

/// The settings that the test runs with: all copies by the GPU where there is one.
const MODES: [(&str, &[(&str, &str)]); 4] = [
    ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
    ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
    ("strided_views", &[("AOTI_WGPU_VIEWS", "strided")]),
    ("host", &[("AOTI_WGPU_BACKEND", "host")]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where this test builds and keeps what it downloads.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("executorch")
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

/// The folder `executorch` of the wheel, from an earlier run or downloaded now.
fn wheel() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the wheel's C++ library is for Linux on x86-64".into());
    }
    let unpacked = folder().join("wheel");
    let package = unpacked.join("executorch");
    if package.join("lib/libexecutorch.so").exists() {
        return Ok(package);
    }
    let downloads = folder().join("download");
    std::fs::create_dir_all(&downloads).map_err(|error| error.to_string())?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
        .args(["--disable-pip-version-check", "--platform", "manylinux_2_28_x86_64"])
        .args(["--python-version", "3.11", "executorch>=1.5.1", "--dest"])
        .arg(&downloads))?;
    let wheel = std::fs::read_dir(&downloads)
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or("pip left no wheel")?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
    Ok(package)
}

/// The test's program, and the two programs that it loads.
struct Built {
    test: PathBuf,
    mapped: PathBuf,
    unmapped: PathBuf,
}

fn compiler() -> Command {
    let mut command = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".into()));
    command
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-fsanitize=address"])
        .arg("-I")
        .arg(root().join("include"));
    command
}

fn build(package: &Path) -> Result<Built, String> {
    let sources = root().join("tests/executorch");
    let program = |name: &str, define: &str| {
        let out = folder().join(name);
        run(compiler()
            .args(["-fPIC", "-shared", define])
            .arg(sources.join("program.cpp"))
            .arg("-o")
            .arg(&out))
        .map(|_| out)
    };
    let include = package.join("include");
    let library = package.join("lib");
    let test = folder().join("executorch_test");
    let static_library = std::env::current_exe()
        .map_err(|error| error.to_string())?
        .with_file_name("libaoti_wgpu.a");
    run(compiler()
        .args(["-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"])
        .arg("-isystem")
        .arg(&include)
        .arg("-isystem")
        .arg(include.join("executorch/runtime/core/portable_type/c10"))
        .args(SOURCES.map(|source| sources.join(source)))
        // Programs find the functions in the executable: all of them, and exported.
        .arg("-Wl,--whole-archive")
        .arg(static_library)
        .args(["-Wl,--no-whole-archive", "-rdynamic", "-L"])
        .arg(&library)
        .args(["-lexecutorch", "-ldl", "-lpthread", "-lm"])
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&test))?;
    Ok(Built {
        test,
        mapped: program("stays_mapped.so", "-DSTAYS_MAPPED")?,
        unmapped: program("unmapped.so", "-DUNMAPPED")?,
    })
}

fn built(package: &Path) -> Result<&'static Built, String> {
    static BUILT: OnceLock<Result<Built, String>> = OnceLock::new();
    BUILT.get_or_init(|| build(package)).as_ref().map_err(Clone::clone)
}

fn run_test(
    package: &Path,
    settings: &[(&str, &str)],
    runs: u32,
    manifests: &[PathBuf],
) -> Result<(), Failed> {
    /// What the leak checker says when it fails itself: it stops the threads of the driver
    /// where they are, and now and then cannot read one that is just ending.
    const CHECKER_FAILED: &str = "LeakSanitizer has encountered a fatal error";
    let built = built(package)?;
    let mut result = Ok(String::new());
    for _ in 0..5 {
        result = run(Command::new(&built.test)
            .arg(&built.mapped)
            .arg(&built.unmapped)
            .arg(runs.to_string())
            .args(manifests)
            .env_remove("AOTI_WGPU_BACKEND")
            .envs(settings.iter().copied())
            .env("ASAN_OPTIONS", "detect_leaks=1"));
        match &result {
            Err(text) if text.contains(CHECKER_FAILED) => {}
            _ => break,
        }
    }
    result?;
    Ok(())
}

/// Whether this library has every operator that a program calls.
fn calls_what_is_here(meta: &Value) -> bool {
    let Some(symbols) = meta["symbols"].as_array() else { return false };
    symbols.iter().filter_map(Value::as_str).all(|name| !stubs::NAMES.contains(&name))
}

/// c10's code of a type and the bytes of an element.
fn dtype(name: &str) -> Option<(i32, usize)> {
    Some(match name {
        "uint8" => (0, 1),
        "int8" => (1, 1),
        "int16" => (2, 2),
        "int32" => (3, 4),
        "int64" => (4, 8),
        "float16" => (5, 2),
        "float32" => (6, 4),
        "float64" => (7, 8),
        "bool" => (11, 1),
        "bfloat16" => (15, 2),
        _ => return None,
    })
}

/// The manifest of a compiled program, with its tensors' elements in files of their own.
fn manifest(program: &Path, meta: &Value) -> Result<PathBuf, String> {
    let name = meta["name"].as_str().ok_or("meta.json names no program")?;
    let out = folder().join("programs").join(name);
    std::fs::create_dir_all(&out).map_err(|error| error.to_string())?;
    let shown = |file: &str| program.join(file).display().to_string();
    let mut text = format!("program {}\nweights {}\n", shown("model.so"), shown("weights.blob"));
    for (kind, list) in [("in", "inputs"), ("out", "outputs")] {
        for (i, port) in meta[list].as_array().into_iter().flatten().enumerate() {
            let dtype_name = port["dtype"].as_str().unwrap_or_default();
            let (code, bytes) = dtype(dtype_name).ok_or(format!("dtype {dtype_name}"))?;
            let npy = std::fs::read(program.join(format!("{kind}{i}.npy")))
                .map_err(|error| error.to_string())?;
            // Versions 1 and 2 of numpy's format: magic, version, length, header, elements.
            let start = match npy.get(6) {
                Some(1) => 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]])),
                _ => 12 + u32::from_le_bytes([npy[8], npy[9], npy[10], npy[11]]) as usize,
            };
            let raw = out.join(format!("{kind}{i}.raw"));
            std::fs::write(&raw, &npy[start..]).map_err(|error| error.to_string())?;
            let tolerance = |key: &str| meta["tolerance"][key].as_f64().unwrap_or_default();
            let shape: Vec<String> =
                port["shape"].as_array().into_iter().flatten().map(Value::to_string).collect();
            writeln!(
                text,
                "{kind} {code} {bytes} {} {} {} {} {}",
                tolerance("atol"),
                tolerance("rtol"),
                raw.display(),
                shape.len(),
                shape.join(" ")
            )
            .map_err(|error| error.to_string())?;
        }
    }
    let path = out.join("manifest");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path)
}

/// Compiled programs whose operators are all here, where they are at hand.
fn programs() -> Vec<(String, PathBuf, Value)> {
    // A worktree lies one level further down.
    let folders = ["../shared", "../../shared"].map(|shared| root().join(shared));
    let Some(Ok(entries)) =
        folders.iter().map(|shared| shared.join("aoti-models/mps").read_dir()).find(Result::is_ok)
    else {
        return Vec::new();
    };
    let mut programs: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let meta = std::fs::read_to_string(entry.path().join("meta.json")).ok()?;
            let meta: Value = serde_json::from_str(&meta).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Its constant is another one at the second run, which has no expected output.
            let changes = name.starts_with("gated_delta_rule_kept");
            (calls_what_is_here(&meta) && !changes).then_some((name, entry.path(), meta))
        })
        .collect();
    programs.sort_by(|a, b| a.0.cmp(&b.0));
    programs
}

fn main() {
    let arguments = Arguments::from_args();
    let package = if arguments.list { Err("only listed".to_owned()) } else { wheel() };
    let missing = package.as_ref().err().cloned();
    if let (Some(reason), false) = (&missing, arguments.list) {
        eprintln!("the executorch wheel is not to be had: {reason}");
    }
    let package = package.unwrap_or_default();
    let no_gpu = aoti_wgpu::runtime::list_adapters().is_empty();
    #[allow(clippy::type_complexity, reason = "named nowhere else")]
    let trial = |name: String, gpu: bool, body: Box<dyn Fn(&Path) -> Result<(), Failed> + Send>| {
        let package = package.clone();
        let kind = if missing.is_some() { "no network" } else { "" };
        Trial::test(name, move || body(&package))
            .with_kind(kind)
            .with_ignored_flag(missing.is_some() && !arguments.list || (gpu && no_gpu))
    };
    let mut trials = Vec::new();
    for (mode, settings) in MODES {
        let gpu = mode != "host";
        let body = move |package: &Path| run_test(package, settings, 0, &[]);
        trials.push(trial(format!("delegate_{mode}"), gpu, Box::new(body)));
    }
    let many = |package: &Path| run_test(package, MODES[0].1, 7500, &[]);
    trials.push(trial("delegate_7500_runs".into(), true, Box::new(many)));
    for (name, path, meta) in programs() {
        let body = move |package: &Path| {
            let manifest = manifest(&path, &meta)?;
            run_test(package, MODES[1].1, 0, &[manifest])
        };
        trials.push(trial(format!("program_{name}"), true, Box::new(body)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
