//! How fast strided views are packed, written through and converted, against a contiguous
//! compute copy of the same run; with `--ops`, how fast operators run.
//!
//! Every copy is checked in full at a small size before it is timed at the size asked for.
//! GB/s counts the bytes of the elements read plus those written.

mod cases;
mod chart;
mod operators;
mod table;
mod timing;

use aoti_wgpu::copy::plan::CopyPlan;
use aoti_wgpu::copy::{convert, host};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::{Error, Result};
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{Arguments, Config, CopyEngine, Grid, Runtime};
use aoti_wgpu::tensor::{DeviceType, Tensor};
use cases::Case;
use clap::Parser;
use std::path::PathBuf;
use std::time::Instant;
use table::Table;
use timing::best_of_five;

/// Measure the copy engine, or the operators.
#[derive(Parser)]
struct Options {
    /// Bytes of an output, in MiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(i64).range(1..=65536))]
    size: i64,
    /// Only cases whose name contains this; what they are held against always runs.
    #[arg(long)]
    case: Option<String>,
    /// Measure operators instead of copies.
    #[arg(long, conflicts_with_all = ["host", "svg"])]
    ops: bool,
    /// Divide every size of the operators by 1, 2, 4, 8, 16 or 32, for slow devices.
    #[arg(long, default_value_t = 1, requires = "ops", value_parser = operators::shrink)]
    shrink: u32,
    /// Copies or calls in a timed batch.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Let the host copy where it can reach the memory (otherwise the shaders are measured).
    #[arg(long)]
    host: bool,
    /// Print the rows as a Markdown table.
    #[arg(long)]
    markdown: bool,
    /// Write the figures as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draw the figures as SVG.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// A case's figures: GB/s by the GPU's clock and by the host's.
pub struct Figures {
    pub name: &'static str,
    pub gpu: Option<f64>,
    pub wall: f64,
    pub target: f64,
}

impl Figures {
    /// The better clock there is.
    pub fn rate(&self) -> f64 {
        self.gpu.unwrap_or(self.wall)
    }
}

fn main() {
    if let Err(error) = run(&Options::parse()) {
        eprintln!("bandwidth: {error}");
        std::process::exit(1);
    }
}

fn run(options: &Options) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let copy = if options.host { CopyEngine::Host } else { CopyEngine::Gpu };
    let rt = Runtime::new(Config { copy, ..Config::from_env()? });
    let adapter = rt.adapter_info()?;
    if options.ops && adapter.backend == "host" {
        return Err("--ops: operators need a GPU, and the backend is the host".into());
    }
    println!(
        "{} ({}, {}), {} memory; copies of {} MiB, {} a batch, best of 5",
        adapter.name,
        adapter.backend,
        adapter.driver,
        adapter.memory_mode,
        options.size,
        options.batch
    );
    let mut text = serde_json::json!({ "adapter": adapter.name, "driver": adapter.driver,
                                       "mib": options.size });
    let mut failed = 0;
    if options.ops {
        let contiguous = |bytes| cases::all(bytes).map(|all| all.into_iter().next());
        let (Some(small), Some(large)) = (contiguous(3 << 20)?, contiguous(options.size << 20)?)
        else {
            return Err("there is no contiguous copy".into());
        };
        verify(&rt, &small)?;
        let copy = measure(&rt, &large, options.batch)?.rate();
        rt.trim()?;
        text["shrink"] = options.shrink.into();
        text["copy_gb_s"] = copy.into();
        let rows;
        (rows, failed) = operators::run(&rt, options, copy)?;
        text["cases"] = rows.into();
    } else {
        let all = copies(&rt, options)?;
        small_packs(&rt)?;
        if adapter.backend != "host" {
            dispatches(&rt)?;
        }
        if let Some(path) = &options.svg {
            std::fs::write(path, chart::draw(&adapter.name, &all))?;
        }
        let row = |f: &Figures| {
            serde_json::json!({
                "case": f.name, "gpu_gb_s": f.gpu, "wall_gb_s": f.wall, "target": f.target,
            })
        };
        text["cases"] = all.iter().map(row).collect();
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&text)?)?;
    }
    if failed > 0 {
        return Err(format!("{failed} cases failed").into());
    }
    Ok(())
}

/// Measures and prints the copies.
fn copies(rt: &Runtime, options: &Options) -> Result<Vec<Figures>> {
    let table = Table::new(
        &[("case", 40), ("GPU GB/s", 9), ("wall GB/s", 9), ("ratio", 7), ("target", 7), ("met", 3)],
        options.markdown,
    );
    let small = cases::all(3 << 20)?;
    let large = cases::all(options.size << 20)?;
    let mut all: Vec<Figures> = Vec::new();
    for (small, large) in small.iter().zip(&large) {
        let wanted = options.case.as_ref().is_none_or(|text| large.name.contains(text.as_str()));
        if !wanted && large.name != "contiguous" {
            continue;
        }
        verify(rt, small)?;
        let figures = measure(rt, large, options.batch)?;
        let ratio = figures.rate() / all.first().map_or(figures.rate(), Figures::rate);
        table.row(&[
            figures.name.into(),
            figures.gpu.map_or("-".into(), |rate| format!("{rate:.1}")),
            format!("{:.1}", figures.wall),
            format!("{ratio:.3}"),
            format!("{:.2}", figures.target),
            yes(ratio >= figures.target).into(),
        ]);
        all.push(figures);
        rt.trim()?;
    }
    table.end();
    Ok(all)
}

/// In a column of targets that are met.
fn yes(met: bool) -> &'static str {
    if met { "yes" } else { "no" }
}

/// A tensor of a side of a case, over a base of zeros that holds it.
fn side(rt: &Runtime, layout: &Layout, dtype: DType) -> Result<Tensor> {
    let bytes = i64::try_from(layout.end_bytes(dtype.size())?).unwrap_or(i64::MAX);
    let base = rt.empty(Layout::of_bytes(bytes)?, DType::U8, DeviceType::Mps)?;
    rt.zero(&base)?;
    over(rt, &base, layout, dtype)
}

/// A layout of another type over the bytes of a base.
fn over(rt: &Runtime, base: &Tensor, layout: &Layout, dtype: DType) -> Result<Tensor> {
    let offset = layout.offset() * dtype.size() as i64;
    rt.view_bytes(base, offset, dtype, layout.sizes(), layout.strides())
}

/// Runs the case on the device and compares with the host's plan, bit for bit.
fn verify(rt: &Runtime, case: &Case) -> Result<()> {
    let noise = |count: u64, salt: u64| -> Vec<u8> {
        (0..count).map(|i| ((i + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    };
    let (dst_bytes, src_bytes) =
        (case.dst.end_bytes(case.dst_dtype.size())?, case.src.end_bytes(case.src_dtype.size())?);
    let (mut expected, source) = (noise(dst_bytes, 3), noise(src_bytes, 11));
    let bytes = |of: &[u8]| rt.from_bytes(of, &[of.len() as i64], DType::U8, DeviceType::Mps);
    let (dst_base, src_base) = (bytes(&expected)?, bytes(&source)?);
    let dst = over(rt, &dst_base, &case.dst, case.dst_dtype)?;
    let src = over(rt, &src_base, &case.src, case.src_dtype)?;
    rt.copy(&dst, &src, false)?;
    if case.dst_dtype == case.src_dtype {
        let plan = CopyPlan::new(&case.dst, &case.src, case.dst_dtype.size())?;
        host::run_slices(&plan, &mut expected, &source)?;
    } else {
        let plan = convert::ConvertPlan::new(
            (&case.dst, 0, case.dst_dtype),
            (&case.src, 0, case.src_dtype),
        )?;
        convert::run_slices(&plan, &mut expected, &source)?;
    }
    if rt.to_vec(&dst_base)? == expected {
        Ok(())
    } else {
        Err(Error::Internal(format!("{}: the result is wrong", case.name)))
    }
}

fn measure(rt: &Runtime, case: &Case, batch: u32) -> Result<Figures> {
    let dst = side(rt, &case.dst, case.dst_dtype)?;
    let src = side(rt, &case.src, case.src_dtype)?;
    let moved = case.dst.packed_bytes(case.dst_dtype.size())?
        + case.src.packed_bytes(case.src_dtype.size())?;
    let seconds = best_of_five(rt, batch, |_| rt.copy(&dst, &src, true))?;
    let rate = |seconds: f64| moved as f64 / seconds / 1e9;
    Ok(Figures {
        name: case.name,
        gpu: seconds.gpu.map(rate),
        wall: rate(seconds.wall),
        target: case.target,
    })
}

/// 1,000 dispatches of a small kernel with three buffers: what the host spends on each.
fn dispatches(rt: &Runtime) -> Result<()> {
    let count = 1000;
    let source = "kernel void add(device float* a, constant float* b, constant float* c, \
                  uint i [[thread_position_in_grid]]) { a[i] = b[i] + c[i]; }";
    let function = rt.kernel_library(source)?.function("add")?;
    let zeros = || rt.from_slice(&[0f32; 256], &[256], DType::F32, DeviceType::Mps);
    let (a, b, c) = (zeros()?, zeros()?, zeros()?);
    let mut arguments = Arguments::default();
    let mut best = f64::INFINITY;
    for round in 0..10 {
        let started = Instant::now();
        for _ in 0..count {
            arguments.clear();
            for (i, tensor) in (0..).zip([&a, &b, &c]) {
                arguments.set_tensor(i, tensor)?;
            }
            rt.dispatch(&function, &mut arguments, Grid { threads: [256, 1, 1], group: None })?;
        }
        if round > 0 {
            best = best.min(started.elapsed().as_secs_f64());
        }
        rt.synchronize()?;
    }
    println!(
        "kernel dispatches: {:.2} us of host time each, {count} in a batch",
        best * 1e6 / f64::from(count)
    );
    Ok(())
}

/// 1,000 packs of 16 KiB views in a batch: what the host spends on each.
fn small_packs(rt: &Runtime) -> Result<()> {
    let count = 1000;
    let layout = Layout::contiguous(&[64, 128])?;
    let base = rt.empty(layout, DType::F32, DeviceType::Mps)?;
    rt.zero(&base)?;
    let view = rt.view(&base, &[64, 64], &[128, 1], 0)?;
    let out = rt.packed(&view)?;
    rt.synchronize()?;
    rt.set_flush_interval(0);
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let started = Instant::now();
        for _ in 0..count {
            rt.copy(&out, &view, true)?;
        }
        best = best.min(started.elapsed().as_secs_f64());
        rt.synchronize()?;
    }
    println!(
        "small packs: {:.2} us of host time each, {count} of 16 KiB in a batch",
        best * 1e6 / f64::from(count)
    );
    Ok(())
}
