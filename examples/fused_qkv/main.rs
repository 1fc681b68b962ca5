//! A fused QKV activation, split by three strided views that are packed on the GPU.
//!
//! (1, 2048, 3, 32, 64): each of q, k and v is every third row of 32 x 64 elements. The
//! packed views are checked against a walk over the base on the host, element by element.

use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{Config, CopyEngine, Runtime};
use aoti_wgpu::tensor::{DeviceType, Tensor};
use std::time::Instant;

const TOKENS: i64 = 2048;
const HEADS: i64 = 32;
const HEAD: i64 = 64;
const SIZES: [i64; 5] = [1, TOKENS, 3, HEADS, HEAD];
/// How often a pack is timed, after one that compiles the kernel.
const ROUNDS: u32 = 10;

fn main() {
    if let Err(error) = run() {
        eprintln!("fused_qkv: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    env_logger::init();
    // The shaders are what this shows, also where the adapter is the CPU.
    let rt = Runtime::new(Config { copy: CopyEngine::Gpu, ..Config::from_env()? });
    let adapter = rt.adapter_info()?;
    println!(
        "{} ({}, {}, {}), {} memory",
        adapter.name, adapter.backend, adapter.device_type, adapter.driver, adapter.memory_mode
    );
    for dtype in [DType::F32, DType::BF16] {
        split(&rt, dtype)?;
    }
    let stats = rt.stats();
    println!(
        "dispatches {}, submits {}, packs {}, packs skipped {}, pool hits {}, pool misses {}",
        stats.dispatches,
        stats.submits,
        stats.packs,
        stats.packs_skipped,
        stats.pool_hits,
        stats.pool_misses
    );
    println!(
        "live: {} storages, {} device bytes, {} host bytes",
        stats.live_storages, stats.live_device_bytes, stats.live_host_bytes
    );
    Ok(())
}

fn split(rt: &Runtime, dtype: DType) -> Result<()> {
    let element = dtype.size();
    let base_layout = Layout::contiguous(&SIZES)?;
    let bytes = base_layout.packed_bytes(element)? as usize;
    let base_bytes: Vec<u8> = (0..bytes as u64).map(noise).collect();
    let base = rt.from_bytes(&base_bytes, &SIZES, dtype, DeviceType::Mps)?;
    for (i, name) in (0i64..).zip(["q", "k", "v"]) {
        let sizes = [1, TOKENS, HEADS, HEAD];
        let row = HEADS * HEAD;
        let strides = [TOKENS * 3 * row, 3 * row, HEAD, 1];
        let view = rt.view(&base, &sizes, &strides, i * row)?;
        let seconds = time_pack(rt, &base, &view)?;
        let packed = rt.packed(&view)?;
        let found = rt.to_vec(&packed)?;
        let wrong = count_wrong(&found, &base_bytes, view.strided_layout(), element);
        let moved = 2.0 * found.len() as f64;
        println!(
            "{dtype} {name}: {} bytes packed in {:.3} ms, {:.2} GB/s read plus written, {} of {} \
             elements wrong",
            found.len(),
            seconds * 1e3,
            moved / seconds / 1e9,
            wrong,
            view.numel()
        );
        if wrong > 0 {
            return Err(aoti_wgpu::error::Error::Internal(format!(
                "{name} of {dtype} was packed wrongly"
            )));
        }
    }
    Ok(())
}

/// Bytes without a pattern that a wrong stride could hide in.
fn noise(i: u64) -> u8 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Seconds of one pack: the best of several, each with the base marked as written.
fn time_pack(rt: &Runtime, base: &Tensor, view: &Tensor) -> Result<f64> {
    let mut best = f64::INFINITY;
    for round in 0..=ROUNDS {
        rt.mark_written(base)?;
        rt.synchronize()?;
        let started = Instant::now();
        rt.packed(view)?;
        rt.synchronize()?;
        let seconds = started.elapsed().as_secs_f64();
        if round > 0 {
            best = best.min(seconds);
        }
    }
    Ok(best)
}

/// Compares with a walk over the base, one element at a time.
fn count_wrong(found: &[u8], base: &[u8], layout: &Layout, element: usize) -> usize {
    let mut wrong = 0;
    let mut index = vec![0i64; layout.rank()];
    for element_found in found.chunks_exact(element) {
        let place: i64 = index.iter().zip(layout.strides()).map(|(i, stride)| i * stride).sum();
        let at = (layout.offset() + place) as usize * element;
        wrong += usize::from(base.get(at..at + element) != Some(element_found));
        for (i, &size) in index.iter_mut().zip(layout.sizes()).rev() {
            *i += 1;
            if *i < size {
                break;
            }
            *i = 0;
        }
    }
    wrong
}
