//! Compiled programs that come and go: one after the other, beside others that run in eight
//! threads, and with constants that fail half way. Half of the containers are deleted, the
//! other half left to `cleanup_memory`, as ExecuTorch's delegate does.
//!
//! A process for each set-up. `SOAK_LOADS` sets how many models are loaded, `SOAK_ROUNDS`
//! how often each of eight runs.
#![cfg(unix)]

#[path = "../../examples/run_program/abi.rs"]
#[allow(dead_code, reason = "the example's, with what it alone needs")]
mod abi;
mod model;
#[path = "../../examples/support/npy.rs"]
#[allow(dead_code, reason = "the example's")]
mod npy;

use abi::{Program, Shims, Stats};
use libtest_mimic::{Arguments, Failed, Trial};
use model::{Constants, Model, Programs};
use npy::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const THREADS: usize = 8;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn live(stats: &Stats) -> (u64, u64, u64, u64) {
    (stats.live_handles, stats.live_storages, stats.live_device_bytes, stats.live_host_bytes)
}

/// Bytes of this process that are in memory; 0 where the system does not say.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// One model after the other: the library holds the same after each.
fn loads(shims: &Shims, programs: &Programs) -> Result<(), Failure> {
    let count = number("SOAK_LOADS", 20);
    let before = live(&shims.stats()?);
    let mut resident_before = 0;
    for load in 0..count {
        let constants = Constants::of(load as f32, load % 2 == 1);
        let model = Model::load(shims, programs, &constants)?;
        for run in 0..3 {
            model.run_and_check(run as f32)?;
        }
        model.destroy()?;
        let now = live(&shims.stats()?);
        assert_eq!(now, before, "load {load} left something behind");
        if load == count / 10 {
            resident_before = resident();
        }
    }
    println!(
        "{count} loads; {} bytes more resident since a tenth of them",
        resident().saturating_sub(resident_before)
    );
    Ok(())
}

/// Eight threads, each with a model of its own, while this one loads and destroys others.
fn beside(shims: &Shims, programs: &Programs) -> Result<(), Failure> {
    let rounds = number("SOAK_ROUNDS", 20);
    let before = live(&shims.stats()?);
    let running = AtomicUsize::new(THREADS);
    let others = std::thread::scope(|scope| -> Result<usize, Failure> {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let running = &running;
                scope.spawn(move || {
                    let work = || -> Result<(), Failure> {
                        let constants = Constants::of(1000.0 * thread as f32, thread % 2 == 1);
                        let model = Model::load(shims, programs, &constants)?;
                        for round in 0..rounds {
                            model.run_and_check(round as f32)?;
                        }
                        model.destroy()
                    };
                    let result = work().map_err(|error| format!("thread {thread}: {error}"));
                    running.fetch_sub(1, Ordering::Relaxed);
                    result
                })
            })
            .collect();
        let mut others = 0;
        while running.load(Ordering::Relaxed) > 0 || others < 4 {
            let constants = Constants::of(-5.0 - others as f32, others % 2 == 1);
            let model = Model::load(shims, programs, &constants)?;
            model.run_and_check(1.0)?;
            model.destroy()?;
            others += 1;
        }
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(others)
    })?;
    assert_eq!(live(&shims.stats()?), before);
    println!("{THREADS} models of {rounds} runs beside {others} that came and went");
    Ok(())
}

/// Constants that fail at each place and in each way: an error with a message; what was alive
/// is intact; nothing is left; the next model loads and runs.
fn constants(shims: &Shims, programs: &Programs) -> Result<(), Failure> {
    let bystander = Model::load(shims, programs, &Constants::of(7.0, false))?;
    bystander.run_and_check(1.0)?;
    let before = live(&shims.stats()?);
    let mut failures = 0;
    let messages = ["cannot allocate", "sizes is [1025]", "storage", "a constant is missing"];
    for (how, message) in messages.into_iter().enumerate() {
        for at in 0..model::CONSTANTS {
            for kept in [false, true] {
                let good = Constants::of(3.0, kept);
                let bad = good.failing(at, how);
                let error = match Model::load(shims, programs, &bad) {
                    Ok(_) => return Err(format!("{how} at {at} did not fail").into()),
                    Err(error) => error.to_string(),
                };
                assert!(error.contains(message), "{how} at {at}: {error}");
                assert_eq!(live(&shims.stats()?), before, "{how} at {at}, kept {kept}");
                bystander.run_and_check(2.0)?;
                let next = Model::load(shims, programs, &good)?;
                next.run_and_check(3.0)?;
                next.destroy()?;
                assert_eq!(live(&shims.stats()?), before, "after {how} at {at}, kept {kept}");
                failures += 1;
            }
        }
    }
    bystander.destroy()?;
    assert_eq!(live(&shims.stats()?), (0, 0, 0, 0));
    println!("{failures} failures");
    Ok(())
}

fn child(part: &str) -> Result<(), Failure> {
    let shims = Shims::load(&Shims::default_path()?)?;
    let programs = Programs::new(std::env::var_os("MODELS_PROGRAM").ok_or("no program")?.into())?;
    match part {
        "loads" => loads(&shims, &programs),
        "beside" => beside(&shims, &programs),
        _ => constants(&shims, &programs),
    }
}

/// The C++ program, compiled once, beside this binary.
fn program() -> Result<&'static Path, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let out = std::env::current_exe().map_err(|e| e.to_string())?.with_extension("program.so");
        let mut command = Command::new(std::env::var_os("CXX").unwrap_or("c++".into()));
        command
            .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"])
            .arg(root.join("tests/models/program.cpp"))
            .arg(format!("-I{}", root.join("include").display()))
            .arg("-o")
            .arg(&out);
        if cfg!(target_os = "macos") {
            command.args(["-undefined", "dynamic_lookup"]);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(out),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    PROGRAM.get_or_init(build).as_ref().map(PathBuf::as_path).map_err(Clone::clone)
}

fn again(part: &str, setup: &[(&str, &str)]) -> Result<(), Failed> {
    let output = Command::new(std::env::current_exe()?)
        .env_remove("AOTI_WGPU_BACKEND")
        .env("MODELS_PART", part)
        .env("MODELS_PROGRAM", program()?)
        .envs(setup.iter().copied())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn main() {
    if let Ok(part) = std::env::var("MODELS_PART") {
        if let Err(error) = child(&part) {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    let arguments = Arguments::from_args();
    let has_gpu = !aoti_wgpu::runtime::list_adapters().is_empty();
    let has_library = Shims::default_path().is_ok();
    let setups: [(&str, &[(&str, &str)]); 4] = [
        ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
        ("unified_auto", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "auto")]),
        ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
        ("host", &[("AOTI_WGPU_BACKEND", "host")]),
    ];
    let mut trials = Vec::new();
    for (name, setup) in setups {
        for part in ["loads", "beside", "constants"] {
            let trial = Trial::test(format!("{part}::{name}"), move || again(part, setup));
            trials.push(trial.with_ignored_flag(!has_library || (name != "host" && !has_gpu)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
