//! Work for the GPU on a thread or in a process that is ending. wgpu keeps thread-local state
//! with destructors, and panics without it; programs delete tensors from destructors that run
//! later: of their own thread-local objects, and of static ones after `main`. And drivers have
//! static objects as well, without which they compile no kernel.
#![allow(unsafe_code)]

use std::cell::Cell;

struct Sentinel;

impl Drop for Sentinel {
    // Having a destructor is what makes the language track the end of the thread.
    fn drop(&mut self) {}
}

thread_local! {
    static SENTINEL: Sentinel = const { Sentinel };
    /// Whether the sentinel was made. Without a destructor, so it is there to the last.
    static MARKED: Cell<bool> = const { Cell::new(false) };
}

/// After wgpu was used on this thread: what comes into being later ends earlier.
#[inline]
pub fn mark() {
    if SENTINEL.try_with(|_| ()).is_ok() {
        MARKED.set(true);
    }
}

/// Runs `body`, on a thread of its own where this one is past using wgpu.
pub fn outlive<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    // What this thread makes now ends before what wgpu makes later, so wgpu comes first.
    let ending =
        MARKED.try_with(Cell::get).is_ok_and(|marked| marked) && SENTINEL.try_with(|_| ()).is_err();
    if !ending {
        return body();
    }
    std::thread::scope(|scope| match scope.spawn(body).join() {
        Ok(result) => result,
        Err(payload) => std::panic::resume_unwind(payload),
    })
}

/// Has `handler` called when the process ends by `exit` or a return from `main`: before the
/// static objects go that exist now, and after those that are made later.
#[cfg(unix)]
pub fn at_exit(handler: extern "C" fn()) {
    // SAFETY: any function without arguments may be registered, at any time.
    let code = unsafe { libc::atexit(handler) };
    if code != 0 {
        log::warn!("work that is queued when the process ends is not finished (error {code})");
    }
}

/// There, handlers of a library run when the threads that they would wait for are gone.
#[cfg(not(unix))]
pub fn at_exit(_handler: extern "C" fn()) {}
