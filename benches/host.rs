//! The host's side without a device: layouts, plans, and the copies that plans become.

use aoti_wgpu::copy::host::run_slices;
use aoti_wgpu::copy::plan::CopyPlan;
use aoti_wgpu::layout::Layout;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

fn layouts(c: &mut Criterion) {
    let mut group = c.benchmark_group("layout");
    let (sizes, strides) = ([1, 32, 128, 64], [32 * 128 * 64, 128 * 64, 64, 1]);
    group.bench_function("new, 4 dimensions", |b| {
        b.iter(|| Layout::new(black_box(&sizes), black_box(&strides), 0).unwrap());
    });
    group.bench_function("new, 8 dimensions", |b| {
        b.iter(|| Layout::new(black_box(&[2; 8]), black_box(&[1; 8]), 0).unwrap());
    });
    let half = Layout::new(&[1, 32, 128, 64], &[32 * 128 * 128, 128 * 128, 128, 1], 64).unwrap();
    group.bench_function("is_packed, of a permute", |b| {
        let permuted = Layout::new(&[32, 64, 128], &[128 * 64, 1, 64], 0).unwrap();
        b.iter(|| black_box(&permuted).is_packed());
    });
    group.bench_function("closed", |b| b.iter(|| black_box(&half).closed().unwrap()));
    group.finish();
}

/// A view by name, as sizes, strides and offset of its elements.
struct View {
    name: &'static str,
    sizes: &'static [i64],
    strides: &'static [i64],
    offset: i64,
    element: usize,
}

/// Views of 1 MiB each: in the caches, so that the loops are measured and not the memory.
const VIEWS: &[View] = &[
    View { name: "f32 half", sizes: &[4096, 64], strides: &[128, 1], offset: 64, element: 4 },
    View {
        name: "f32 every second",
        sizes: &[256, 1024],
        strides: &[2048, 2],
        offset: 0,
        element: 4,
    },
    View { name: "f32 transpose", sizes: &[512, 512], strides: &[1, 512], offset: 0, element: 4 },
    View {
        name: "f32 one row expanded",
        sizes: &[64, 4096],
        strides: &[0, 1],
        offset: 0,
        element: 4,
    },
    View { name: "bf16 half", sizes: &[8192, 64], strides: &[128, 1], offset: 0, element: 2 },
    View { name: "bf16 63 of 128", sizes: &[8192, 63], strides: &[128, 1], offset: 1, element: 2 },
    View { name: "u8 37 of 128", sizes: &[28339, 37], strides: &[128, 1], offset: 3, element: 1 },
    View { name: "i64 half", sizes: &[2048, 64], strides: &[128, 1], offset: 0, element: 8 },
];

impl View {
    fn layouts(&self) -> (Layout, Layout) {
        let src = Layout::new(self.sizes, self.strides, self.offset).unwrap();
        (Layout::contiguous(self.sizes).unwrap(), src)
    }
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    for view in VIEWS {
        let (dst, src) = view.layouts();
        group.bench_function(view.name, |b| {
            b.iter(|| CopyPlan::new(black_box(&dst), black_box(&src), view.element).unwrap());
        });
    }
    group.finish();
}

fn copies(c: &mut Criterion) {
    let mut group = c.benchmark_group("copy in cache");
    for view in VIEWS {
        let (dst, src) = view.layouts();
        let plan = CopyPlan::new(&dst, &src, view.element).unwrap();
        let source = vec![1u8; plan.src_end() as usize];
        let mut out = vec![0u8; plan.dst_end() as usize];
        group.throughput(Throughput::Bytes(2 * plan.bytes()));
        group.bench_function(view.name, |b| {
            b.iter(|| run_slices(&plan, black_box(&mut out), black_box(&source)).unwrap());
        });
    }
    group.finish();
}

/// Out of the caches, and on as many threads as the process has processors, up to four.
fn large(c: &mut Criterion) {
    let mut group = c.benchmark_group("copy of 64 MiB");
    group.sample_size(20);
    let bytes = 64i64 << 20;
    let cases = [
        ("contiguous", Layout::contiguous(&[bytes / 4]).unwrap()),
        ("f32 half", Layout::new(&[bytes / 256, 64], &[128, 1], 0).unwrap()),
        ("f32 transpose", Layout::new(&[4096, 4096], &[1, 4096], 0).unwrap()),
    ];
    for (name, src) in cases {
        let dst = Layout::contiguous(src.sizes()).unwrap();
        let plan = CopyPlan::new(&dst, &src, 4).unwrap();
        let source = vec![1u8; plan.src_end() as usize];
        let mut out = vec![2u8; plan.dst_end() as usize];
        group.throughput(Throughput::Bytes(2 * plan.bytes()));
        group.bench_function(name, |b| {
            b.iter(|| run_slices(&plan, black_box(&mut out), black_box(&source)).unwrap());
        });
    }
    group.finish();
}

fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
}

criterion_group! { name = all; config = quick(); targets = layouts, plans, copies, large }
criterion_main!(all);
