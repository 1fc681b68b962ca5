//! Runs a plan over host memory, on the calling thread.
//!
//! The caller proves that both ranges are there and do not overlap; memory that C
//! can reach at the same time is never made a reference, so everything is done
//! through raw pointers. [`run_slices`] is the checked door for Rust.
//!
//! A plan is walked as rows: the innermost dimension is a loop of its own, chosen by
//! the plan's form, and an odometer over the other dimensions calls it. Transposes
//! move square blocks instead, each through a buffer that the first-level cache
//! holds: every cache line is then read once and written once, also where a stride
//! of a power of two lets all rows of a block compete for the same few lines.
#![allow(unsafe_code)]

use super::plan::{CopyPlan, Dim, Form};
use crate::error::{Error, Result};
use crate::layout::MAX_DIMS;
use std::ptr::copy_nonoverlapping;

/// Copies between two byte slices.
///
/// # Errors
/// [`Error::InvalidArgument`] where the plan reaches past the end of a slice.
pub fn run_slices(plan: &CopyPlan, dst: &mut [u8], src: &[u8]) -> Result<()> {
    for (argument, end, len) in
        [("dst", plan.dst_end(), dst.len()), ("src", plan.src_end(), src.len())]
    {
        if end > len as u64 {
            return Err(Error::invalid(
                argument,
                format_args!("{len} bytes"),
                format!("the copy reaches {end}"),
            ));
        }
    }
    // SAFETY: both ends were compared with the slices' lengths, and a shared and an
    // exclusive slice do not overlap.
    unsafe { run(plan, dst.as_mut_ptr(), src.as_ptr()) };
    Ok(())
}

/// Copies; `dst` and `src` point to the start of the two memories.
///
/// # Safety
/// The bytes from `dst + plan.dst()` to `dst + plan.dst_end()` are one allocation that
/// may be written, those from `src + plan.src()` to `src + plan.src_end()` one that may
/// be read, and no byte that is written is also read. Nothing else writes to the bytes
/// read, or touches those written, meanwhile. No alignment is needed.
pub unsafe fn run(plan: &CopyPlan, dst: *mut u8, src: *const u8) {
    if plan.form() == Form::Empty {
        return;
    }
    // SAFETY: the first byte of each side lies inside its range.
    let at = unsafe { At { dst: dst.add(plan.dst() as usize), src: src.add(plan.src() as usize) } };
    let run = plan.run() as usize;
    // SAFETY: what each of these may touch is what the plan's dimensions and run
    // reach from its first elements, which is the caller's promise.
    unsafe {
        match plan.form() {
            Form::Empty => {}
            Form::Contiguous => copy_nonoverlapping(at.src, at.dst, run),
            Form::Runs => runs(plan.dims(), run, at),
            Form::Splat | Form::Elements => match run {
                1 => elements::<u8>(plan.dims(), at),
                2 => elements::<u16>(plan.dims(), at),
                4 => elements::<u32>(plan.dims(), at),
                8 => elements::<u64>(plan.dims(), at),
                _ => elements::<u128>(plan.dims(), at),
            },
            Form::Transpose { axis } => match run {
                1 => transpose::<u8, 32>(plan.dims(), axis, at),
                2 => transpose::<u16, 32>(plan.dims(), axis, at),
                4 => transpose::<u32, 16>(plan.dims(), axis, at),
                8 => transpose::<u64, 8>(plan.dims(), axis, at),
                _ => transpose::<u128, 4>(plan.dims(), axis, at),
            },
        }
    }
}

/// A place in both memories.
#[derive(Clone, Copy)]
struct At {
    dst: *mut u8,
    src: *const u8,
}

impl At {
    /// Moved by `index` steps of `dim`. Only arithmetic: it may lie past the end.
    fn step(self, dim: Dim, index: u64) -> At {
        At {
            dst: self.dst.wrapping_add((index * dim.dst) as usize),
            src: self.src.wrapping_add((index * dim.src) as usize),
        }
    }
}

/// Calls `row` for every index of `dims`, the last one fastest.
fn walk(dims: &[Dim], mut at: At, mut row: impl FnMut(At)) {
    let Some((&inner, outer)) = dims.split_last() else {
        return row(at);
    };
    let mut index = [0u64; MAX_DIMS];
    loop {
        for i in 0..inner.size {
            row(at.step(inner, i));
        }
        let mut dims = outer.iter().zip(&mut index).rev();
        loop {
            let Some((&dim, index)) = dims.next() else { return };
            *index += 1;
            if *index < dim.size {
                at = at.step(dim, 1);
                break;
            }
            // Back to the start of this dimension, on to the next outer one.
            at = At {
                dst: at.dst.wrapping_sub(((dim.size - 1) * dim.dst) as usize),
                src: at.src.wrapping_sub(((dim.size - 1) * dim.src) as usize),
            };
            *index = 0;
        }
    }
}

/// # Safety
/// `run` bytes may be copied at every index of `dims` from `at`.
unsafe fn runs(dims: &[Dim], run: usize, at: At) {
    // SAFETY: each branch copies the bytes 0..run, the last block moved back over
    // bytes that are already there where the run is not a multiple.
    match run {
        0..4 => walk(dims, at, |at| {
            for i in 0..run {
                unsafe { at.dst.add(i).write(at.src.add(i).read()) }
            }
        }),
        4..8 => walk(dims, at, |at| unsafe { ends::<u32>(at, run) }),
        8..16 => walk(dims, at, |at| unsafe { ends::<u64>(at, run) }),
        16..=32 => walk(dims, at, |at| unsafe { ends::<[u64; 2]>(at, run) }),
        33..=64 => walk(dims, at, |at| unsafe { ends::<[u64; 4]>(at, run) }),
        _ => walk(dims, at, |at| unsafe { copy_nonoverlapping(at.src, at.dst, run) }),
    }
}

/// Copies `run` bytes as the first and the last `T` of them.
///
/// # Safety
/// `run` bytes may be copied, and are no less than a `T` and no more than two.
#[inline(always)]
unsafe fn ends<T: Copy>(at: At, run: usize) {
    let last = run - size_of::<T>();
    // SAFETY: both places lie within the run.
    unsafe {
        let head = at.src.cast::<T>().read_unaligned();
        let tail = at.src.add(last).cast::<T>().read_unaligned();
        at.dst.cast::<T>().write_unaligned(head);
        at.dst.add(last).cast::<T>().write_unaligned(tail);
    }
}

/// # Safety
/// A `T` may be copied at every index of `dims` from `at`.
unsafe fn elements<T: Copy>(dims: &[Dim], at: At) {
    let mut dims_by_length = [Dim::default(); MAX_DIMS];
    let dims = match dims_by_length.get_mut(..dims.len()) {
        Some(copy) => {
            copy.copy_from_slice(dims);
            // A short innermost loop costs more than writing out of order does.
            if let [.., outer, inner] = copy
                && inner.size < 8
                && outer.size > inner.size
            {
                std::mem::swap(outer, inner);
            }
            &*copy
        }
        None => dims,
    };
    let Some((&inner, outer)) = dims.split_last() else { return };
    let width = size_of::<T>() as u64;
    let (n, step) = (inner.size as usize, |bytes: u64| (bytes / width) as usize);
    let odd = |bytes: u64| bytes % width != 0;
    // SAFETY: each loop copies the `n` elements of one row, at the row's strides.
    match (inner.dst, inner.src) {
        (d, s) if odd(d) || odd(s) => walk(dims, at, |at| unsafe { element::<T>(at) }),
        (d, 0) if d == width => walk(outer, at, |at| unsafe { splat::<T>(at, n) }),
        (d, s) if d == width && s == 2 * width => {
            walk(outer, at, |at| unsafe { row::<T>(at, n, 1, 2) })
        }
        (d, s) if d == width => walk(outer, at, |at| unsafe { row::<T>(at, n, 1, step(s)) }),
        (d, s) if s == width => walk(outer, at, |at| unsafe { row::<T>(at, n, step(d), 1) }),
        (d, s) => walk(outer, at, |at| unsafe { row::<T>(at, n, step(d), step(s)) }),
    }
}

/// # Safety
/// A `T` may be copied at `at`.
#[inline(always)]
unsafe fn element<T: Copy>(at: At) {
    // SAFETY: the caller's promise.
    unsafe { at.dst.cast::<T>().write_unaligned(at.src.cast::<T>().read_unaligned()) }
}

/// # Safety
/// `n` elements may be copied from `at`, `d` and `s` elements apart.
#[inline(always)]
unsafe fn row<T: Copy>(at: At, n: usize, d: usize, s: usize) {
    let (dst, src) = (at.dst.cast::<T>(), at.src.cast::<T>());
    for i in 0..n {
        // SAFETY: the i-th of the row's elements.
        unsafe { dst.add(i * d).write_unaligned(src.add(i * s).read_unaligned()) }
    }
}

/// # Safety
/// `n` elements may be written from `at.dst`, one may be read at `at.src`.
#[inline(always)]
unsafe fn splat<T: Copy>(at: At, n: usize) {
    let dst = at.dst.cast::<T>();
    // SAFETY: the row's one source element, and the i-th of its destinations.
    unsafe {
        let value = at.src.cast::<T>().read_unaligned();
        for i in 0..n {
            dst.add(i).write_unaligned(value);
        }
    }
}

/// Blocks along one axis of a super-block, so that neighbouring cache lines, which
/// the prefetcher fetches in pairs, are used together.
const BLOCKS: u64 = 4;

/// Blocks of `B` x `B` elements, a cache line wide: a block's rows are read along
/// `axis`, whose elements lie closest in the source, and written along the innermost
/// dimension.
///
/// # Safety
/// A `T` may be copied at every index of `dims` from `at`.
unsafe fn transpose<T: Copy + Default, const B: usize>(dims: &[Dim], axis: usize, at: At) {
    let (Some((&inner, outer)), Some(&across)) = (dims.split_last(), dims.get(axis)) else {
        return;
    };
    let mut batch = [Dim::default(); MAX_DIMS];
    let mut kept = 0;
    for (d, dim) in outer.iter().enumerate().filter(|&(d, _)| d != axis) {
        debug_assert!(d < MAX_DIMS);
        if let Some(slot) = batch.get_mut(kept) {
            *slot = *dim;
            kept += 1;
        }
    }
    let side = BLOCKS * B as u64;
    let starts = |size: u64, from: u64, step: u64| (from..size).step_by(step as usize);
    walk(batch.get(..kept).unwrap_or_default(), at, |at| {
        for i in starts(inner.size, 0, side) {
            for a in starts(across.size, 0, side) {
                for i in starts(inner.size.min(i + side), i, B as u64) {
                    for a in starts(across.size.min(a + side), a, B as u64) {
                        let at = at.step(inner, i).step(across, a);
                        let extent = (inner.size - i, across.size - a);
                        // SAFETY: `block` stays inside the dimensions' remaining extent.
                        unsafe { block::<T, B>(at, inner, across, extent) }
                    }
                }
            }
        }
    });
}

/// # Safety
/// A `T` may be copied at the first `extent.0` indices of `inner` by the first
/// `extent.1` of `across`, from `at`.
#[inline(always)]
unsafe fn block<T: Copy + Default, const B: usize>(
    at: At,
    inner: Dim,
    across: Dim,
    extent: (u64, u64),
) {
    let width = size_of::<T>() as u64;
    if extent.0 >= B as u64 && extent.1 >= B as u64 && across.src == width && inner.dst == width {
        let mut tile = [[T::default(); B]; B];
        for (i, line) in tile.iter_mut().enumerate() {
            let from = at.step(inner, i as u64).src;
            // SAFETY: `B` elements along `across`, contiguous in the source.
            unsafe { copy_nonoverlapping(from, line.as_mut_ptr().cast(), size_of_val(line)) }
        }
        for a in 0..B {
            let column: [T; B] = std::array::from_fn(|i| tile[i][a]);
            let to = at.step(across, a as u64).dst;
            // SAFETY: `B` elements along `inner`, contiguous in the destination.
            unsafe { copy_nonoverlapping(column.as_ptr().cast(), to, size_of_val(&column)) }
        }
        return;
    }
    for a in 0..extent.1.min(B as u64) {
        for i in 0..extent.0.min(B as u64) {
            // SAFETY: both indices lie within the extent.
            unsafe { element::<T>(at.step(across, a).step(inner, i)) }
        }
    }
}
