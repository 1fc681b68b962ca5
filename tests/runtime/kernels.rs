//! Kernels of Metal source over tensors, blobs and views; and what their failures leave.

use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{Arguments, Grid};
use aoti_wgpu::tensor::{DeviceType, Tensor};

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::views_and_their_base", views_and_their_base),
    ("kernels::blobs_are_brought_back", blobs_are_brought_back),
    ("kernels::blobs_that_overlap", blobs_that_overlap),
    ("kernels::blobs_between_words", blobs_between_words),
    ("kernels::failures_poison_their_outputs", failures_poison),
    ("kernels::more_parameters_than_immediates", more_parameters),
    ("kernels::the_exact_grid", the_exact_grid),
    ("kernels::compiled_once", compiled_once),
];

const DOUBLE: &str = "kernel void twice(device float* a, constant float* b, \
                      uint i [[thread_position_in_grid]]) { a[i] = 2 * b[i]; }";

fn run(
    world: &World,
    source: &str,
    name: &str,
    tensors: &[&Tensor],
    length: u64,
) -> aoti_wgpu::error::Result<()> {
    let function = world.rt.kernel_library(source)?.function(name)?;
    let mut arguments = Arguments::default();
    for (i, tensor) in (0..).zip(tensors) {
        arguments.set_tensor(i, tensor)?;
    }
    world.rt.dispatch(&function, &mut arguments, Grid { threads: [length, 1, 1], group: None })
}

/// A kernel indexes the base at the view's offset, packed view or not, aliased or not.
fn views_and_their_base(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[20]);
    let first = rt.view(&base, &[5], &[1], 1).unwrap();
    let last = rt.view(&base, &[5], &[1], 12).unwrap();
    let holes = rt.view(&base, &[5], &[2], 0).unwrap();
    let dense = world.over_pointer(&holes);
    run(world, DOUBLE, "twice", &[&first, &last], 5).unwrap();
    let found = world.floats(&base);
    assert_eq!(found[..7], [0.0, 24.0, 26.0, 28.0, 30.0, 32.0, 6.0]);
    drop(dense);
    let dense = world.over_pointer(&holes);
    assert_eq!(world.floats(&dense), [0.0, 26.0, 30.0, 6.0, 8.0], "the view knows of the write");
    // A packed view is bound where it truly lies.
    run(world, DOUBLE, "twice", &[&holes, &last], 1).unwrap();
    assert_eq!(world.floats(&base)[0], 24.0);
}

fn blobs_are_brought_back(world: &World) {
    let mut host = vec![1.0f32; 100];
    let layout = Layout::contiguous(&[100]).unwrap();
    let data = host.as_mut_ptr();
    // SAFETY: `host` outlives the tensor.
    let blob = unsafe { world.rt.blob(data.cast(), layout, DType::F32, DeviceType::Mps) }.unwrap();
    let source = world.iota(&[100]);
    run(world, DOUBLE, "twice", &[&blob, &source], 100).unwrap();
    world.rt.synchronize().unwrap();
    // SAFETY: the wait is over; `data` is the vector's own.
    assert_eq!(unsafe { data.add(7).read() }, 14.0);
    // Taken anew for each kernel.
    // SAFETY: as above.
    unsafe { data.add(3).write(50.0) };
    run(world, DOUBLE, "twice", &[&source, &blob], 100).unwrap();
    assert_eq!(world.floats(&source)[3], 100.0);
    // The last reference waits for what is still under way.
    run(world, DOUBLE, "twice", &[&blob, &source], 100).unwrap();
    drop(blob);
    assert_eq!(host[3], 200.0);
}

fn blobs_that_overlap(world: &World) {
    let mut host: Vec<f32> = (0..30).map(|i| i as f32).collect();
    let blob = |offset: usize, count: i64| {
        let layout = Layout::contiguous(&[count]).unwrap();
        // SAFETY: inside `host`, which outlives the tensors.
        unsafe {
            world.rt.blob(host.as_ptr().add(offset) as *mut u8, layout, DType::F32, DeviceType::Mps)
        }
        .unwrap()
    };
    let (a, b) = (blob(0, 20), blob(10, 20));
    run(world, DOUBLE, "twice", &[&a, &b], 5).unwrap();
    run(world, DOUBLE, "twice", &[&b, &a], 5).unwrap();
    assert_eq!(world.floats(&b)[..5], [40.0, 44.0, 48.0, 52.0, 56.0]);
    drop((a, b));
    assert_eq!(host[..5], [20.0, 22.0, 24.0, 26.0, 28.0]);
    host.clear();
}

/// Host memory may begin anywhere: what overlaps shares a copy in which each begins at a whole
/// element, or is refused.
fn blobs_between_words(world: &World) {
    const ADD: &str = "kernel void add(device int* a, constant uchar* b, \
                       uint i [[thread_position_in_grid]]) { a[i] = a[i] + b[1]; }";
    const BOTH: &str = "kernel void both(device int* a, constant int* b, \
                        uint i [[thread_position_in_grid]]) { a[i] = b[i]; }";
    let mut words = [0u64; 8];
    let data = words.as_mut_ptr().cast::<u8>();
    let blob = |start: usize, count: i64, dtype: DType| {
        let layout = Layout::contiguous(&[count]).unwrap();
        // SAFETY: inside `words`, which outlives the tensors.
        unsafe { world.rt.blob(data.add(start), layout, dtype, DeviceType::Mps) }.unwrap()
    };
    let ints = |tensor: &Tensor| -> Vec<i32> {
        let bytes = world.rt.to_vec(tensor).unwrap();
        bytes.chunks_exact(4).map(|c| i32::from_ne_bytes(c.try_into().unwrap())).collect()
    };
    let (bytes, off, on) = (blob(0, 30, DType::U8), blob(2, 3, DType::I32), blob(4, 2, DType::I32));
    // SAFETY: the second byte of `words`, which no work uses yet.
    unsafe { data.add(1).write(7) };
    run(world, ADD, "add", &[&off, &bytes], 3).unwrap();
    run(world, ADD, "add", &[&off, &bytes], 2).unwrap();
    assert_eq!(ints(&off), [14, 14, 7]);
    // Bytes 2 to 13 are 14 0 0 0 14 0 0 0 7 0 0 0.
    run(world, ADD, "add", &[&on, &bytes], 1).unwrap();
    assert_eq!(ints(&on), [(14 << 16) + 7, 7 << 16]);
    assert_eq!(ints(&off), [14 + (7 << 16), 14, 7]);
    let error = run(world, BOTH, "both", &[&off, &on], 1).unwrap_err().to_string();
    assert!(error.contains("whole number of elements"), "{error}");
    let tail = world.rt.view_bytes(&bytes, 5, DType::U8, &[8], &[1]).unwrap();
    let error = run(world, BOTH, "both", &[&tail, &on], 1).unwrap_err().to_string();
    assert!(error.contains("byte 5"), "{error}");
}

fn failures_poison(world: &World) {
    let rt = &world.rt;
    let (out, input, other) = (world.iota(&[8]), world.iota(&[8]), world.iota(&[8]));
    let barrier = "kernel void k(device float* a, constant float* b, uint i [[thread_position_in_grid]]) \
                   { if (i < 3) { threadgroup_barrier(mem_flags::mem_threadgroup); } a[i] = b[i]; }";
    let text = run(world, barrier, "k", &[&out, &input], 8).unwrap_err().to_string();
    assert!(text.contains("line 1"), "{text}");
    let poisoned = rt.to_vec(&out).unwrap_err().to_string();
    assert!(poisoned.contains("earlier work failed") && poisoned.contains(&text), "{poisoned}");
    assert!(rt.copy(&other, &out, false).is_err());
    assert_eq!(world.floats(&input)[3], 3.0, "what is read is not lost");
    assert_eq!(world.floats(&other)[3], 3.0, "nor what was not reached");
    // A part written does not heal the whole; all of it does.
    rt.zero(&rt.view(&out, &[2], &[1], 0).unwrap()).unwrap();
    assert!(rt.to_vec(&out).is_err());
    rt.zero(&out).unwrap();
    assert_eq!(world.floats(&out), [0.0; 8]);
    // An argument left out.
    assert!(run(world, DOUBLE, "twice", &[&out], 8).is_err());
    assert!(rt.to_vec(&out).is_err());
    // The same memory under another owner is fine.
    drop(out);
    assert_eq!(world.floats(&world.iota(&[8]))[1], 1.0);
}

/// More buffers than 128 bytes of immediates hold offsets for.
fn more_parameters(world: &World) {
    let count = 60u32;
    let arguments: Vec<String> = (0..count).map(|i| format!("constant float* b{i}")).collect();
    let sum: Vec<String> = (0..count).map(|i| format!("b{i}[i]")).collect();
    let source = format!(
        "kernel void sum(device float* a, {}, uint i [[thread_position_in_grid]]) {{ a[i] = {}; }}",
        arguments.join(", "),
        sum.join(" + ")
    );
    let out = world.iota(&[4]);
    let all = world.iota(&[4 * i64::from(count)]);
    for _ in 0..3 {
        let parts: Vec<Tensor> = (0..i64::from(count))
            .map(|i| world.rt.view(&all, &[4], &[1], 4 * i).unwrap())
            .collect();
        let tensors: Vec<&Tensor> = std::iter::once(&out).chain(&parts).collect();
        run(world, &source, "sum", &tensors, 4).unwrap();
    }
    let expected = (0..count).map(|i| (4 * i + 2) as f32).sum::<f32>();
    assert_eq!(world.floats(&out)[2], expected);
}

fn the_exact_grid(world: &World) {
    let out = world.iota(&[70_000]);
    let one = "kernel void one(device float* a, uint i [[thread_position_in_grid]]) { a[i] = 1; }";
    run(world, one, "one", &[&out], 69_999).unwrap();
    let found = world.floats(&out);
    assert!(found[..69_999].iter().all(|&v| v == 1.0));
    assert_eq!(found[69_999], 69_999.0, "one thread more would have written it");
    run(world, one, "one", &[&out], 0).unwrap();
}

/// One source, many threads: one library, and every result right.
fn compiled_once(world: &World) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (out, input) = (world.iota(&[64]), world.iota(&[64]));
                run(world, DOUBLE, "twice", &[&out, &input], 64).unwrap();
                assert_eq!(world.floats(&out)[9], 18.0);
            });
        }
    });
    let a = world.rt.kernel_library(DOUBLE).unwrap();
    let b = world.rt.kernel_library(DOUBLE).unwrap();
    assert!(std::sync::Arc::ptr_eq(&a, &b));
}
