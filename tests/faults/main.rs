//! Faults on purpose: at every allocation, submission and compilation of a small program.
//!
//! After each: an error with a message, nothing leaked, what was alive before is intact, no
//! wrong value was read, and the program runs again; after the loss of the device every call
//! that needs it says so. A process for each set-up, and one for each loss.

mod program;

use aoti_wgpu::faults::{Fault, arm, disarm};
use aoti_wgpu::ffi::extension::*;
use libtest_mimic::{Arguments, Failed, Trial};
use program::{Failure, checked, empty, filled, read, run, view, wanted};
use std::process::Command;

fn stats() -> aoti_wgpu_stats_t {
    let mut stats = aoti_wgpu_stats_t {
        struct_size: size_of::<aoti_wgpu_stats_t>() as u64,
        ..Default::default()
    };
    // SAFETY: a struct of the size it says.
    checked(unsafe { aoti_wgpu_stats(&mut stats) }.cast_signed()).unwrap();
    stats
}

fn alive() -> (u64, u64, u64, u64) {
    let stats = stats();
    (stats.live_handles, stats.live_storages, stats.live_device_bytes, stats.live_host_bytes)
}

/// What was alive before: a tensor, and a view of it with holes.
fn bystanders() -> (program::Owned, program::Owned, Vec<i32>) {
    let values: Vec<i32> = (0..100).map(|i| i * 7).collect();
    let tensor = filled(values.clone()).unwrap();
    let holes = view(&tensor, 50, 2).unwrap();
    read(&holes).unwrap();
    (tensor, holes, values)
}

/// Every k at which the fault comes, until the program has no kth occasion.
fn every(fault: Fault, times: u64, codes: &[i32], with_kernels: bool) {
    let (tensor, holes, values) = bystanders();
    // Kernels are compiled before, so that each fault is alone.
    assert_eq!(run(with_kernels), Ok(wanted()));
    checked(aoti_wgpu_trim().cast_signed()).unwrap();
    let before = alive();
    let (mut failed, mut k) = (0, 1);
    loop {
        arm(fault, k, times);
        let result = run(with_kernels);
        let hits = disarm();
        match &result {
            Ok(found) => assert_eq!(*found, wanted(), "{fault:?} at {k}: wrong values, no error"),
            Err(Failure(code, message)) => {
                assert!(codes.contains(code), "{fault:?} at {k}: {code}, {message}");
                assert!(!message.is_empty());
                assert!(hits > 0, "{fault:?} at {k} did not come: {code}, {message}");
                failed += 1;
            }
        }
        // The failure of a batch is told once.
        let _ = aoti_wgpu_synchronize();
        checked(aoti_wgpu_synchronize().cast_signed()).unwrap();
        assert_eq!(alive(), before, "{fault:?} at {k} left something behind");
        assert_eq!(read(&tensor), Ok(values.clone()), "{fault:?} at {k}");
        let wanted_holes: Vec<i32> = values.iter().copied().step_by(2).collect();
        assert_eq!(read(&holes), Ok(wanted_holes), "{fault:?} at {k}");
        assert_eq!(run(with_kernels), Ok(wanted()), "{fault:?} at {k}: the next program");
        checked(aoti_wgpu_trim().cast_signed()).unwrap();
        if hits == 0 {
            break;
        }
        k += 1;
    }
    println!("{fault:?}, {times} at a time: {k} places, {failed} failures");
    assert!(k > 1, "{fault:?} has no place");
}

/// The device is lost at the kth submission, or never where the program has fewer.
fn loss(k: u64) {
    let (tensor, holes, _) = bystanders();
    checked(aoti_wgpu_synchronize().cast_signed()).unwrap();
    arm(Fault::Loss, k, 1);
    let result = run(true);
    if disarm() == 0 {
        assert_eq!(result, Ok(wanted()));
        println!("none");
        return;
    }
    let lost = |failure: Failure| {
        assert_eq!(failure.0, 2, "{}", failure.1);
        assert!(failure.1.contains("lost"), "{}", failure.1);
    };
    if let Err(failure) = result {
        lost(failure);
    }
    for _ in 0..3 {
        lost(checked(aoti_wgpu_synchronize().cast_signed()).unwrap_err());
        lost(empty(16).err().unwrap());
        lost(run(true).unwrap_err());
    }
    drop((holes, tensor));
    let _ = aoti_wgpu_trim();
    assert_eq!(alive(), (0, 0, 0, 0));
    println!("lost");
}

/// The kth kernel does not compile, or all do where the program has fewer.
fn compile(k: u64) {
    let (tensor, holes, values) = bystanders();
    checked(aoti_wgpu_synchronize().cast_signed()).unwrap();
    let before = alive();
    arm(Fault::Compile, k, 1);
    let result = run(true);
    if disarm() == 0 {
        assert_eq!(result, Ok(wanted()));
        println!("none");
        return;
    }
    // The failure is kept with the kernel: it would not compile the next time either.
    for result in [result, run(true)] {
        let Failure(code, message) = result.unwrap_err();
        assert_eq!(code, 0x12, "{message}");
        assert!(message.contains("no shader"), "{message}");
    }
    let _ = aoti_wgpu_synchronize();
    assert_eq!(alive(), before);
    assert_eq!(read(&tensor), Ok(values.clone()));
    assert_eq!(read(&holes), Ok(values.into_iter().step_by(2).collect()));
}

fn again(part: &str, setup: &[(&str, &str)]) -> Result<String, Failed> {
    let output = Command::new(std::env::current_exe()?)
        .env_remove("AOTI_WGPU_BACKEND")
        .env("FAULTS_PART", part)
        .env("RUST_BACKTRACE", "0")
        .envs(setup.iter().copied())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn child(part: &str) {
    let kernels = std::env::var("AOTI_WGPU_BACKEND").as_deref() != Ok("host");
    match part {
        // Once: the pool is emptied and the allocation tried again. For good: it fails.
        "allocation" => {
            every(Fault::Allocation, 1, &[0x21], kernels);
            every(Fault::Allocation, u64::MAX, &[0x21], kernels);
        }
        "submission" => every(Fault::Submission, 1, &[1], kernels),
        "panic" => {
            every(Fault::PanicAtAllocation, 1, &[1], kernels);
            if kernels {
                every(Fault::PanicAtSubmission, 1, &[1], kernels);
            }
        }
        at if at.starts_with("loss") => loss(at.trim_start_matches("loss").parse().unwrap()),
        at => compile(at.trim_start_matches("compile").parse().unwrap()),
    }
}

fn main() {
    if let Ok(part) = std::env::var("FAULTS_PART") {
        return child(&part);
    }
    let arguments = Arguments::from_args();
    let has_gpu = !aoti_wgpu::runtime::list_adapters().is_empty();
    let setups: &[(&str, &[(&str, &str)])] = &[
        ("unified_gpu", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
        ("unified_auto", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "auto")]),
        ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
        (
            "device_batches_of_one",
            &[("AOTI_WGPU_MEMORY", "device"), ("ET_METAL_FLUSH_INTERVAL", "1")],
        ),
        ("host", &[("AOTI_WGPU_BACKEND", "host")]),
    ];
    let mut trials = Vec::new();
    for &(name, setup) in setups {
        let host = name == "host";
        let parts: &[&'static str] = match host {
            true => &["allocation", "panic"],
            false => &["allocation", "submission", "panic"],
        };
        for &part in parts {
            trials.push(
                Trial::test(format!("{part}::{name}"), move || {
                    again(part, setup).map(|text| print!("{text}"))
                })
                .with_ignored_flag(!host && !has_gpu),
            );
        }
        for kind in ["loss", "compile"].iter().filter(|_| !host) {
            let trial = Trial::test(format!("{kind}::{name}"), move || {
                let mut k = 1;
                while !again(&format!("{kind}{k}"), setup)?.contains("none") {
                    k += 1;
                }
                assert!(k > 1, "the program has no place for it");
                println!("{kind}: {} places", k - 1);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(!has_gpu));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
