//! Faults on purpose: the places at which a test of the feature `faults` makes something
//! go wrong. Without the feature nothing ever does, and the calls cost nothing.

use crate::error::Result;

/// What befalls a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "faults"), allow(dead_code))]
pub enum Submission {
    /// Nothing.
    Fine,
    /// wgpu refuses its commands.
    Refused,
    /// The device is lost.
    Lost,
}

/// A piece of memory is about to be allocated.
///
/// # Errors
/// [`Error::OutOfMemory`](crate::error::Error::OutOfMemory) where the fault is due.
#[inline]
pub fn allocation(bytes: u64) -> Result<()> {
    #[cfg(feature = "faults")]
    return armed::allocation(bytes);
    #[cfg(not(feature = "faults"))]
    {
        let _ = bytes;
        Ok(())
    }
}

/// Commands are about to be submitted.
#[inline]
pub fn submission() -> Submission {
    #[cfg(feature = "faults")]
    return armed::submission();
    #[cfg(not(feature = "faults"))]
    Submission::Fine
}

/// Whether the kernel that is about to be compiled does not compile.
#[inline]
pub fn compile_fails() -> bool {
    #[cfg(feature = "faults")]
    return armed::hit(armed::Fault::Compile);
    #[cfg(not(feature = "faults"))]
    false
}

#[cfg(feature = "faults")]
pub use armed::{Fault, arm, disarm};

#[cfg(feature = "faults")]
mod armed {
    use super::Submission;
    use crate::error::{Error, Result};
    use parking_lot::Mutex;

    /// What goes wrong.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// An allocation finds no memory.
        Allocation,
        /// wgpu refuses a submission.
        Submission,
        /// The device is lost at a submission.
        Loss,
        /// A kernel does not compile.
        Compile,
        /// A panic at an allocation.
        PanicAtAllocation,
        /// A panic at a submission.
        PanicAtSubmission,
    }

    #[derive(Debug, Clone, Copy)]
    struct Armed {
        fault: Fault,
        /// Occasions that pass before the first that fails.
        before: u64,
        /// Occasions that fail then.
        times: u64,
        hits: u64,
    }

    static ARMED: Mutex<Option<Armed>> = Mutex::new(None);

    /// From now on the `k`th occasion (from 1) and `times - 1` after it fail.
    pub fn arm(fault: Fault, k: u64, times: u64) {
        *ARMED.lock() = Some(Armed { fault, before: k.saturating_sub(1), times, hits: 0 });
    }

    /// Ends the faults; how many there were.
    pub fn disarm() -> u64 {
        ARMED.lock().take().map_or(0, |armed| armed.hits)
    }

    pub fn hit(fault: Fault) -> bool {
        let mut armed = ARMED.lock();
        let Some(armed) = armed.as_mut().filter(|armed| armed.fault == fault) else { return false };
        if armed.before > 0 {
            armed.before -= 1;
            return false;
        }
        let due = armed.hits < armed.times;
        armed.hits += u64::from(due);
        due
    }

    pub fn allocation(bytes: u64) -> Result<()> {
        assert!(!hit(Fault::PanicAtAllocation), "a panic on purpose, at an allocation");
        match hit(Fault::Allocation) {
            true => {
                Err(Error::OutOfMemory { requested: bytes, reason: "a fault on purpose".into() })
            }
            false => Ok(()),
        }
    }

    pub fn submission() -> Submission {
        assert!(!hit(Fault::PanicAtSubmission), "a panic on purpose, at a submission");
        match (hit(Fault::Submission), hit(Fault::Loss)) {
            (true, _) => Submission::Refused,
            (_, true) => Submission::Lost,
            _ => Submission::Fine,
        }
    }
}
