//! Random sequences of every C function against a model in plain Rust.
//!
//! The runtime reads its environment once a process, so each set-up is a process of its
//! own: this binary runs itself again. A failing sequence is cut down by leaving out
//! operations, and printed with the variables that repeat it:
//! `STATE_SEED`, `STATE_OPS` and `STATE_SKIP`.
//!
//! `SOAK_OPS` sets the number of operations a set-up, `SOAK_SEED` the first seed,
//! `SOAK_RUNS` how often a program runs again, and `SOAK_RESIDENT_MB` by how much the process
//! may grow meanwhile (a sanitizer's allocator keeps more).

mod hostile;
mod machine;
mod model;
mod repeat;
mod threads;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

/// Operations between two times at which everything is deleted and nothing may be left.
const SPAN: u64 = 500;

const SETUPS: &[(&str, &[(&str, &str)])] = &[
    ("unified_gpu", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "gpu")]),
    ("unified_auto", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_COPY", "auto")]),
    ("device_gpu", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "gpu")]),
    ("device_auto", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_COPY", "auto")]),
    ("strided", &[("AOTI_WGPU_VIEWS", "strided"), ("AOTI_WGPU_COPY", "gpu")]),
    ("batches_of_one", &[("ET_METAL_FLUSH_INTERVAL", "1"), ("ET_METAL_BUFFER_POOL_SIZE_MB", "0")]),
    ("host", &[("AOTI_WGPU_BACKEND", "host")]),
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Ranges as "3-7,9-9".
fn parse_ranges(text: &str) -> Vec<(u64, u64)> {
    text.split(',')
        .filter_map(|range| range.split_once('-'))
        .map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()))
        .collect()
}

fn run_again(part: &str, setup: &[(&str, &str)], more: &[(&str, String)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .env("STATE_PART", part)
        .env("RUST_BACKTRACE", "0")
        .envs(setup.iter().copied())
        .envs(more.iter().map(|(name, value)| (*name, value.as_str())))
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    format!(
        "{}\n{}",
        output.status,
        text.lines()
            .rev()
            .take(30)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join("\n")
    )
}

/// Leaves out as many operations as can be left out of a failing sequence.
fn shrink(setup: &[(&str, &str)], seed: u64, ops: u64) -> (String, String) {
    let attempt = |skip: &[(u64, u64)]| {
        let skip: Vec<String> = skip.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        let more = [
            ("STATE_SEED", seed.to_string()),
            ("STATE_OPS", ops.to_string()),
            ("STATE_SKIP", skip.join(",")),
        ];
        run_again("machine", setup, &more)
    };
    let mut skip: Vec<(u64, u64)> = Vec::new();
    let mut last = attempt(&skip);
    let mut tries = 0;
    let mut size = ops.div_ceil(2);
    while size > 0 && tries < 150 {
        let mut start = 0;
        while start < ops && tries < 150 {
            let mut next = skip.clone();
            let range = (start, (start + size - 1).min(ops - 1));
            if !skip.iter().any(|&(a, b)| a <= range.0 && range.1 <= b) {
                next.push(range);
                tries += 1;
                let output = attempt(&next);
                if !output.status.success() {
                    skip = next;
                    last = output;
                }
            }
            start += size;
        }
        size /= 2;
    }
    let skip: Vec<String> = skip.iter().map(|(a, b)| format!("{a}-{b}")).collect();
    (skip.join(","), text(&last))
}

fn machine(setup: &'static [(&'static str, &'static str)]) -> Result<(), Failed> {
    let total = number("SOAK_OPS", 1500);
    let first = number("SOAK_SEED", 1);
    // A process a few thousand operations, so that a failure is found in a short one.
    let ops = total.min(number("STATE_OPS", 20_000));
    for seed in first..first + total.div_ceil(ops) {
        let more = [("STATE_SEED", seed.to_string()), ("STATE_OPS", ops.to_string())];
        let output = run_again("machine", setup, &more);
        if !output.status.success() {
            let whole = text(&output);
            let (skip, shrunk) = match std::env::var_os("STATE_NO_SHRINK") {
                Some(_) => (String::new(), String::new()),
                None => shrink(setup, seed, ops),
            };
            return Err(format!(
                "replay: STATE_PART=machine STATE_SEED={seed} STATE_OPS={ops} STATE_SKIP={skip} \
                 {setup:?}\n{whole}\nwith operations left out:\n{shrunk}"
            )
            .into());
        }
    }
    Ok(())
}

fn part(name: &str, setup: &[(&str, &str)]) -> Result<(), Failed> {
    let output = run_again(name, setup, &[]);
    if output.status.success() { Ok(()) } else { Err(text(&output).into()) }
}

/// The same bits from a process alone and from two while another keeps the adapter and the
/// processor's cores busy.
fn under_load(setup: &[(&str, &str)]) -> Result<(), Failed> {
    let bits = || -> Result<String, Failed> {
        let runs = number("SOAK_RUNS", 100).min(1000);
        let output = run_again("repeat", setup, &[("SOAK_RUNS", runs.to_string())]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = printed.lines().find(|line| line.starts_with("bits "));
        match (output.status.success(), line) {
            (true, Some(line)) => Ok(line.to_owned()),
            _ => Err(text(&output).into()),
        }
    };
    let alone = bits()?;
    let mut busy = Command::new(std::env::current_exe()?)
        .env("STATE_PART", "busy")
        .envs(setup.iter().copied())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    BufReader::new(busy.stdout.take().ok_or("no pipe")?).read_line(&mut first)?;
    let under_load = [bits(), bits()];
    let ended = busy.try_wait()?;
    busy.kill()?;
    busy.wait()?;
    if let (None, "busy\n") = (ended, first.as_str()) {
        for bits in under_load {
            assert_eq!(bits?, alone);
        }
        return Ok(());
    }
    Err(format!("the other process ended early: {ended:?}").into())
}

fn main() {
    match std::env::var("STATE_PART").as_deref() {
        Ok("machine") => {
            let skip = parse_ranges(&std::env::var("STATE_SKIP").unwrap_or_default());
            machine::run(number("STATE_SEED", 1), number("STATE_OPS", 1500), SPAN, &skip);
            return;
        }
        Ok("repeat") => return repeat::run(number("SOAK_RUNS", 100)),
        Ok("busy") => return repeat::busy(),
        Ok("limits") => return repeat::limits(),
        Ok("hostile") => return hostile::run(),
        Ok("threads") => return threads::run(number("SOAK_OPS", 1500)),
        _ => {}
    }
    let arguments = Arguments::from_args();
    let has_gpu = !aoti_wgpu::runtime::list_adapters().is_empty();
    let mut trials = Vec::new();
    for &(name, setup) in SETUPS {
        let skipped = name != "host" && !has_gpu;
        trials.push(
            Trial::test(format!("machine::{name}"), move || machine(setup))
                .with_ignored_flag(skipped),
        );
        trials.push(
            Trial::test(format!("load::{name}"), move || under_load(setup))
                .with_ignored_flag(skipped),
        );
        for kind in ["hostile", "threads", "repeat"] {
            trials.push(
                Trial::test(format!("{kind}::{name}"), move || part(kind, setup))
                    .with_ignored_flag(skipped),
            );
        }
    }
    let setups: [(&str, &[(&str, &str)]); 3] = [
        ("unified", &[("AOTI_WGPU_MEMORY", "unified"), ("AOTI_WGPU_MEMORY_LIMIT_MB", "8")]),
        ("device", &[("AOTI_WGPU_MEMORY", "device"), ("AOTI_WGPU_MEMORY_LIMIT_MB", "8")]),
        ("host", &[("AOTI_WGPU_BACKEND", "host"), ("AOTI_WGPU_MEMORY_LIMIT_MB", "8")]),
    ];
    for (name, setup) in setups {
        trials.push(
            Trial::test(format!("limits::{name}"), move || part("limits", setup))
                .with_ignored_flag(name != "host" && !has_gpu),
        );
    }
    libtest_mimic::run(&arguments, trials).exit();
}
