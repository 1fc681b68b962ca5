//! What the fuzz targets and their short forms in `cargo test` do with their bytes.

#[path = "../../examples/support/npy.rs"]
mod npy;

use aoti_wgpu::copy::host;
use aoti_wgpu::copy::plan::CopyPlan;
use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::msl::{self, Library, ParamKind};
use std::ptr::{null, null_mut};

/// Integers drawn from bytes; zeroes once those are used up.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, n: i64) -> i64 {
        i64::from(self.byte()) % n
    }

    /// Mostly small, at times at the edge of a type, at times anything.
    fn integer(&mut self) -> i64 {
        match self.byte() % 8 {
            0..=4 => self.below(10),
            5 => {
                let power = i64::from(self.byte() % 64);
                1i64.wrapping_shl(power as u32).wrapping_add(self.below(3) - 1)
            }
            6 => -self.below(5),
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// The C functions that make tensors: whatever the arguments, a code, and nothing left.
pub fn c_arguments(bytes: &[u8]) {
    let mut draw = Draw(bytes);
    let mut base = null_mut();
    // SAFETY: arrays of the rank, and an output.
    assert_eq!(unsafe { aoti_torch_empty_strided(1, &64, null(), 0, 0, 0, &mut base) }, 0);
    let mut memory = [0u8; 256];
    for _ in 0..4 {
        let rank = match draw.byte() {
            0..=239 => draw.below(6),
            _ => draw.integer(),
        };
        // As many integers as any legal rank takes, so that no call reads past them.
        let sizes: [i64; 16] = std::array::from_fn(|_| draw.integer());
        let strides: [i64; 16] = std::array::from_fn(|_| draw.integer());
        let pick = |draw: &mut Draw<'_>, array: &[i64; 16]| match draw.byte() % 8 {
            0 => null(),
            _ => array.as_ptr(),
        };
        let (sizes, strides) = (pick(&mut draw, &sizes), pick(&mut draw, &strides));
        let (offset, dtype) = (draw.integer(), draw.integer() as i32);
        let device = [0, 13, 0, 13, 1, -1][draw.below(6) as usize];
        let index = [0, -1, 0, 1][draw.below(4) as usize];
        let mut out: Handle = null_mut();
        // SAFETY: the arrays hold whatever rank is legal; no element is ever read.
        let code = unsafe {
            match draw.byte() % 4 {
                0 => aoti_torch_empty_strided(rank, sizes, strides, dtype, device, index, &mut out),
                1 => aoti_torch_create_tensor_from_blob_v2(
                    memory.as_mut_ptr().cast(),
                    rank,
                    sizes,
                    strides,
                    offset,
                    dtype,
                    device,
                    index,
                    &mut out,
                    draw.below(3) as i32,
                    null(),
                    0,
                ),
                2 => aoti_torch__reinterpret_tensor(base, rank, sizes, strides, offset, &mut out),
                _ => {
                    aoti_torch__alloc_from_pool(base, offset, dtype, rank, sizes, strides, &mut out)
                }
            }
        };
        assert_eq!(code == 0, !out.is_null(), "an output without success, or the other way round");
        // SAFETY: a live handle, or null.
        assert_eq!(unsafe { aoti_torch_delete_tensor_object(out) }, 0);
    }
    // SAFETY: a live handle.
    assert_eq!(unsafe { aoti_torch_delete_tensor_object(base) }, 0);
}

/// A copy plan against a walk over all elements.
pub fn planner(bytes: &[u8]) {
    const ROOM: i64 = 4096;
    let mut draw = Draw(bytes);
    let rank = draw.below(6) as usize;
    let sizes: Vec<i64> = (0..rank).map(|_| draw.below(7)).collect();
    let element = [1, 2, 4, 8, 16][draw.below(5) as usize];
    let layout = |draw: &mut Draw<'_>| {
        let strides: Vec<i64> = (0..rank).map(|_| draw.below(40)).collect();
        Layout::new(&sizes, &strides, draw.below(9)).ok()
    };
    let (Some(dst), Some(src)) = (layout(&mut draw), layout(&mut draw)) else { return };
    if dst.overlaps() || dst.end().max(src.end()) > ROOM {
        return;
    }
    let Ok(plan) = CopyPlan::new(&dst, &src, element) else { return };
    let len = |layout: &Layout| layout.end() as usize * element;
    let from: Vec<u8> = (0..len(&src)).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut found = vec![0xa5u8; len(&dst)];
    let mut wanted = found.clone();
    if host::run_slices(&plan, &mut found, &from).is_err() {
        panic!("a plan reaches further than its layouts");
    }
    let offsets = |layout: &Layout| {
        let mut out = vec![layout.offset()];
        for (&size, &stride) in sizes.iter().zip(layout.strides()) {
            out = out.iter().flat_map(|&o| (0..size).map(move |i| o + i * stride)).collect();
        }
        out
    };
    for (to, from_at) in offsets(&dst).into_iter().zip(offsets(&src)) {
        let (to, from_at) = (to as usize * element, from_at as usize * element);
        wanted[to..to + element].copy_from_slice(&from[from_at..from_at + element]);
    }
    assert_eq!(found, wanted, "{dst:?} from {src:?}");
}

/// Text to a library, and each of its kernels to a module that naga accepts.
pub fn metal(text: &str) {
    let Ok(library) = Library::parse(text) else { return };
    for kernel in library.kernels() {
        let buffers = kernel.params().iter().filter(|p| p.kind != ParamKind::Int).count();
        let slots: Vec<u32> = (0..buffers as u32).collect();
        let layout =
            msl::Layout { slots: &slots, group: [64, 1, 1], max_immediate_bytes: 128, int64: true };
        if let Ok(program) = kernel.lower(&layout) {
            use naga::valid::{Capabilities, ValidationFlags, Validator};
            let capabilities = Capabilities::SHADER_INT64 | Capabilities::IMMEDIATES;
            // What it refuses becomes an error of the first dispatch; it must not panic.
            let _ = Validator::new(ValidationFlags::all(), capabilities).validate(&program.module);
        }
    }
}

/// A `.npy` file: an array of as many bytes as its shape says, or an error; what was read is
/// the same after it was written.
pub fn npy(bytes: &[u8]) {
    let Ok(array) = npy::decode(bytes) else { return };
    let size: i64 = array.kind[1..].parse().unwrap();
    assert_eq!(array.shape.iter().product::<i64>() * size, array.bytes.len() as i64);
    // The writer's format has no room for the longest headers.
    let Ok(file) = npy::encode(&array.kind, &array.shape, &array.bytes) else { return };
    let again = npy::decode(&file).unwrap();
    assert_eq!(again.kind, array.kind);
    assert_eq!(again.shape, array.shape);
    assert_eq!(again.bytes, array.bytes);
}
