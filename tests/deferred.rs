//! Attention through the C functions: its second result, which is made when it is asked for.

use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::attributes::*;
use aoti_wgpu::ffi::extension::*;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::ffi::ops::attention::*;
use aoti_wgpu::runtime::list_adapters;
use libtest_mimic::{Arguments, Failed, Trial};
use std::ptr::{null, null_mut};

const MPS: i32 = 13;
const FLOAT: i32 = 6;
/// Queries and keys, and elements of a head: scores of 16 KiB, queries and keys of 2 KiB.
const ROWS: i64 = 64;
const SIZE: i64 = 4;

fn ok(error: i32) {
    assert_eq!(error, 0, "{}", message());
}

fn message() -> String {
    // SAFETY: the message is a C string until this thread's next call.
    unsafe { std::ffi::CStr::from_ptr(aoti_wgpu_last_error_message()) }
        .to_string_lossy()
        .into_owned()
}

fn stats() -> aoti_wgpu_stats_t {
    let struct_size = size_of::<aoti_wgpu_stats_t>() as u64;
    let mut stats = aoti_wgpu_stats_t { struct_size, ..Default::default() };
    // SAFETY: the struct says its size.
    assert_eq!(unsafe { aoti_wgpu_stats(&mut stats) }, 0);
    stats
}

fn empty(rows: i64) -> Handle {
    let (sizes, strides) = ([1, 1, rows, SIZE], [rows * SIZE, rows * SIZE, SIZE, 1]);
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    ok(unsafe {
        aoti_torch_empty_strided(4, sizes.as_ptr(), strides.as_ptr(), FLOAT, MPS, 0, &mut out)
    });
    out
}

/// Copies between a handle's tensor and host memory.
fn transfer(handle: Handle, values: &mut [f32], sizes: &[i64], read: bool) {
    let mut blob = null_mut();
    let strides: Vec<i64> =
        (0..sizes.len()).map(|d| sizes[d + 1..].iter().product::<i64>()).collect();
    // SAFETY: the memory holds as many values and outlives the handle.
    unsafe {
        ok(aoti_torch_create_tensor_from_blob(
            values.as_mut_ptr().cast(),
            sizes.len() as i64,
            sizes.as_ptr(),
            strides.as_ptr(),
            0,
            FLOAT,
            0,
            0,
            &mut blob,
        ));
        let (to, from) = if read { (blob, handle) } else { (handle, blob) };
        ok(aoti_torch_copy_(to, from, 0));
    }
    delete(blob);
}

fn filled(rows: i64, salt: i64) -> (Handle, Vec<f32>) {
    let mut values: Vec<f32> =
        (0..rows * SIZE).map(|i| ((i * 37 + salt) % 23) as f32 / 11.0 - 1.0).collect();
    let handle = empty(rows);
    transfer(handle, &mut values, &[1, 1, rows, SIZE], false);
    (handle, values)
}

fn delete(handle: Handle) {
    // SAFETY: a live handle, once.
    ok(unsafe { aoti_torch_delete_tensor_object(handle) });
}

fn attention([q, k, v]: [Handle; 3], weights: *mut Handle) -> Handle {
    let mut out = null_mut();
    // SAFETY: live handles; absent options are null.
    ok(unsafe {
        aoti_torch_mps__scaled_dot_product_attention_math_for_mps(
            q,
            k,
            v,
            null(),
            0.0,
            0,
            null(),
            null(),
            &mut out,
            weights,
        )
    });
    out
}

fn sizes_of(handle: Handle) -> Vec<i64> {
    let (mut rank, mut sizes) = (0, null_mut());
    // SAFETY: a live handle; its sizes live as long.
    unsafe {
        ok(aoti_torch_get_dim(handle, &mut rank));
        ok(aoti_torch_get_sizes(handle, &mut sizes));
        std::slice::from_raw_parts(sizes, rank as usize).to_vec()
    }
}

/// The weights as a softmax in f64 has them.
fn expected(q: &[f32], k: &[f32], rows: i64) -> Vec<f64> {
    let (size, keys) = (SIZE as usize, k.len() / SIZE as usize);
    let mut all = Vec::new();
    for row in 0..rows as usize {
        let scores = (0..keys).map(|key| {
            let products = (0..size).map(|i| f64::from(q[row * size + i] * k[key * size + i]));
            (products.sum::<f64>() / (SIZE as f64).sqrt()).exp()
        });
        let scores: Vec<f64> = scores.collect();
        let sum: f64 = scores.iter().sum();
        all.extend(scores.iter().map(|score| score / sum));
    }
    all
}

fn check(weights: Handle, q: &[f32], k: &[f32], rows: i64) {
    let keys = k.len() as i64 / SIZE;
    let mut found = vec![0f32; (rows * keys) as usize];
    transfer(weights, &mut found, &[1, 1, rows, keys], true);
    for (found, expected) in found.iter().zip(expected(q, k, rows)) {
        approx::assert_abs_diff_eq!(f64::from(*found), expected, epsilon = 1e-5 * expected + 1e-9);
    }
}

/// Asked for after the operands were overwritten and deleted, it is what it would have been.
fn asked_for_late() -> Result<(), Failed> {
    let before = stats();
    let ((q, q_values), (k, k_values)) = (filled(ROWS, 3), filled(ROWS, 5));
    let (v, _) = filled(ROWS, 7);
    let mut weights = null_mut();
    let out = attention([q, k, v], &mut weights);
    for handle in [q, k] {
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_zero_(handle) });
        delete(handle);
    }
    delete(v);
    delete(out);
    let dispatches = stats().dispatches;
    assert_eq!(sizes_of(weights), [1, 1, ROWS, ROWS]);
    check(weights, &q_values, &k_values, ROWS);
    assert!(stats().dispatches > dispatches, "it was made before it was asked for");
    // It is made once.
    let dispatches = stats().dispatches;
    assert_eq!(sizes_of(weights), [1, 1, ROWS, ROWS]);
    assert_eq!(stats().dispatches, dispatches);
    delete(weights);
    gone(&before);
    Ok(())
}

/// A view of one makes it; deleting makes nothing; a second deletion is refused.
fn viewed_or_deleted() -> Result<(), Failed> {
    let before = stats();
    let ((q, q_values), (k, k_values)) = (filled(ROWS, 11), filled(ROWS, 13));
    let (v, _) = filled(ROWS, 17);
    let (mut weights, mut view) = (null_mut(), null_mut());
    let out = attention([q, k, v], &mut weights);
    // SAFETY: a live handle.
    ok(unsafe { aoti_torch_new_tensor_handle(weights, &mut view) });
    delete(weights);
    check(view, &q_values, &k_values, ROWS);
    delete(view);
    delete(out);

    let held = stats().live_storages;
    let out = attention([q, k, v], &mut weights);
    // The result, and copies of the queries and keys.
    assert_eq!(stats().live_storages, held + 3);
    let dispatches = stats().dispatches;
    delete(weights);
    assert_eq!(stats().dispatches, dispatches);
    // SAFETY: it is not live, which is what is tested.
    assert_ne!(unsafe { aoti_torch_delete_tensor_object(weights) }, 0);
    assert!(message().contains("deleted"), "{}", message());
    for handle in [q, k, v, out] {
        delete(handle);
    }
    gone(&before);
    Ok(())
}

/// Few queries have fewer weights than keys: these are made at once.
fn few_are_made_at_once() -> Result<(), Failed> {
    let before = stats();
    let ((q, q_values), (k, k_values)) = (filled(1, 19), filled(ROWS, 23));
    let (v, _) = filled(ROWS, 29);
    let mut weights = null_mut();
    let out = attention([q, k, v], &mut weights);
    let held = stats().live_storages;
    check(weights, &q_values, &k_values, 1);
    assert_eq!(stats().live_storages, held);
    for handle in [q, k, v, out, weights] {
        delete(handle);
    }
    gone(&before);
    Ok(())
}

/// Many threads ask at once.
fn asked_for_by_many() -> Result<(), Failed> {
    let before = stats();
    let ((q, q_values), (k, k_values)) = (filled(ROWS, 31), filled(ROWS, 37));
    let (v, _) = filled(ROWS, 41);
    for _ in 0..20 {
        let mut weights = null_mut();
        let out = attention([q, k, v], &mut weights);
        let address = weights.addr();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let handle = std::ptr::with_exposed_provenance_mut(address);
                    check(handle, &q_values, &k_values, ROWS);
                });
            }
        });
        delete(weights);
        delete(out);
    }
    for handle in [q, k, v] {
        delete(handle);
    }
    gone(&before);
    Ok(())
}

fn gone(before: &aoti_wgpu_stats_t) {
    let after = stats();
    assert_eq!(after.live_handles, before.live_handles);
    assert_eq!(after.live_storages, before.live_storages);
}

fn main() {
    let mut arguments = Arguments::from_args();
    // They count what is alive in the process.
    arguments.test_threads = Some(1);
    let on_host = std::env::var("AOTI_WGPU_BACKEND").is_ok_and(|name| name == "host");
    let has_gpu = !on_host && !list_adapters().is_empty();
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 4] = [
        ("asked_for_late", asked_for_late),
        ("viewed_or_deleted", viewed_or_deleted),
        ("few_are_made_at_once", few_are_made_at_once),
        ("asked_for_by_many", asked_for_by_many),
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| Trial::test(name, test).with_ignored_flag(!has_gpu))
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
