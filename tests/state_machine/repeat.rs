//! The same again: bit for bit, with constant memory, and within the limit on memory.

use crate::machine::{message, ok, stats};
use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::ffi::mps::*;
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

const SOURCE: &CStr = c"
#include <metal_stdlib>
using namespace metal;
kernel void mix(
    device float* out [[buffer(0)]],
    constant float* in [[buffer(1)]],
    constant long& n [[buffer(2)]],
    uint i [[thread_position_in_grid]])
{
    float sum = 0.0;
    for (int k = 0; k < 8; ++k) {
        sum += exp(in[(i * 7 + k) % static_cast<uint>(n)]) * sin(in[i]);
    }
    out[i] = sum / 3.0;
}
";

const COUNT: i64 = 1000;

fn empty(count: i64, device: i32) -> Handle {
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    ok(unsafe { aoti_torch_empty_strided(1, &count, null(), 6, device, 0, &mut out) });
    out
}

fn delete(handle: Handle) {
    // SAFETY: a live handle, once.
    ok(unsafe { aoti_torch_delete_tensor_object(handle) });
}

fn with_blob<R>(values: &mut [f32], body: impl FnOnce(Handle) -> R) -> R {
    let (mut blob, count) = (null_mut(), values.len() as i64);
    // SAFETY: `values` outlives the handle.
    ok(unsafe {
        let data = values.as_mut_ptr().cast();
        aoti_torch_create_tensor_from_blob(data, 1, &count, null(), 0, 6, 0, 0, &mut blob)
    });
    let result = body(blob);
    delete(blob);
    result
}

/// A program from its kernel library to its output; the bits of that.
fn program(with_kernels: bool) -> Vec<u32> {
    let mut values: Vec<f32> = (0..COUNT).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
    let (input, output) = (empty(COUNT, 13), empty(COUNT, 13));
    // SAFETY: live handles; C strings; outputs.
    let copy = |to, from| ok(unsafe { aoti_torch_copy_(to, from, 0) });
    with_blob(&mut values, |blob| copy(input, blob));
    if with_kernels {
        let (mut library, mut function) = (null_mut(), null_mut());
        // SAFETY: as above.
        unsafe {
            ok(aoti_torch_mps_create_shader_library(SOURCE.as_ptr(), &mut library));
            ok(aoti_torch_mps_get_kernel_function(library, c"mix".as_ptr(), &mut function));
            ok(aoti_torch_mps_start_encoding(function));
            ok(aoti_torch_mps_set_arg_tensor(function, 0, output));
            ok(aoti_torch_mps_set_arg_tensor(function, 1, input));
            ok(aoti_torch_mps_set_arg_int(function, 2, COUNT));
            ok(aoti_torch_mps_dispatch_single(function, COUNT as u64));
            ok(aoti_torch_mps_delete_shader_library(library));
        }
    } else {
        copy(output, input);
    }
    let (mut view, size, stride) = (null_mut(), COUNT / 3, 3i64);
    // SAFETY: arrays of the rank.
    ok(unsafe { aoti_torch__reinterpret_tensor(output, 1, &size, &stride, 1, &mut view) });
    delete(output);
    let mut found = vec![0.0f32; size as usize];
    with_blob(&mut found, |blob| copy(blob, view));
    delete(view);
    delete(input);
    found.into_iter().map(f32::to_bits).collect()
}

/// Bytes of this process that are in memory; 0 where the system does not say.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// `runs` times the same, after a warm-up.
pub fn run(runs: u64) {
    let with_kernels = crate::machine::adapter_memory() != "host";
    let first = program(with_kernels);
    for _ in 0..100 {
        assert_eq!(program(with_kernels), first, "the same program, another result");
    }
    let (before, start) = (resident(), stats());
    let mut half = Duration::ZERO;
    let clock = Instant::now();
    for i in 0..runs {
        assert_eq!(program(with_kernels), first, "run {i}");
        if i == runs / 2 {
            half = clock.elapsed();
        }
    }
    let (after, end) = (resident(), stats());
    assert_eq!((end.live_handles, end.live_storages, end.live_device_bytes), (0, 0, 0));
    assert!(end.pooled_bytes <= start.pooled_bytes.max(1 << 20), "the pool grows");
    let grown = after.saturating_sub(before);
    // What a driver's caches and the allocator's fragments may take, however many runs.
    let limit = crate::number("SOAK_RESIDENT_MB", 16) << 20;
    assert!(grown < limit, "{runs} runs took {grown} bytes");
    println!(
        "{runs} runs, bit-identical; {grown} bytes more resident; first half {half:?}, second {:?}",
        clock.elapsed() - half
    );
    let mut bits = DefaultHasher::new();
    first.hash(&mut bits);
    println!("bits {:016x}", bits.finish());
}

/// What another process may have to run beside: the same program and two busy threads, until
/// this process is ended, or for two minutes.
pub fn busy() {
    let end = Instant::now() + Duration::from_secs(120);
    let with_kernels = crate::machine::adapter_memory() != "host";
    let first = program(with_kernels);
    println!("busy");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            });
        }
        while Instant::now() < end {
            assert_eq!(program(with_kernels), first);
        }
    });
}

/// With `AOTI_WGPU_MEMORY_LIMIT_MB=8`: the pool makes room, and more is refused.
pub fn limits() {
    let floats = |mebibytes: i64| mebibytes << 18;
    let a = empty(floats(5), 13);
    delete(a);
    assert_eq!(stats().pooled_bytes, 5 << 20);
    // Does not fit beside what is kept.
    let b = empty(floats(6), 13);
    assert_eq!(stats().pooled_bytes, 0);
    let (mut none, count) = (null_mut(), floats(3));
    // SAFETY: arrays of the rank.
    let code = unsafe { aoti_torch_empty_strided(1, &count, null(), 6, 13, 0, &mut none) };
    assert_eq!(code, 0x21);
    assert!(message().contains("AOTI_WGPU_MEMORY_LIMIT_MB"), "{}", message());
    assert!(none.is_null());
    // SAFETY: a live handle.
    ok(unsafe { aoti_torch_zero_(b) });
    let small = empty(16, 13);
    delete(small);
    delete(b);
    delete(empty(floats(7), 13));
    assert_eq!(stats().live_storages, 0);
}
