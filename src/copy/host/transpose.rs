//! Transposes through square blocks, a cache line wide on both sides.
//!
//! A block is read row by row into a buffer and written column by column from it, so
//! that each line is read once and written once, also where a stride of a power of two
//! lets all rows of a block compete for the same few places of a cache.

use super::lines::{self, LINE};
use super::{At, element, walk};
use crate::copy::plan::Dim;
use crate::layout::MAX_DIMS;
use std::ptr::copy_nonoverlapping;

/// Blocks along each side of a super-block: neighbouring lines are fetched in pairs,
/// and the pages that it touches are still known to the processor.
const BLOCKS: u64 = 4;

/// Blocks of `B` x `B` elements: rows are read along `axis`, whose elements lie closest
/// in the source and written along the innermost dimension,
/// past the caches where `stream`.
///
/// # Safety
/// A `T` may be copied at every index of `dims` from `at`.
pub(super) unsafe fn transpose<T: Copy + Default, const B: usize>(
    dims: &[Dim],
    axis: usize,
    at: At,
    stream: bool,
) {
    let (Some((&inner, outer)), Some(&across)) = (dims.split_last(), dims.get(axis)) else {
        return;
    };
    let mut batch = [Dim::default(); MAX_DIMS];
    let mut kept = 0;
    for (_, dim) in outer.iter().enumerate().filter(|&(d, _)| d != axis) {
        if let Some(slot) = batch.get_mut(kept) {
            *slot = *dim;
            kept += 1;
        }
    }
    let side = BLOCKS * B as u64;
    let starts = |from: u64, to: u64, step: u64| (from..to).step_by(step as usize);
    walk(batch.get(..kept).unwrap_or_default(), at, |at| {
        for i0 in starts(0, inner.size, side) {
            for a0 in starts(0, across.size, side) {
                for i in starts(i0, inner.size.min(i0 + side), B as u64) {
                    for a in starts(a0, across.size.min(a0 + side), B as u64) {
                        let at = at.step(inner, i).step(across, a);
                        let extent = (inner.size - i, across.size - a);
                        // SAFETY: `block` stays inside the dimensions' remaining extent.
                        unsafe { block::<T, B>(at, inner, across, extent, stream) }
                    }
                }
            }
        }
    });
    if stream {
        lines::fence();
    }
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
    stream: bool,
) {
    const { assert!(B * size_of::<T>() == LINE) }
    let width = size_of::<T>() as u64;
    let side = B as u64;
    if extent.0 < side || extent.1 < side || across.src != width || inner.dst != width {
        for a in 0..extent.1.min(side) {
            for i in 0..extent.0.min(side) {
                // SAFETY: both indices lie within the extent.
                unsafe { element::<T>(at.step(across, a).step(inner, i)) }
            }
        }
        return;
    }
    let mut tile = [[T::default(); B]; B];
    for (i, row) in tile.iter_mut().enumerate() {
        let from = at.step(inner, i as u64).src;
        // SAFETY: `B` elements along `across`, contiguous in the source.
        unsafe { copy_nonoverlapping(from, row.as_mut_ptr().cast(), size_of_val(row)) }
    }
    // Both branches below take the column as a whole, so the compiler gathers it first.
    // Where it stored element by element, a transpose took half as long again.
    #[expect(clippy::needless_range_loop, reason = "a column is no slice of the tile")]
    for a in 0..B {
        let column: [T; B] = std::array::from_fn(|i| tile[i][a]);
        let to = at.step(across, a as u64).dst;
        // SAFETY: `B` elements along `inner`, contiguous in the destination: a line.
        unsafe {
            if stream && to.addr().is_multiple_of(LINE) {
                lines::store_line(to, column.as_ptr().cast());
            } else {
                copy_nonoverlapping(column.as_ptr().cast(), to, LINE);
            }
        }
    }
}
