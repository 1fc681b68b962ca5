//! Eight threads: each with tensors of its own, then all with the same ones.

use crate::machine::{Random, ok, stats};
use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::attributes::*;
use aoti_wgpu::ffi::extension::*;
use aoti_wgpu::ffi::memory::*;
use std::ptr::{null, null_mut};
use std::sync::Barrier;

const THREADS: u64 = 8;

/// A handle that goes to another thread.
#[derive(Clone, Copy)]
struct Shared(Handle);

// SAFETY: everything may be called from any thread; nobody deletes a handle that another
// thread uses.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn tensor(sizes: &[i64], device: i32) -> Handle {
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    ok(unsafe {
        aoti_torch_empty_strided(sizes.len() as i64, sizes.as_ptr(), null(), 3, device, 0, &mut out)
    });
    out
}

fn delete(handle: Handle) {
    // SAFETY: a live handle, once.
    ok(unsafe { aoti_torch_delete_tensor_object(handle) });
}

fn copy(to: Handle, from: Handle) {
    // SAFETY: live handles.
    ok(unsafe { aoti_torch_copy_(to, from, 0) });
}

/// `body` on a blob over `values`.
fn with_blob<R>(values: &mut [i32], body: impl FnOnce(Handle) -> R) -> R {
    let (mut blob, count) = (null_mut(), values.len() as i64);
    // SAFETY: `values` outlives the handle.
    ok(unsafe {
        let data = values.as_mut_ptr().cast();
        aoti_torch_create_tensor_from_blob(data, 1, &count, null(), 0, 3, 0, 0, &mut blob)
    });
    let result = body(blob);
    delete(blob);
    result
}

fn write(to: Handle, values: &mut [i32]) {
    with_blob(values, |blob| copy(to, blob));
}

fn read(from: Handle, count: usize) -> Vec<i32> {
    let mut values = vec![-1; count];
    with_blob(&mut values, |blob| copy(blob, from));
    values
}

fn view(of: Handle, sizes: &[i64], strides: &[i64], start: i64) -> Handle {
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    ok(unsafe {
        let rank = sizes.len() as i64;
        aoti_torch__reinterpret_tensor(of, rank, sizes.as_ptr(), strides.as_ptr(), start, &mut out)
    });
    out
}

/// Tensors that no other thread knows.
fn own(thread: u64, rounds: u64) {
    for round in 0..rounds {
        let mut random = Random::new(thread, round);
        let count = 1 + random.below(300) as usize;
        let mut values: Vec<i32> = (0..count).map(|_| random.next() as i32).collect();
        let a = tensor(&[count as i64], if random.chance(4) { 0 } else { 13 });
        write(a, &mut values);
        let b = tensor(&[count as i64], 13);
        copy(b, a);
        let every_second = view(b, &[(count as i64 + 1) / 2], &[2], 0);
        let wanted: Vec<i32> = values.iter().copied().step_by(2).collect();
        assert_eq!(read(every_second, wanted.len()), wanted);
        let mut pointer = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_get_data_ptr(every_second, &mut pointer) });
        delete(a);
        if random.chance(8) {
            ok(aoti_wgpu_synchronize().cast_signed());
        }
        if random.chance(20) {
            ok(aoti_wgpu_trim().cast_signed());
        }
        assert_eq!(read(b, count), values);
        delete(b);
        assert_eq!(read(every_second, wanted.len()), wanted);
        delete(every_second);
    }
}

/// Tensors that all threads have: thread t writes row t, and reads what nobody writes.
fn together(thread: u64, rounds: u64, rows: Shared, fixed: Shared, fixed_values: &[i32]) {
    let columns = fixed_values.len() as i64;
    for round in 0..rounds {
        let mut random = Random::new(thread, round);
        let mut second = null_mut();
        // SAFETY: live handles and an output.
        ok(unsafe { aoti_torch_new_tensor_handle(rows.0, &mut second) });
        // Every second row of threads has a view with holes.
        let (count, stride) =
            if thread.is_multiple_of(2) { (columns, 1) } else { (columns / 2, 2) };
        let row = view(second, &[count], &[stride], thread as i64 * columns);
        delete(second);
        let mut values: Vec<i32> = (0..count).map(|_| random.next() as i32).collect();
        write(row, &mut values);
        assert_eq!(read(row, count as usize), values, "thread {thread}, round {round}");
        let mut pointer = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_get_data_ptr(row, &mut pointer) });
        let mut clone = null_mut();
        // SAFETY: live handles and an output.
        ok(unsafe { aoti_torch_clone(fixed.0, &mut clone) });
        assert_eq!(read(clone, fixed_values.len()), fixed_values);
        let half = view(clone, &[columns / 2], &[1], columns / 2);
        delete(clone);
        assert_eq!(read(half, fixed_values.len() / 2), fixed_values[fixed_values.len() / 2..]);
        delete(half);
        if random.chance(10) {
            ok(aoti_wgpu_synchronize().cast_signed());
        }
        assert_eq!(read(row, count as usize), values);
        delete(row);
    }
}

pub fn run(operations: u64) {
    let rounds = (operations / 40).clamp(10, 20_000);
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                // Together from the start: who opens the device, who compiles a kernel?
                barrier.wait();
                own(thread, rounds);
            });
        }
    });
    assert_eq!(stats().live_handles, 0);

    let mut fixed_values: Vec<i32> = (0..64).map(|i| i * i).collect();
    let columns = fixed_values.len() as i64;
    let rows = Shared(tensor(&[THREADS as i64, columns], 13));
    let fixed = Shared(tensor(&[columns], 13));
    write(fixed.0, &mut fixed_values);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, fixed_values) = (&barrier, &fixed_values);
            scope.spawn(move || {
                barrier.wait();
                let (rows, fixed) = (rows, fixed);
                together(thread, rounds, rows, fixed, fixed_values);
            });
        }
    });
    delete(rows.0);
    delete(fixed.0);
    ok(aoti_wgpu_synchronize().cast_signed());
    let after = stats();
    assert_eq!(after.live_handles, 0);
    assert_eq!((after.live_storages, after.live_device_bytes, after.live_host_bytes), (0, 0, 0));
    println!("{THREADS} threads, {rounds} rounds each way: {after:?}");
}
