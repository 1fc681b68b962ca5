//! Writes past the caches.
//!
//! An ordinary store to a line that is not cached reads the line first: a third of the
//! traffic of a copy, and half of it where little else is read, for nothing. [`Lines`]
//! gathers what is to be written in a small buffer and hands whole lines to stores that do
//! not read. [`Ahead`] asks for the lines of runs to come: the processor's own guesses take
//! the gaps between runs for more of the same.

use crate::copy::plan::Dim;
use std::ptr::copy_nonoverlapping;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// The most bytes that may be added at once.
pub(super) const ROOM: usize = 4096;

/// Bytes of the destination from what is copied to what is asked for: of 1 to 8 KiB the
/// best for runs of 64 to 512 bytes.
const DISTANCE: usize = 4096;

/// Where the bytes lie in the source that are due after [`DISTANCE`] more.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    run: usize,
    /// From one run to the next.
    step: usize,
    /// Whole runs within the distance, as bytes of the source.
    runs: usize,
    rest: usize,
}

impl Ahead {
    /// Runs of `run` bytes (not 0) along `inner`.
    pub fn new(run: usize, inner: Dim) -> Self {
        let step = inner.src as usize;
        let runs = (DISTANCE / run).wrapping_mul(step);
        Ahead { run, step, runs, rest: DISTANCE % run }
    }

    /// Asks for the line that is due the distance after byte `at` of the run at `src`. It
    /// may lie past the source's end: asking touches nothing.
    #[inline(always)]
    pub fn fetch(self, src: *const u8, at: usize) {
        let within = at + self.rest;
        let ahead = match within.checked_sub(self.run) {
            None => self.runs + within,
            Some(next) => self.runs + self.step + next,
        };
        prefetch(src.wrapping_add(ahead));
    }
}

#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a hint may name any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[repr(align(64))]
struct Stage([u8; 2 * ROOM + LINE]);

/// One contiguous range, written from its start on.
pub(super) struct Lines {
    /// Where the stage's first byte belongs: the start of a line.
    to: *mut u8,
    /// Bytes at the start of the stage that lie before the range.
    begin: usize,
    end: usize,
    stage: Stage,
}

impl Lines {
    /// A range that begins at `dst`.
    pub fn new(dst: *mut u8) -> Self {
        let begin = dst.addr() % LINE;
        let stage = Stage([0; 2 * ROOM + LINE]);
        Lines { to: dst.wrapping_sub(begin), begin, end: begin, stage }
    }

    /// Where to put the range's next bytes, up to [`ROOM`] of them.
    pub fn room(&mut self) -> *mut u8 {
        self.stage.0.as_mut_ptr().wrapping_add(self.end)
    }

    /// That `bytes` were put there.
    ///
    /// # Safety
    /// The range is at least as long as all that was added, and may be written.
    pub unsafe fn added(&mut self, bytes: usize) {
        self.end += bytes;
        if self.end > ROOM {
            // SAFETY: the caller's promise.
            unsafe { self.flush() }
        }
    }

    /// # Safety
    /// As [`Lines::added`].
    unsafe fn flush(&mut self) {
        let whole = self.end / LINE * LINE;
        let stage = self.stage.0.as_mut_ptr();
        let mut at = 0;
        // SAFETY: what lies between `begin` and `end` was added, so it belongs to the
        // range; whole lines between them lie in both. The rest is less than a line,
        // and `whole` is more than one, so the two do not overlap.
        unsafe {
            if self.begin > 0 {
                copy_nonoverlapping(
                    stage.add(self.begin),
                    self.to.add(self.begin),
                    LINE - self.begin,
                );
                at = LINE;
            }
            while at < whole {
                store_line(self.to.add(at), stage.add(at));
                at += LINE;
            }
            copy_nonoverlapping(stage.add(whole), stage, self.end - whole);
        }
        self.to = self.to.wrapping_add(whole);
        self.begin = 0;
        self.end -= whole;
    }

    /// Writes what is left, and makes all of it visible as ordinary stores are.
    ///
    /// # Safety
    /// As [`Lines::added`].
    pub unsafe fn finish(mut self) {
        // SAFETY: as in `flush`; what is left then is no whole line.
        unsafe {
            if self.end >= 2 * LINE {
                self.flush();
            }
            copy_nonoverlapping(
                self.stage.0.as_ptr().add(self.begin),
                self.to.add(self.begin),
                self.end - self.begin,
            );
        }
        fence();
    }
}

/// Copies `bytes` to one range; lines that it fills whole are not read first.
///
/// # Safety
/// `from` may be read and `to` written for `bytes`, and they do not overlap.
pub(super) unsafe fn store_range(to: *mut u8, from: *const u8, bytes: usize) {
    let begin = to.align_offset(LINE).min(bytes);
    let whole = begin + (bytes - begin) / LINE * LINE;
    // SAFETY: three parts of the range; the middle one begins at a line and is whole lines.
    unsafe {
        copy_nonoverlapping(from, to, begin);
        for at in (begin..whole).step_by(LINE) {
            store_line(to.add(at), from.add(at));
        }
        copy_nonoverlapping(from.add(whole), to.add(whole), bytes - whole);
    }
}

/// Whether `bytes` from `to` on are whole lines.
pub(super) fn is_whole(to: *mut u8, bytes: usize) -> bool {
    (to.addr() | bytes).is_multiple_of(LINE)
}

/// Writes one line, without reading it first where the processor can do that.
///
/// # Safety
/// `from` may be read and `to` written for [`LINE`] bytes; `to` is a multiple of it.
#[inline(always)]
pub(super) unsafe fn store_line(to: *mut u8, from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64, the four parts lie in the line, and `to` is
    // aligned to 16 bytes.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        for part in 0..LINE / 16 {
            let value = _mm_loadu_si128(from.cast::<__m128i>().add(part));
            _mm_stream_si128(to.cast::<__m128i>().add(part), value);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        copy_nonoverlapping(from, to, LINE);
    }
}

/// Orders [`store_line`]'s writes before what follows.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
