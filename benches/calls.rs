//! What a call through the C functions costs, on the adapter that is there: the functions
//! are linked into this program and called as C calls them.

use aoti_wgpu::ffi::attributes::{
    aoti_torch_get_data_ptr, aoti_torch_get_dtype, aoti_torch_get_sizes, aoti_torch_get_strides,
};
use aoti_wgpu::ffi::memory::{
    aoti_torch__reinterpret_tensor, aoti_torch_copy_, aoti_torch_create_tensor_from_blob,
    aoti_torch_delete_tensor_object, aoti_torch_empty_strided, aoti_torch_new_tensor_handle,
};
use aoti_wgpu::ffi::{AOTITorchError, AtenTensorHandle};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Duration;

const CPU: i32 = 0;
const MPS: i32 = 13;
const F32: i32 = 6;

const SIZES: [i64; 4] = [1, 32, 128, 64];
const STRIDES: [i64; 4] = [32 * 128 * 64, 128 * 64, 64, 1];

fn done(code: AOTITorchError) {
    assert_eq!(code, 0);
}

fn empty(sizes: &[i64], strides: &[i64]) -> AtenTensorHandle {
    let mut out = null_mut();
    let rank = sizes.len() as i64;
    // SAFETY: the arrays are as long as the rank says.
    done(unsafe {
        aoti_torch_empty_strided(rank, sizes.as_ptr(), strides.as_ptr(), F32, MPS, 0, &mut out)
    });
    out
}

fn view(of: AtenTensorHandle, sizes: &[i64], strides: &[i64], offset: i64) -> AtenTensorHandle {
    let mut out = null_mut();
    let (rank, sizes, strides) = (sizes.len() as i64, sizes.as_ptr(), strides.as_ptr());
    // SAFETY: the arrays are as long as the rank says.
    done(unsafe { aoti_torch__reinterpret_tensor(of, rank, sizes, strides, offset, &mut out) });
    out
}

fn blob(data: &mut [f32], sizes: &[i64], strides: &[i64]) -> AtenTensorHandle {
    let mut out = null_mut();
    let (data, rank) = (data.as_mut_ptr().cast(), sizes.len() as i64);
    let (sizes, strides) = (sizes.as_ptr(), strides.as_ptr());
    // SAFETY: the arrays are as long as the rank says, and the data outlives the handle.
    done(unsafe {
        aoti_torch_create_tensor_from_blob(data, rank, sizes, strides, 0, F32, CPU, 0, &mut out)
    });
    out
}

fn delete(tensor: AtenTensorHandle) {
    // SAFETY: any address may be passed.
    done(unsafe { aoti_torch_delete_tensor_object(tensor) });
}

fn copy(to: AtenTensorHandle, from: AtenTensorHandle) {
    // SAFETY: both are handles of this library.
    done(unsafe { aoti_torch_copy_(to, from, 0) });
}

fn second(of: AtenTensorHandle) -> AtenTensorHandle {
    let mut out = null_mut();
    // SAFETY: a handle of this library.
    done(unsafe { aoti_torch_new_tensor_handle(of, &mut out) });
    out
}

fn four_getters(tensor: AtenTensorHandle) {
    let (mut sizes, mut strides, mut data, mut dtype) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: a handle of this library.
    unsafe {
        done(aoti_torch_get_sizes(tensor, &mut sizes));
        done(aoti_torch_get_strides(tensor, &mut strides));
        done(aoti_torch_get_data_ptr(tensor, &mut data));
        done(aoti_torch_get_dtype(tensor, &mut dtype));
    }
    black_box((sizes, strides, data, dtype));
}

fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("call");
    group.bench_function("empty + delete", |b| b.iter(|| delete(empty(&SIZES, &STRIDES))));
    let crowd: Vec<_> = (1..=200).map(|n| empty(&[n, 64], &[64, 1])).collect();
    group.bench_function("empty + delete, 200 alive", |b| {
        b.iter(|| delete(empty(&SIZES, &STRIDES)));
    });
    crowd.into_iter().for_each(delete);
    let base = empty(&SIZES, &STRIDES);
    group.bench_function("view + delete", |b| {
        b.iter(|| delete(view(base, &SIZES[1..], &STRIDES[1..], 0)));
    });
    group.bench_function("packed view + delete", |b| {
        b.iter(|| delete(view(base, &[32, 128, 32], &STRIDES[1..], 0)));
    });
    group.bench_function("second handle + delete", |b| b.iter(|| delete(second(base))));
    group.bench_function("four getters", |b| b.iter(|| four_getters(black_box(base))));
    let mut data = [0f32; 16];
    group.bench_function("blob + delete", |b| {
        b.iter(|| delete(blob(&mut data, &[1, 2, 2, 4], &[16, 8, 4, 1])));
    });
    delete(base);

    let floats = 16 << 10;
    let mut host = vec![1f32; floats as usize];
    let mut other = host.clone();
    let (inside, outside) = (empty(&[floats], &[1]), blob(&mut host, &[floats], &[1]));
    group.throughput(Throughput::Bytes(4 * floats as u64));
    group.bench_function("64 KiB in", |b| b.iter(|| copy(inside, outside)));
    group.bench_function("64 KiB out", |b| b.iter(|| copy(outside, inside)));
    [inside, outside].into_iter().for_each(delete);
    group.bench_function("memcpy of 64 KiB", |b| {
        b.iter(|| black_box(&mut other[..]).copy_from_slice(black_box(&host)));
    });
    group.finish();
}

fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
}

criterion_group! { name = all; config = quick(); targets = calls }
criterion_main!(all);
