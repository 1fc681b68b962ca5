//! The kernels' rates on the first adapter, GB/s read plus written, and as a fraction of
//! the contiguous compute copy of the same run.
//!
//! `copy_rates [DIVISOR] [CASE]`: outputs of about 1 GiB divided by DIVISOR; only cases
//! whose name holds CASE. `COPY_UNCHECKED=1` compiles without bounds checks.

#[path = "../tests/support/gpu.rs"]
#[allow(dead_code)]
mod gpu;

use aoti_wgpu::copy::convert::ConvertPlan;
use aoti_wgpu::copy::device::{Launches, convert_launches, launches};
use aoti_wgpu::copy::plan::CopyPlan;
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use std::time::Instant;

fn l(s: &[i64], st: &[i64], o: i64) -> Layout {
    Layout::new(s, st, o).unwrap()
}
fn c(s: &[i64]) -> Layout {
    Layout::contiguous(s).unwrap()
}
fn perm(sizes: &[i64], order: &[usize]) -> Layout {
    let base = c(sizes);
    l(
        &order.iter().map(|&d| sizes[d]).collect::<Vec<_>>(),
        &order.iter().map(|&d| base.strides()[d]).collect::<Vec<_>>(),
        0,
    )
}

struct Bench {
    gpu: gpu::Gpu,
    dst: wgpu::Buffer,
    src: wgpu::Buffer,
    reference: f64,
    filter: String,
    reps: usize,
}
impl Bench {
    fn time(&mut self, name: &str, list: &Launches, moved: u64) {
        if !name.contains(&self.filter) && name != "contiguous 1 GiB" {
            return;
        }
        let gpu = &self.gpu;
        gpu.run(list, &self.dst, &self.src, 2);
        gpu.wait();
        let mut best = f64::MAX;
        for _ in 0..3 {
            let t = Instant::now();
            gpu.run(list, &self.dst, &self.src, 2);
            gpu.wait();
            let a = t.elapsed();
            let t = Instant::now();
            gpu.run(list, &self.dst, &self.src, 2 + self.reps);
            gpu.wait();
            let b = t.elapsed();
            best = best.min((b.as_secs_f64() - a.as_secs_f64()) / self.reps as f64);
        }
        let rate = moved as f64 / best / 1e9;
        if self.reference == 0.0 {
            self.reference = rate;
        }
        println!(
            "{name:44} {rate:8.0} GB/s  {:.2}  {:8.1} us  {} x {:?}",
            rate / self.reference,
            best * 1e6,
            list.len(),
            list[0].kernel
        );
    }
    fn copy(&mut self, name: &str, dst: &Layout, src: &Layout, el: usize) {
        let plan = CopyPlan::new(dst, src, el).unwrap();
        let mut list = Launches::new();
        if let Err(e) =
            launches(&plan, self.dst.size(), self.src.size(), &self.gpu.limits(), &mut list)
        {
            println!("{name}: {e}");
            return;
        }
        self.time(name, &list, 2 * plan.bytes());
    }
    fn convert(&mut self, name: &str, dst: &Layout, to: DType, src: &Layout, from: DType) {
        let plan = ConvertPlan::new((dst, 0, to), (src, 0, from)).unwrap();
        let mut list = Launches::new();
        convert_launches(&plan, self.dst.size(), self.src.size(), &self.gpu.limits(), &mut list)
            .unwrap();
        self.time(name, &list, dst.numel() as u64 * (to.size() + from.size()) as u64);
    }
}
fn main() {
    let scale: i64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    let filter = std::env::args().nth(2).unwrap_or_default();
    let g = gpu::Gpu::new().expect("adapter");
    println!("{:?}", g.limits());
    let buf = (1u64 << 31) / scale as u64;
    let (dst, src) = (g.buffer(buf), g.buffer(buf));
    let mut b =
        Bench { gpu: g, dst, src, reference: 0.0, filter, reps: if scale > 8 { 5 } else { 20 } };
    let n = (256i64 << 20) / scale; // f32 of 1 GiB
    b.copy("contiguous 1 GiB", &c(&[n]), &c(&[n]), 4);
    b.copy("contiguous words off by one", &c(&[n]), &l(&[n], &[1], 1), 4);
    b.copy("f32 half of last", &c(&[n / 64, 64]), &l(&[n / 64, 64], &[128, 1], 0), 4);
    b.copy("f32 half, written", &l(&[n / 64, 64], &[128, 1], 0), &c(&[n / 64, 64]), 4);
    b.copy("f32 30 of 64 (8 B units)", &c(&[n / 64, 30]), &l(&[n / 64, 30], &[64, 1], 0), 4);
    b.copy("f32 63 of 128", &c(&[n / 64, 63]), &l(&[n / 64, 63], &[128, 1], 1), 4);
    b.copy("f32 63 of 128, written", &l(&[n / 64, 63], &[128, 1], 1), &c(&[n / 64, 63]), 4);
    b.copy("f32 8 of 16, written", &l(&[n / 16, 8], &[16, 1], 0), &c(&[n / 16, 8]), 4);
    b.copy("f32 8 of 16", &c(&[n / 16, 8]), &l(&[n / 16, 8], &[16, 1], 0), 4);
    b.copy("f32 every second", &c(&[n]), &l(&[n], &[2], 0), 4);
    b.copy("f32 every second, written", &l(&[n], &[2], 0), &c(&[n]), 4);
    let r = 131072 / scale;
    b.copy("f32 column slice transpose", &c(&[2048, r]), &l(&[2048, r], &[1, 4096], 0), 4);
    b.copy("f32 transpose", &c(&[2048, r]), &l(&[2048, r], &[1, 2048], 0), 4);
    b.copy("f32 transpose, odd", &c(&[2001, r - 7]), &l(&[2001, r - 7], &[1, 2001], 0), 4);
    b.copy("f32 transpose, written", &l(&[2048, r], &[1, 2048], 0), &c(&[2048, r]), 4);
    b.copy("bf16 transpose", &c(&[4096, r]), &l(&[4096, r], &[1, 4096], 0), 2);
    b.copy("bf16 transpose, odd", &c(&[4001, r - 7]), &l(&[4001, r - 7], &[1, 4001], 0), 2);
    b.copy("i64 transpose", &c(&[1024, r]), &l(&[1024, r], &[1, 1024], 0), 8);
    b.copy("i64 transpose, odd", &c(&[1001, r - 7]), &l(&[1001, r - 7], &[1, 1001], 0), 8);
    b.copy("c128 transpose", &c(&[512, r]), &l(&[512, r], &[1, 512], 0), 16);
    b.copy("u8 transpose", &c(&[4096, r]), &l(&[4096, r], &[1, 4096], 0), 1);
    let m = 1024 / scale.min(512);
    for (name, order) in [
        ("0,2,1", [0usize, 2, 1]),
        ("2,1,0", [2, 1, 0]),
        ("1,2,0", [1, 2, 0]),
        ("1,0,2", [1, 0, 2]),
        ("2,0,1", [2, 0, 1]),
    ] {
        let s = perm(&[m, 1024, 256], &order);
        b.copy(&format!("f32 permute {name}"), &c(s.sizes()), &s, 4);
        let s = perm(&[m, 1024, 512], &order);
        b.copy(&format!("bf16 permute {name}"), &c(s.sizes()), &s, 2);
    }
    for ch in [3i64, 64, 256] {
        let px = n / ch / 32;
        let s = l(&[32, px, ch], &[px * ch, 1, px], 0);
        b.copy(&format!("f32 NCHW to NHWC, C {ch}"), &c(s.sizes()), &s, 4);
        let s = l(&[32, ch, px], &[px * ch, 1, ch], 0);
        b.copy(&format!("f32 NHWC to NCHW, C {ch}"), &c(s.sizes()), &s, 4);
    }
    // (b, s, h, d) to (b, h, s, d), half of s
    let bb = n / (1024 * 32 * 64);
    let s = l(&[bb, 32, 1024, 64], &[2048 * 32 * 64, 64, 32 * 64, 1], 0);
    b.copy("f32 bshd to bhsd, half of s", &c(s.sizes()), &s, 4);
    b.copy("f32 one row expanded", &c(&[n / 1024, 1024]), &l(&[n / 1024, 1024], &[0, 1], 0), 4);
    b.copy("bf16 half of last", &c(&[n / 32, 64]), &l(&[n / 32, 64], &[128, 1], 0), 2);
    b.copy("bf16 every second", &c(&[n]), &l(&[n], &[2], 0), 2);
    b.copy("bf16 63 of 128, odd offset", &c(&[n / 32, 63]), &l(&[n / 32, 63], &[128, 1], 1), 2);
    b.copy("bf16 63 of 128, written", &l(&[n / 32, 63], &[128, 1], 1), &c(&[n / 32, 63]), 2);
    b.copy("bf16 contiguous, odd offset", &c(&[2 * n]), &l(&[2 * n], &[1], 1), 2);
    b.copy("u8 half of last", &c(&[n / 16, 64]), &l(&[n / 16, 64], &[128, 1], 0), 1);
    b.copy("u8 37 of 128 from 3", &c(&[n / 16, 37]), &l(&[n / 16, 37], &[128, 1], 3), 1);
    b.copy("u8 37 of 128, written", &l(&[n / 16, 37], &[128, 1], 3), &c(&[n / 16, 37]), 1);
    b.copy("u8 every second", &c(&[n]), &l(&[n], &[2], 0), 1);
    b.copy("i64 half of last", &c(&[n / 128, 64]), &l(&[n / 128, 64], &[128, 1], 0), 8);
    for half in [DType::BF16, DType::F16] {
        b.convert(&format!("f32 to {half}"), &c(&[n]), half, &c(&[n]), DType::F32);
        b.convert(&format!("{half} to f32"), &c(&[n]), DType::F32, &c(&[n]), half);
        b.convert(
            &format!("f32 to {half}, half of last"),
            &c(&[n / 64, 64]),
            half,
            &l(&[n / 64, 64], &[128, 1], 0),
            DType::F32,
        );
        b.convert(
            &format!("f32 to {half}, odd"),
            &c(&[n / 64, 63]),
            half,
            &l(&[n / 64, 63], &[128, 1], 1),
            DType::F32,
        );
    }
    b.convert("f32 to i64", &c(&[n / 2]), DType::I64, &c(&[n / 2]), DType::F32);
    b.convert("i64 to f32", &c(&[n / 2]), DType::F32, &c(&[n / 2]), DType::I64);
    b.convert("f64 to f32", &c(&[n / 2]), DType::F32, &c(&[n / 2]), DType::F64);
    b.convert("u8 to f32", &c(&[n]), DType::F32, &c(&[n]), DType::U8);
    let n = n / 16;
    b.copy("64 MiB contiguous", &c(&[n]), &c(&[n]), 4);
    b.copy("64 MiB base, half of last", &c(&[n / 128, 64]), &l(&[n / 128, 64], &[128, 1], 0), 4);
}
