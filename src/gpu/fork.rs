//! A process that was forked has its parent's memory and none of its threads, nor a
//! connection of its own to the driver: the device is of no use in it, and locks that
//! another thread held stay held. So a child only learns that it is one.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// From now on a fork leaves a mark in the child.
#[cfg(unix)]
pub fn watch() {
    extern "C" fn mark() {
        IN_CHILD.store(true, Ordering::Relaxed);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed in the child of a
        // process with several threads.
        let code = unsafe { libc::pthread_atfork(None, None, Some(mark)) };
        if code != 0 {
            log::warn!("a fork of this process will not be noticed (error {code})");
        }
    });
}

/// There is no fork here.
#[cfg(not(unix))]
pub fn watch() {}

/// Whether this process was forked from the one that opened its device.
#[inline]
pub fn in_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Whether this process is the one that opened its device.
///
/// # Errors
/// [`Error::DeviceLost`] in a child that was forked afterwards.
#[inline]
pub fn check() -> Result<()> {
    if in_child() { Err(forked()) } else { Ok(()) }
}

#[cold]
fn forked() -> Error {
    Error::DeviceLost(
        "this process was forked from one that had started it; start the GPU after the fork, \
         or run a new program in the child"
            .into(),
    )
}
