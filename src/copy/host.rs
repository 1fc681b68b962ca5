//! Runs a plan over host memory, a large one on a few threads (`threads`).
//!
//! The caller proves that both ranges are there and do not overlap; memory that C
//! can reach at the same time is never made a reference, so everything is done
//! through raw pointers. [`run_slices`] is the checked door for Rust.
//!
//! A plan is walked as rows: the innermost dimension is a loop of its own, chosen by
//! the plan's form, and an odometer over the other dimensions calls it. Copies larger than
//! the caches write past them (`lines`), and transposes go through blocks (`transpose`).
#![allow(unsafe_code)]

use super::plan::{CopyPlan, Dim, Form};
use crate::error::{Error, Result};
use crate::layout::MAX_DIMS;
use lines::{Ahead, LINE, Lines, ROOM};
use std::ptr::copy_nonoverlapping;
use transpose::transpose;

mod lines;
mod threads;
mod transpose;

/// A copy of more bytes than this to one range writes past the caches: the range does not
/// stay in them, so that what it had before would be read for nothing.
const STREAM_BYTES: u64 = 16 << 20;

/// Copies between two byte slices.
///
/// # Errors
/// [`Error::InvalidArgument`] where the plan reaches past the end of a slice.
pub fn run_slices(plan: &CopyPlan, dst: &mut [u8], src: &[u8]) -> Result<()> {
    check_reach("dst", plan.dst_end(), dst.len())?;
    check_reach("src", plan.src_end(), src.len())?;
    // SAFETY: both ends were compared with the slices' lengths, and a shared and an
    // exclusive slice do not overlap.
    unsafe { run(plan, dst.as_mut_ptr(), src.as_ptr()) };
    Ok(())
}

pub(super) fn check_reach(argument: &'static str, end: u64, len: usize) -> Result<()> {
    if end > len as u64 {
        let value = format_args!("{len} bytes");
        return Err(Error::invalid(argument, value, format!("the copy reaches byte {end}")));
    }
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
    if plan.bytes() >= STREAM_BYTES {
        // SAFETY: the caller's promise.
        unsafe { threads::run(plan, At { dst, src }, threads::available()) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { on_this_thread(plan, At { dst, src }, false) }
    }
}

/// Copies; `start` is the start of the two memories. A `large` copy, or a part of one, does
/// not fill the caches with what it writes.
///
/// # Safety
/// As [`run`].
unsafe fn on_this_thread(plan: &CopyPlan, start: At, large: bool) {
    // SAFETY: the first byte of each side lies inside its range.
    let at = unsafe {
        At { dst: start.dst.add(plan.dst() as usize), src: start.src.add(plan.src() as usize) }
    };
    let run = plan.run() as usize;
    let stream = large && plan.is_packed();
    // A source that an expansion repeats stays in the caches.
    let repeats = stream && plan.src_end() - plan.src() <= STREAM_BYTES / 4;
    let dims = plan.dims();
    // SAFETY: what each of these may touch is what the plan's dimensions and run
    // reach from its first elements, which is the caller's promise.
    unsafe {
        match plan.form() {
            Form::Empty => {}
            Form::Contiguous if stream => {
                lines::store_range(at.dst, at.src, run);
                lines::fence();
            }
            Form::Contiguous => copy_nonoverlapping(at.src, at.dst, run),
            Form::Runs if repeats => stage_runs(dims, run, at),
            Form::Runs if stream && is_best_streamed(dims, run, at) => stream_runs(dims, run, at),
            Form::Runs => runs(dims, run, at),
            Form::Splat | Form::Elements => match run {
                1 => elements::<u8, 64>(dims, at, stream, repeats),
                2 => elements::<u16, 32>(dims, at, stream, repeats),
                4 => elements::<u32, 16>(dims, at, stream, repeats),
                8 => elements::<u64, 8>(dims, at, stream, repeats),
                _ => elements::<u128, 4>(dims, at, stream, repeats),
            },
            Form::Transpose { axis } => match run {
                1 => transpose::<u8, 64>(dims, axis, at, large),
                2 => transpose::<u16, 32>(dims, axis, at, large),
                4 => transpose::<u32, 16>(dims, axis, at, large),
                8 => transpose::<u64, 8>(dims, axis, at, large),
                _ => transpose::<u128, 4>(dims, axis, at, large),
            },
        }
    }
}

/// A place in both memories.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub dst: *mut u8,
    pub src: *const u8,
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
pub(super) fn walk(dims: &[Dim], mut at: At, mut row: impl FnMut(At)) {
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

/// Whether runs of whole lines are copied faster past the caches than row by row. They are
/// where the processor does not guess by itself what is read next: about 256 bytes, and
/// runs that are more than a page apart, but for long ones. There it gains up to a quarter;
/// for halves of rows of 256, 1024 and 16384 bytes it loses as much.
fn is_best_streamed(dims: &[Dim], run: usize, at: At) -> bool {
    const PAGE: u64 = 4096;
    let far = dims.last().is_some_and(|inner| inner.src >= PAGE);
    lines::is_whole(at.dst, run) && (matches!(run, 129..=256) || (far && run < PAGE as usize))
}

/// Runs of whole lines to one range of whole lines, past the caches.
///
/// # Safety
/// As [`runs`].
unsafe fn stream_runs(dims: &[Dim], run: usize, at: At) {
    let Some(&inner) = dims.last() else { return };
    let ahead = Ahead::new(run, inner);
    walk(dims, at, |at| {
        for done in (0..run).step_by(LINE) {
            ahead.fetch(at.src, done);
            // SAFETY: a line of this run; all runs together are the destination, so that as
            // its start and the run are whole lines, this is one.
            unsafe { lines::store_line(at.dst.add(done), at.src.add(done)) }
        }
    });
    lines::fence();
}

/// Runs to one contiguous range, past the caches, by way of a buffer.
///
/// # Safety
/// As [`runs`].
unsafe fn stage_runs(dims: &[Dim], run: usize, at: At) {
    let mut lines = Lines::new(at.dst);
    walk(dims, at, |at| {
        let mut done = 0;
        while done < run {
            let bytes = ROOM.min(run - done);
            // SAFETY: a part of this run, to where there is room for it; all runs
            // together are the destination.
            unsafe {
                copy_nonoverlapping(at.src.add(done), lines.room(), bytes);
                lines.added(bytes);
            }
            done += bytes;
        }
    });
    // SAFETY: as above.
    unsafe { lines.finish() }
}

/// A row of fewer elements is not worth a loop of its own.
const SHORT_ROW: u64 = 8;

/// # Safety
/// A `T` may be copied at every index of `dims` from `at`; to one contiguous range
/// past the caches where `stream`, its source in them where it `repeats`. `B` are a line.
unsafe fn elements<T: Copy + Default, const B: usize>(
    dims: &[Dim],
    at: At,
    stream: bool,
    repeats: bool,
) {
    const { assert!(B * size_of::<T>() == LINE) }
    let mut reordered = [Dim::default(); MAX_DIMS];
    let Some(copy) = reordered.get_mut(..dims.len()) else { return };
    copy.copy_from_slice(dims);
    let long = dims.last().is_some_and(|inner| inner.size >= SHORT_ROW);
    if !long
        && let [.., outer, inner] = copy
        && outer.size > inner.size
    {
        std::mem::swap(outer, inner);
    }
    let Some((&mut inner, outer)) = copy.split_last_mut() else { return };
    let outer = &*outer;
    let width = size_of::<T>() as u64;
    // Every stride of a plan of single units is a multiple of the unit.
    let (n, d, s) =
        (inner.size as usize, (inner.dst / width) as usize, (inner.src / width) as usize);
    // SAFETY: each loop copies the `n` elements of one row, at the row's strides.
    match (d, s) {
        // Elements of less than a word are gathered more slowly than they are stored.
        (1, 2) if stream && width >= 4 && lines::is_whole(at.dst, n * size_of::<T>()) => unsafe {
            walk(outer, at, |at| every_second::<T, B, true>(at, n));
            lines::fence();
        },
        (1, _) if repeats && long => unsafe { stream_rows::<T, B>(outer, n, s, at) },
        (1, 0) => walk(outer, at, |at| unsafe { splat::<T>(at, n) }),
        (1, 2) => walk(outer, at, |at| unsafe { every_second::<T, B, false>(at, n) }),
        (1, _) => walk(outer, at, |at| unsafe { row::<T>(at, n, 1, s) }),
        (_, 1) => walk(outer, at, |at| unsafe { row::<T>(at, n, d, 1) }),
        (_, _) => walk(outer, at, |at| unsafe { row::<T>(at, n, d, s) }),
    }
}

/// Rows of `n` elements, `s` elements apart in the source, to one contiguous range,
/// past the caches.
///
/// # Safety
/// As [`elements`], of every row.
unsafe fn stream_rows<T: Copy + Default, const B: usize>(
    outer: &[Dim],
    n: usize,
    s: usize,
    at: At,
) {
    let mut lines = Lines::new(at.dst);
    walk(outer, at, |at| {
        let mut done = 0;
        while done < n {
            let count = (ROOM / size_of::<T>()).min(n - done);
            // SAFETY: a part of this row, to where there is room for it; all rows
            // together are the destination.
            unsafe {
                let at = At { dst: lines.room(), src: at.src.cast::<T>().add(done * s).cast() };
                match s {
                    0 => splat::<T>(at, count),
                    2 => every_second::<T, B, false>(at, count),
                    _ => row::<T>(at, count, 1, s),
                }
                lines.added(count * size_of::<T>());
            }
            done += count;
        }
    });
    // SAFETY: as above.
    unsafe { lines.finish() }
}

/// # Safety
/// `n` elements may be written from `at.dst` on, and every second one read from `at.src`.
/// `at.dst` is the start of a line where `STREAM`.
#[inline(always)]
unsafe fn every_second<T: Copy + Default, const B: usize, const STREAM: bool>(at: At, n: usize) {
    let mut done = 0;
    // The last element of a row has no neighbour that may be read as well.
    while done + B < n {
        let from = at.src.cast::<[[T; 2]; B]>();
        // SAFETY: these elements and the ones between them, with at least one after; as many
        // fill a line.
        unsafe {
            let pairs = from.byte_add(2 * done * size_of::<T>()).read_unaligned();
            let first = pairs.map(|pair| pair[0]);
            let to = at.dst.cast::<T>().add(done);
            if STREAM {
                lines::store_line(to.cast(), first.as_ptr().cast());
            } else {
                to.cast::<[T; B]>().write_unaligned(first);
            }
        }
        done += B;
    }
    // SAFETY: the rest of the row.
    unsafe {
        let src = at.src.cast::<T>().add(2 * done).cast();
        row::<T>(At { dst: at.dst.cast::<T>().add(done).cast(), src }, n - done, 1, 2);
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
