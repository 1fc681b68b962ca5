//! Large copies on a few threads: one alone reaches about half of what the memory gives.
//!
//! A plan is cut in halves until there is a part for each thread. The calling thread copies
//! one of them itself, and all of what no thread could be started for.

use super::{At, on_this_thread};
use crate::copy::plan::{CopyPlan, Form};
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

/// More threads than this add little, and their start costs each copy 20 us or so.
const MOST: usize = 4;

/// A part of fewer bytes is not worth a thread.
const LEAST_BYTES: u64 = 8 << 20;

/// The threads that a copy may use: as many as the process has processors, up to [`MOST`].
pub(super) fn available() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get).min(MOST))
}

/// Copies a large plan on up to `count` threads; `start` is the start of the two memories.
///
/// # Safety
/// As [`super::run`].
pub(super) unsafe fn run(plan: &CopyPlan, start: At, count: usize) {
    let halves = (count > 1 && plan.bytes() >= 2 * LEAST_BYTES).then(|| halves(plan)).flatten();
    let Some((first, second)) = halves else {
        // SAFETY: the caller's promise.
        return unsafe { on_this_thread(plan, start, true) };
    };
    let shared = Shared(start);
    thread::scope(|scope| {
        let other = || {
            // Whole, so that the pointers move as what may be sent.
            let Shared(start) = { shared };
            // SAFETY: the caller's promise, of a part of its plan. No two parts write to the
            // same byte, and what one writes the other does not read.
            unsafe { run(&first, start, count / 2) }
        };
        let started = thread::Builder::new().spawn_scoped(scope, other);
        // SAFETY: as above.
        unsafe {
            run(&second, start, count - count / 2);
            if started.is_err() {
                run(&first, start, 1);
            }
        }
    });
}

/// Two plans that together are this one, cut where the destination's parts lie farthest
/// apart.
fn halves(plan: &CopyPlan) -> Option<(CopyPlan, CopyPlan)> {
    match plan.form() {
        Form::Empty => None,
        Form::Contiguous => plan.halves_of_run(),
        _ => plan.dims().first().filter(|dim| dim.size > 1).map(|_| plan.halves(0)),
    }
}

/// The two memories, for another thread.
#[derive(Clone, Copy)]
struct Shared(At);

// SAFETY: pointers alone; what may be done through them, and that no other thread does it to
// the same bytes, is `run`'s to prove.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    /// A large plan on any number of threads gives what one gives.
    #[test]
    fn threads_change_nothing() {
        let rows = 3 * (LEAST_BYTES as i64) / 64 + 5;
        let wide = Layout::new(&[rows, 61], &[64, 1], 3).unwrap();
        let every = Layout::new(&[rows, 31], &[64, 2], 1).unwrap();
        let tall = Layout::new(&[64, rows], &[1, 64], 0).unwrap();
        let whole = Layout::contiguous(&[64 * rows + 3]).unwrap();
        let source: Vec<u8> =
            (0..64 * rows as usize + 3).map(|i| (i * 7 + i / 251) as u8).collect();
        for src in [wide, every, tall, whole] {
            let dst = Layout::contiguous(src.sizes()).unwrap();
            let plan = CopyPlan::new(&dst, &src, 1).unwrap();
            let copy = |count| {
                let mut out = vec![0u8; plan.dst_end() as usize];
                let start = At { dst: out.as_mut_ptr(), src: source.as_ptr() };
                assert!(plan.src_end() <= source.len() as u64);
                // SAFETY: both memories are as long as the plan reaches.
                unsafe { run(&plan, start, count) };
                out
            };
            let expected = copy(1);
            let indices = |count: usize| (0..count).map(|i| i * (dst.numel() as usize - 1) / 999);
            for i in indices(1000) {
                let (row, column) = (i as i64 / dst.strides()[0], i as i64 % dst.strides()[0]);
                let inner = src.strides().get(1).copied().unwrap_or(0);
                let at = src.offset() + row * src.strides()[0] + column * inner;
                assert_eq!(expected[i], source[at as usize], "{plan:?} at {i}");
            }
            for count in 2..=5 {
                assert!(copy(count) == expected, "{plan:?} on {count} threads");
            }
        }
    }
}
