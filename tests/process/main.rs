//! How processes end: static destructors after main, handles alive at exit, fork, and a
//! library that is closed while its work is queued. Each is a process of its own, with a
//! limit on its time.
#![cfg(unix)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Far more than any of these needs.
const LIMIT: Duration = Duration::from_secs(60);

/// The folder with the cdylib: cargo puts it beside the tests, and a copy of both may lie
/// elsewhere.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// The C++ program, compiled once.
fn program() -> Result<&'static Path, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let libraries = libraries();
            let out = libraries.join("statics");
            let output = Command::new(std::env::var_os("CXX").unwrap_or("c++".into()))
                .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-pthread"])
                // A library with a sanitizer in it needs a program that has its runtime.
                .args(std::env::var("CXXFLAGS").unwrap_or_default().split_whitespace())
                .arg("-o")
                .arg(&out)
                .arg(root.join("tests/process/statics.cpp"))
                .arg(format!("-I{}", root.join("include").display()))
                .arg(format!("-L{}", libraries.display()))
                .arg(format!("-Wl,-rpath,{}", libraries.display()))
                .arg("-laoti_wgpu")
                .output()
                .map_err(|error| error.to_string())?;
            match output.status.success() {
                true => Ok(out),
                false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
        })
        .as_ref()
        .map(PathBuf::as_path)
        .map_err(Clone::clone)
}

fn ends_well(mut command: Command) -> Result<(), Failed> {
    // Mesa compiles a kernel when it first runs, unless it finds it in its cache on disk; what
    // is queued at the end is then compiled when the compiler's own static objects may be gone.
    command.env("MESA_SHADER_CACHE_DISABLE", "true");
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Err("the process hung".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().ok_or("no pipe")?, &mut text)?;
    if status.success() { Ok(()) } else { Err(format!("{status}\n{text}").into()) }
}

/// In a process of its own: opens the library, queues work, closes it, and goes on.
fn close_with_work_queued() {
    type Empty = unsafe extern "C" fn(
        i64,
        *const i64,
        *const i64,
        i32,
        i32,
        i32,
        *mut *mut std::ffi::c_void,
    ) -> i32;
    type OnHandle = unsafe extern "C" fn(*mut std::ffi::c_void) -> i32;
    let path = libraries().join("libaoti_wgpu.so");
    let mut handles = Vec::new();
    for _ in 0..3 {
        // SAFETY: the library's initialisers have no preconditions.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the types are those of the header; arrays of the rank.
        unsafe {
            let empty = library.get::<Empty>(b"aoti_torch_empty_strided").unwrap();
            let zero = library.get::<OnHandle>(b"aoti_torch_zero_").unwrap();
            assert_eq!(empty(1, [1 << 16].as_ptr(), std::ptr::null(), 6, 13, 0, &mut handle), 0);
            for _ in 0..20 {
                assert_eq!(zero(handle), 0);
            }
        }
        handles.push(handle);
        library.close().unwrap();
    }
    // Programs delete handles after the last dlclose.
    // SAFETY: as above.
    unsafe {
        let library = libloading::Library::new(&path).unwrap();
        let delete = library.get::<OnHandle>(b"aoti_torch_delete_tensor_object").unwrap();
        for handle in handles {
            assert_eq!(delete(handle), 0);
            assert_ne!(delete(handle), 0);
        }
        library.close().unwrap();
    }
}

fn main() {
    if std::env::var_os("PROCESS_CLOSES").is_some() {
        return close_with_work_queued();
    }
    let arguments = Arguments::from_args();
    let has_gpu = !aoti_wgpu::runtime::list_adapters().is_empty();
    let has_library = libraries().join("libaoti_wgpu.so").exists();
    let setups: [(&str, &[(&str, &str)]); 3] = [
        ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
        ("device", &[("AOTI_WGPU_MEMORY", "device")]),
        ("host", &[("AOTI_WGPU_BACKEND", "host")]),
    ];
    let mut trials = Vec::new();
    for (setup, environment) in setups {
        let ignored = !has_library || (setup != "host" && !has_gpu);
        for what in ["statics", "leak", "quick", "fork", "fork-exit"] {
            if setup == "host" && what.starts_with("fork") {
                continue;
            }
            let trial = Trial::test(format!("{what}::{setup}"), move || {
                let mut command = Command::new(program()?);
                command.arg(what).env_remove("AOTI_WGPU_BACKEND").envs(environment.iter().copied());
                ends_well(command)
            });
            trials.push(trial.with_ignored_flag(ignored));
        }
        let trial = Trial::test(format!("dlclose::{setup}"), move || {
            let mut command = Command::new(std::env::current_exe()?);
            command.env("PROCESS_CLOSES", "1").env_remove("AOTI_WGPU_BACKEND");
            command.envs(environment.iter().copied());
            ends_well(command)
        });
        trials.push(trial.with_ignored_flag(ignored));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
