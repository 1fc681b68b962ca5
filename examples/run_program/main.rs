//! Runs a compiled program from a folder with its inputs, and compares what comes out.
//!
//! The folder holds `model.so`, `weights.blob`, `meta.json`, `inN.npy` and `outN.npy`:
//! see `docs/PROGRAMS.md`. The program finds the library's symbols in the process, so
//! the library is opened `RTLD_GLOBAL` before it.

mod abi;
#[path = "../support/npy.rs"]
mod npy;

use abi::{Handle, Program, Shims};
use clap::Parser;
use npy::{Array, Failure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Run a compiled program and compare its outputs with the expected ones.
#[derive(Parser)]
struct Options {
    /// The program's folder.
    folder: PathBuf,
    /// Ask for a backend: host, vulkan, metal or dx12.
    #[arg(long)]
    backend: Option<String>,
    /// Run this many times in one process.
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Print each call that the library records.
    #[arg(long)]
    trace: bool,
    /// The library, instead of the one beside this program.
    #[arg(long)]
    library: Option<PathBuf>,
}

fn main() {
    let options = Options::parse();
    match run(&options) {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            eprintln!("run_program: {error}");
            std::process::exit(2);
        }
    }
}

/// Sets variables for the library, which reads them at its start.
fn prepare_environment(options: &Options) {
    // SAFETY: the process has one thread at this point.
    unsafe {
        if let Some(backend) = &options.backend {
            std::env::set_var("AOTI_WGPU_BACKEND", backend);
        }
        if options.trace {
            std::env::set_var("RUST_LOG", "aoti_wgpu=trace");
        }
    }
}

fn run(options: &Options) -> Result<bool, Failure> {
    prepare_environment(options);
    let folder = &options.folder;
    let meta = std::fs::read_to_string(folder.join("meta.json"))
        .map_err(|error| format!("{}: {error}", folder.join("meta.json").display()))?;
    let meta: Value = serde_json::from_str(&meta)?;
    let path = match &options.library {
        Some(path) => path.clone(),
        None => Shims::default_path()?,
    };
    let shims = Shims::load(&path)?;
    if options.trace {
        shims.init_logging()?;
    }
    let device = meta["device"].as_str().ok_or("meta.json names no device")?;
    let before = shims.stats()?;
    let started = Instant::now();
    let mut right = true;
    {
        let blob = std::fs::read(folder.join("weights.blob"))?;
        let load = || -> Result<Program<'_>, Failure> {
            let program = Program::load(&shims, &folder.join("model.so"), device)?;
            program.update_constants(&blob)?;
            Ok(program)
        };
        let mut program = Some(load()?);
        let inputs = tensors(folder, "in", &meta["inputs"], "")?;
        let expected = tensors(folder, "out", &meta["outputs"], "")?;
        let mut after_first = (0, 0);
        let mut times = Vec::new();
        // Programs that change a constant are right in their first run alone.
        let stateful = meta["name"].as_str().is_some_and(|n| matches!(n, "kv_cache" | "two_const"))
            || meta["name"].as_str().is_some_and(|n| n.starts_with("gated_delta_rule"));
        for repeat in 0..options.repeat {
            if stateful && repeat > 0 {
                // The old container goes first: its constants are counted below.
                drop(program.take());
                program = Some(load()?);
            }
            let program = program.as_ref().ok_or("no program is loaded")?;
            let mut run = Run { shims: &shims, meta: &meta, device, folder };
            let (ok, seconds) = run.once(program, &inputs, &expected, repeat == 0)?;
            right &= ok;
            times.push(seconds);
            if repeat == 0 {
                println!(
                    "time to the first result: {:.1} ms",
                    started.elapsed().as_secs_f64() * 1e3
                );
            }
            let stats = shims.stats()?;
            let now = (stats.live_handles, stats.live_device_bytes + stats.live_host_bytes);
            if repeat == 0 {
                after_first = now;
            } else if now != after_first {
                println!(
                    "run {repeat}: live handles and bytes {now:?}, after the first {after_first:?}"
                );
                right = false;
            }
        }
        report_times(&times);
    }
    shims.synchronize()?;
    let after = shims.stats()?;
    println!(
        "live after: {} handles, {} storages, {} device bytes, {} host bytes; {} dispatches, {} \
         submits, {} packs",
        after.live_handles,
        after.live_storages,
        after.live_device_bytes,
        after.live_host_bytes,
        after.dispatches,
        after.submits,
        after.packs
    );
    let returned = after.live_handles == before.live_handles
        && after.live_storages == before.live_storages
        && after.live_device_bytes == before.live_device_bytes
        && after.live_host_bytes == before.live_host_bytes;
    if !returned {
        println!("something was left behind");
    }
    println!("{}", if right && returned { "right" } else { "WRONG" });
    Ok(right && returned)
}

fn report_times(times: &[f64]) {
    let mut rest: Vec<f64> = times.iter().skip(1).copied().collect();
    rest.sort_by(f64::total_cmp);
    if let (Some(median), Some(first), Some(last)) =
        (rest.get(rest.len() / 2), times.get(1), times.last())
    {
        println!(
            "a run: median {:.1} us of {}, second {:.1} us, last {:.1} us",
            median * 1e6,
            rest.len(),
            first * 1e6,
            last * 1e6
        );
    }
}

/// A tensor of a folder: its data and what meta.json says of it.
struct Described {
    array: Array,
    dtype: String,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().map(|a| a.iter().filter_map(Value::as_i64).collect()).unwrap_or_default()
}

fn tensors(
    folder: &Path,
    stem: &str,
    list: &Value,
    suffix: &str,
) -> Result<Vec<Described>, Failure> {
    let list = list.as_array().ok_or("meta.json lacks a list of tensors")?;
    list.iter()
        .enumerate()
        .map(|(i, entry)| {
            Ok(Described {
                array: npy::read(&folder.join(format!("{stem}{i}{suffix}.npy")))?,
                dtype: entry["dtype"].as_str().ok_or("a tensor without a dtype")?.to_owned(),
                shape: integers(&entry["shape"]),
                strides: integers(&entry["stride"]),
            })
        })
        .collect()
}

struct Run<'a> {
    shims: &'a Shims,
    meta: &'a Value,
    device: &'a str,
    folder: &'a Path,
}

impl Run<'_> {
    /// One run; whether it was right, and the seconds from the call to the last wait.
    fn once(
        &mut self,
        program: &Program<'_>,
        inputs: &[Described],
        expected: &[Described],
        print: bool,
    ) -> Result<(bool, f64), Failure> {
        let shims = self.shims;
        let device = shims.device(self.device)?;
        let mut handles = Vec::new();
        // A second handle to each changed input outlives the run.
        let mutated = integers(&self.meta["mutated_inputs"]);
        let mut kept: Vec<(usize, Handle)> = Vec::new();
        for (i, input) in inputs.iter().enumerate() {
            let dtype = shims.dtype(&input.dtype)?;
            let tensor = shims.empty(&input.shape, &input.strides, dtype, device)?;
            let mut bytes = input.array.bytes.clone();
            let host = shims.blob(&mut bytes, &input.shape, dtype)?;
            shims.copy(tensor, host)?;
            shims.delete(host)?;
            if mutated.contains(&(i as i64)) {
                kept.push((i, shims.second_handle(tensor)?));
            }
            handles.push(tensor);
        }
        shims.synchronize()?;
        let mut outputs = vec![std::ptr::null_mut(); program.outputs()?];
        let started = Instant::now();
        program.run(&mut handles, &mut outputs)?;
        shims.synchronize()?;
        let seconds = started.elapsed().as_secs_f64();
        let mut right = outputs.len() == expected.len();
        for (i, (&output, expected)) in outputs.iter().zip(expected).enumerate() {
            let ok = self.compare(&format!("output {i}"), output, expected, print)?;
            right &= ok;
            shims.delete(output)?;
        }
        if !kept.is_empty() {
            for (i, handle) in kept {
                let after = npy::read(&self.folder.join(format!("in{i}_after.npy")))?;
                let input = inputs.get(i).ok_or("a changed input that is not there")?;
                let expected = Described {
                    array: after,
                    dtype: input.dtype.clone(),
                    shape: input.shape.clone(),
                    strides: input.strides.clone(),
                };
                right &= self.compare(&format!("input {i} after"), handle, &expected, print)?;
                shims.delete(handle)?;
            }
        }
        Ok((right, seconds))
    }

    fn compare(
        &self,
        name: &str,
        handle: Handle,
        expected: &Described,
        print: bool,
    ) -> Result<bool, Failure> {
        let (sizes, strides, dtype) = self.shims.describe(handle)?;
        let shape_right = sizes == expected.shape && dtype == self.shims.dtype(&expected.dtype)?;
        if !shape_right {
            println!("{name}: sizes {sizes:?} and dtype {dtype}, expected {:?}", expected.shape);
            return Ok(false);
        }
        let mut bytes = vec![0u8; expected.array.bytes.len()];
        let host = self.shims.blob(&mut bytes, &sizes, dtype)?;
        let copied = self.shims.copy(host, handle);
        self.shims.delete(host)?;
        copied?;
        let tolerance = &self.meta["tolerance"];
        let (atol, rtol) =
            (tolerance["atol"].as_f64().unwrap_or(0.0), tolerance["rtol"].as_f64().unwrap_or(0.0));
        let found = numbers(&bytes, &expected.dtype)?;
        let wanted = numbers(&expected.array.bytes, &expected.dtype)?;
        let float =
            matches!(expected.dtype.as_str(), "float16" | "bfloat16" | "float32" | "float64");
        let mut worst = 0.0f64;
        let mut wrong = 0usize;
        for (&a, &b) in found.iter().zip(&wanted) {
            let same = a == b || (a.is_nan() && b.is_nan());
            let error = if same { 0.0 } else { (a - b).abs() };
            let close = same || (float && error <= atol + rtol * b.abs());
            wrong += usize::from(!close);
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
        if print || wrong > 0 {
            println!(
                "{name}: {} {:?} strides {strides:?}, largest error {worst:.3e}, {wrong} of {} wrong",
                expected.dtype,
                sizes,
                found.len()
            );
        }
        Ok(wrong == 0)
    }
}

/// Elements as numbers; a 64-bit integer as two, so that every bit counts.
fn numbers(bytes: &[u8], dtype: &str) -> Result<Vec<f64>, Failure> {
    macro_rules! each {
        ($t:ty, $n:literal, $f:expr) => {
            bytes
                .chunks_exact($n)
                .filter_map(|c| <[u8; $n]>::try_from(c).ok())
                .map(|c| $f(<$t>::from_ne_bytes(c)))
                .collect()
        };
    }
    Ok(match dtype {
        "bool" | "uint8" => bytes.iter().map(|&b| f64::from(b)).collect(),
        "int8" => each!(i8, 1, f64::from),
        "int16" => each!(i16, 2, f64::from),
        "int32" => each!(i32, 4, f64::from),
        "int64" => bytes
            .chunks_exact(4)
            .filter_map(|c| <[u8; 4]>::try_from(c).ok())
            .map(|c| f64::from(u32::from_ne_bytes(c)))
            .collect(),
        "float16" => each!(half::f16, 2, |v: half::f16| v.to_f64()),
        "bfloat16" => each!(half::bf16, 2, |v: half::bf16| v.to_f64()),
        "float32" => each!(f32, 4, f64::from),
        "float64" => each!(f64, 8, |v| v),
        other => return Err(format!("outputs of {other} are not compared here").into()),
    })
}
