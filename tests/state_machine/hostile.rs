//! Arguments that nobody should pass: each is refused with a code and a message, writes no
//! output and changes nothing.

use crate::machine::{Random, message, ok, stats};
use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::attributes::*;
use aoti_wgpu::ffi::debug::*;
use aoti_wgpu::ffi::extension::*;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::ffi::mps::*;
use aoti_wgpu::ffi::scalar::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const INVALID: i32 = 0x12;
const UNSUPPORTED: i32 = 0x10;
const NO_MEMORY: i32 = 0x21;

/// What an output holds before a call that must not write it.
const UNTOUCHED: usize = 0x5eed;

fn untouched() -> Handle {
    UNTOUCHED as Handle
}

#[track_caller]
fn refused(code: i32) {
    assert!([INVALID, UNSUPPORTED, NO_MEMORY].contains(&code), "{code}: {}", message());
    assert!(!message().is_empty());
}

#[track_caller]
fn invalid(code: i32) {
    assert_eq!(code, INVALID, "{}", message());
    assert!(!message().is_empty());
}

type Library = (AOTIMetalShaderLibraryHandle, AOTIMetalKernelFunctionHandle);

/// Every function that takes a handle refuses this one.
pub fn refuses_handle(bad: Handle) {
    let mut out = untouched();
    let (mut pointer, mut integer, mut word, mut flag) = (null_mut::<c_void>(), 7i64, 7i32, false);
    let (mut array, mut float) = (null_mut::<i64>(), 7.0f32);
    let one = [1i64];
    // SAFETY: the handle is refused before anything is read through it; outputs are valid.
    unsafe {
        if !bad.is_null() {
            invalid(aoti_torch_delete_tensor_object(bad));
        }
        invalid(aoti_torch_new_tensor_handle(bad, &mut out));
        invalid(aoti_torch_assign_tensors_out(bad, &mut out));
        invalid(aoti_torch_assign_tensors(bad, bad));
        invalid(aoti_torch__reinterpret_tensor(bad, 1, one.as_ptr(), one.as_ptr(), 0, &mut out));
        invalid(aoti_torch_as_strided(bad, one.as_ptr(), one.as_ptr(), &mut out));
        invalid(aoti_torch__alloc_from_pool(bad, 0, 6, 1, one.as_ptr(), one.as_ptr(), &mut out));
        invalid(aoti_torch_copy_(bad, bad, 0));
        invalid(aoti_torch_tensor_copy_(bad, bad));
        invalid(aoti_torch_clone(bad, &mut out));
        invalid(aoti_torch_clone_preserve_strides(bad, &mut out));
        invalid(aoti_torch_zero_(bad));
        invalid(aoti_torch_get_data_ptr(bad, &mut pointer));
        invalid(aoti_torch_get_sizes(bad, &mut array));
        invalid(aoti_torch_get_strides(bad, &mut array));
        invalid(aoti_torch_get_size(bad, 0, &mut integer));
        invalid(aoti_torch_get_stride(bad, 0, &mut integer));
        invalid(aoti_torch_get_dim(bad, &mut integer));
        invalid(aoti_torch_get_numel(bad, &mut integer));
        invalid(aoti_torch_get_dtype(bad, &mut word));
        invalid(aoti_torch_get_device_type(bad, &mut word));
        invalid(aoti_torch_get_device_index(bad, &mut word));
        invalid(aoti_torch_get_layout(bad, &mut word));
        invalid(aoti_torch_get_storage_offset(bad, &mut integer));
        invalid(aoti_torch_get_storage_size(bad, &mut integer));
        invalid(aoti_torch_get_storage_numel(bad, &mut integer));
        invalid(aoti_torch_is_contiguous(bad, &mut flag));
        invalid(aoti_torch_is_defined(bad, &mut flag));
        invalid(aoti_torch_item_float32(bad, &mut float));
        invalid(aoti_torch_check_inf_and_nan(c"x".as_ptr(), bad));
        invalid(aoti_wgpu_mark_written(bad).cast_signed());
        invalid(aoti_torch_mps_set_arg_tensor(null_mut(), 0, bad));
    }
    assert_eq!((out, integer, word, flag, float), (untouched(), 7, 7, false, 7.0));
    assert!(pointer.is_null() && array.is_null());
}

/// One bad call, drawn at random.
pub fn nonsense(
    random: &mut Random,
    live: Option<Handle>,
    library: Option<Library>,
    dead_functions: &[AOTIMetalKernelFunctionHandle],
) {
    let live_handle = live.unwrap_or(null_mut());
    let mut out = untouched();
    let some = [2i64, 3];
    // SAFETY: pointers are null or valid; handles are live, dead, or inside a live one.
    unsafe {
        match random.below(16) {
            0 => refuses_handle(null_mut()),
            1 => refuses_handle(live_handle.wrapping_byte_add(if live.is_some() { 8 } else { 0 })),
            2 => match library {
                // A kernel's handle where a tensor is due.
                Some((library, function)) => {
                    refuses_handle(library.cast());
                    refuses_handle(function.cast());
                }
                None => refuses_handle(null_mut()),
            },
            3 => {
                // A tensor where a kernel's handle is due.
                let mut function = null_mut();
                invalid(aoti_torch_mps_delete_shader_library(live_handle.cast()));
                invalid(aoti_torch_mps_get_kernel_function(
                    live_handle.cast(),
                    c"next_value".as_ptr(),
                    &mut function,
                ));
                refuses_function(live_handle.cast());
            }
            4 => {
                for &dead in dead_functions.iter().rev().take(3) {
                    refuses_function(dead);
                }
            }
            5 => {
                if let Some((library, function)) = library {
                    refuses_function(library.cast());
                    invalid(aoti_torch_mps_delete_shader_library(function.cast()));
                    invalid(aoti_torch_mps_set_arg_int(function, u32::MAX, 1));
                    if live.is_some() {
                        invalid(aoti_torch_mps_set_arg_tensor(function, 4096, live_handle));
                    }
                    invalid(aoti_torch_mps_start_encoding(null_mut()));
                    ok(aoti_torch_mps_start_encoding(function));
                    // No arguments.
                    refused(aoti_torch_mps_dispatch_single(function, 4));
                    refused(aoti_torch_mps_dispatch_array(function, null(), 1));
                    refused(aoti_torch_mps_dispatch_array(function, [1u64; 4].as_ptr(), 4));
                }
            }
            6 => bad_shape(random, &mut out),
            7 => {
                if live.is_some() {
                    let sizes = [random.pick(EDGES), random.pick(EDGES)];
                    let strides = [random.pick(EDGES), random.pick(EDGES)];
                    let start = random.pick(EDGES);
                    let (sizes, strides) = (sizes.as_ptr(), strides.as_ptr());
                    let code = aoti_torch__reinterpret_tensor(
                        live_handle,
                        2,
                        sizes,
                        strides,
                        start,
                        &mut out,
                    );
                    accept_or_refuse(code, &mut out);
                    let code = aoti_torch__alloc_from_pool(
                        live_handle,
                        start,
                        6,
                        2,
                        sizes,
                        strides,
                        &mut out,
                    );
                    accept_or_refuse(code, &mut out);
                }
            }
            8 => {
                let bad = [null_mut(), null_mut::<u8>().wrapping_add(3).cast()];
                for out in bad {
                    let (sizes, none) = (some.as_ptr(), null());
                    invalid(aoti_torch_empty_strided(2, sizes, none, 6, 13, 0, out));
                    invalid(aoti_torch_new_uninitialized_tensor(out));
                    if live.is_some() {
                        invalid(aoti_torch_clone(live_handle, out));
                        invalid(aoti_torch_new_tensor_handle(live_handle, out));
                    }
                }
            }
            9 => {
                let (sizes, none) = (some.as_ptr(), null());
                for (dtype, device, index) in
                    [(99, 13, 0), (-1, 0, 0), (6, 1, 0), (6, -3, 0), (6, 13, 1), (6, 13, -2)]
                {
                    invalid(aoti_torch_empty_strided(
                        2, sizes, none, dtype, device, index, &mut out,
                    ));
                }
                for rank in [-1, 17, i64::MAX, i64::MIN] {
                    invalid(aoti_torch_empty_strided(rank, sizes, none, 6, 13, 0, &mut out));
                }
                invalid(aoti_torch_empty_strided(2, none, none, 6, 13, 0, &mut out));
                invalid(aoti_torch_empty_strided(2, 9 as *const i64, none, 6, 13, 0, &mut out));
            }
            10 => {
                let (sizes, none) = (some.as_ptr(), null());
                let blob = |data: usize, offset, layout, out| {
                    aoti_torch_create_tensor_from_blob_v2(
                        data as *mut c_void,
                        2,
                        sizes,
                        none,
                        offset,
                        6,
                        13,
                        0,
                        out,
                        layout,
                        null(),
                        0,
                    )
                };
                invalid(blob(0, 0, 0, &mut out));
                invalid(blob(usize::MAX - 3, 0, 0, &mut out));
                refused(blob(64, 0, 1, &mut out));
                invalid(blob(64, -1, 0, &mut out));
                invalid(blob(64, i64::MAX, 0, &mut out));
            }
            11 => {
                let mut pointer = UNTOUCHED as *mut c_void;
                refused(aoti_torch_mps_malloc(&mut pointer, usize::MAX));
                refused(aoti_torch_mps_malloc(&mut pointer, 1 << 62));
                invalid(aoti_torch_mps_malloc(null_mut(), 16));
                assert_eq!(pointer as usize, UNTOUCHED);
                invalid(aoti_torch_mps_free(&raw mut out as *mut c_void));
                invalid(aoti_torch_mps_memcpy(null_mut(), 0, 0, 8, null_mut()));
                let mut byte = 0u8;
                invalid(aoti_torch_mps_memcpy(16 as *mut _, usize::MAX, 0, 8, &mut byte));
                invalid(aoti_torch_mps_copy_buffer(null_mut(), null_mut(), 8, 0, 0));
            }
            12 => {
                let mut library = null_mut();
                for text in [
                    c"kernel void broken(",
                    c"nonsense",
                    c"kernel void f(device int* a [[buffer(0)]]) { a[0] = b; }",
                ] {
                    let code = aoti_torch_mps_create_shader_library(text.as_ptr(), &mut library);
                    if code == 0 {
                        ok(aoti_torch_mps_delete_shader_library(library));
                        library = null_mut();
                    }
                }
                invalid(aoti_torch_mps_create_shader_library(null(), &mut library));
                invalid(aoti_torch_mps_create_shader_library(c"\xff\xfe".as_ptr(), &mut library));
                assert!(library.is_null());
            }
            13 => {
                invalid(aoti_wgpu_stats(null_mut()).cast_signed());
                let mut short = aoti_wgpu_stats_t { struct_size: 8, ..Default::default() };
                invalid(aoti_wgpu_stats(&mut short).cast_signed());
                assert_eq!(short, aoti_wgpu_stats_t { struct_size: 8, ..Default::default() });
            }
            14 => {
                if live.is_some() {
                    let mut integer = 7;
                    for d in [i64::MIN, -17, 16, i64::MAX] {
                        invalid(aoti_torch_get_size(live_handle, d, &mut integer));
                        invalid(aoti_torch_get_stride(live_handle, d, &mut integer));
                    }
                    assert_eq!(integer, 7);
                }
            }
            _ => {
                // Not defined: everything but asking, assigning and deleting is refused.
                let mut none = null_mut();
                ok(aoti_torch_new_uninitialized_tensor(&mut none));
                invalid(aoti_torch_copy_(none, none, 0));
                invalid(aoti_torch_clone(none, &mut out));
                invalid(aoti_torch_zero_(none));
                let mut pointer = null_mut();
                invalid(aoti_torch_get_data_ptr(none, &mut pointer));
                ok(aoti_torch_delete_tensor_object(none));
                invalid(aoti_torch_delete_tensor_object(none));
            }
        }
    }
    assert_eq!(out, untouched());
}

fn refuses_function(function: AOTIMetalKernelFunctionHandle) {
    // SAFETY: refused without being read.
    unsafe {
        invalid(aoti_torch_mps_start_encoding(function));
        invalid(aoti_torch_mps_set_arg_int(function, 0, 1));
        invalid(aoti_torch_mps_dispatch_single(function, 1));
        invalid(aoti_torch_mps_dispatch_single_with_group_size(function, 1, 1));
        invalid(aoti_torch_mps_dispatch_array(function, [1u64].as_ptr(), 1));
    }
}

/// Sizes, strides and offsets at which something overflows.
const EDGES: &[i64] = &[
    i64::MIN,
    i64::MIN + 1,
    -(1 << 32),
    -1,
    0,
    1,
    2,
    3,
    (1 << 31) - 1,
    1 << 31,
    (1 << 31) + 1,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    1 << 61,
    (1 << 62) + 1,
    i64::MAX - 1,
    i64::MAX,
];

/// Deletes what a call made that may succeed or not.
unsafe fn accept_or_refuse(code: i32, out: &mut Handle) {
    if code == 0 {
        // SAFETY: a handle that was just made.
        ok(unsafe { aoti_torch_delete_tensor_object(*out) });
        *out = untouched();
    } else {
        refused(code);
    }
}

unsafe fn bad_shape(random: &mut Random, out: &mut Handle) {
    let rank = 1 + random.below(16) as usize;
    let sizes: Vec<i64> = (0..rank).map(|_| random.pick(EDGES)).collect();
    let strides: Vec<i64> = (0..rank).map(|_| random.pick(EDGES)).collect();
    let given = random.chance(2);
    let strides = if given { strides.as_ptr() } else { null() };
    // Types from one byte to sixteen.
    let dtype = random.pick(&[0, 5, 6, 7, 10]);
    let device = random.pick(&[0, 13]);
    let count = sizes.iter().fold(1i128, |n, &size| n.saturating_mul(i128::from(size.max(0))));
    // What would be granted, and be large, is not asked for.
    if count > 1 << 20 && count < 1 << 40 {
        return;
    }
    // SAFETY: arrays of the rank.
    unsafe {
        let rank = rank as i64;
        let code = aoti_torch_empty_strided(rank, sizes.as_ptr(), strides, dtype, device, 0, out);
        accept_or_refuse(code, out);
        // No byte of this is read: it is refused, or has no elements, or is deleted again.
        let code = aoti_torch_create_tensor_from_blob(
            4096 as *mut c_void,
            rank,
            sizes.as_ptr(),
            strides,
            random.pick(EDGES),
            dtype,
            device,
            0,
            out,
        );
        accept_or_refuse(code, out);
    }
}

/// Every bad call several times, with a check that nothing changed.
pub fn run() {
    let sizes = [4i64, 4];
    let mut handle = null_mut();
    // SAFETY: arrays of the rank.
    unsafe {
        ok(aoti_torch_empty_strided(2, sizes.as_ptr(), null(), 6, 13, 0, &mut handle));
        ok(aoti_torch_zero_(handle));
    }
    let before = stats();
    for seed in 0..2000 {
        nonsense(&mut Random::new(seed, 1), Some(handle), None, &[]);
    }
    pointers();
    let after = stats();
    assert_eq!(after.live_handles, before.live_handles);
    assert_eq!(after.live_device_bytes, before.live_device_bytes);
    assert_eq!(after.live_storages, before.live_storages);
    // SAFETY: a live handle, once.
    unsafe {
        ok(aoti_torch_check_inf_and_nan(c"x".as_ptr(), handle));
        ok(aoti_torch_delete_tensor_object(handle));
    }
    assert_eq!(stats().live_storages, 0);
}

/// Addresses within, at the end of and past an allocation, and of one that was freed.
fn pointers() {
    let blob = |data: *mut c_void, count: i64, dtype: i32| -> (i32, Handle) {
        let mut out = untouched();
        // SAFETY: what is no live allocation is refused, or has no elements.
        let code = unsafe {
            aoti_torch_create_tensor_from_blob(data, 1, &count, null(), 0, dtype, 13, 0, &mut out)
        };
        (code, out)
    };
    let mut start = null_mut();
    // SAFETY: an output.
    ok(unsafe { aoti_torch_mps_malloc(&mut start, 100) });
    let at = |offset: usize| start.wrapping_byte_add(offset);
    for (offset, count) in [(0, 25), (4, 24), (96, 1), (100, 0), (0, 0)] {
        let (code, out) = blob(at(offset), count, 6);
        ok(code);
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_delete_tensor_object(out) });
    }
    // One element too many, not aligned, at the end and past it.
    for (offset, count) in [(0, 26), (96, 2), (1, 1), (98, 1), (100, 1), (128, 1), (255, 1)] {
        let (code, out) = blob(at(offset), count, 6);
        assert_eq!((code, out), (INVALID, untouched()), "{count} elements at {offset}");
    }
    // SAFETY: an allocation that is freed once.
    ok(unsafe { aoti_torch_mps_free(start) });
    // Without a pool the memory is the system's again, and nobody can tell.
    if std::env::var("ET_METAL_BUFFER_POOL_SIZE_MB").is_ok_and(|mib| mib == "0") {
        return;
    }
    for offset in [0, 4, 96] {
        let (code, out) = blob(at(offset), 1, 6);
        assert_eq!((code, out), (INVALID, untouched()), "freed, at {offset}");
    }
}
