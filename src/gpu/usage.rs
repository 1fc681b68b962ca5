//! What queued work does to one piece of memory.

use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The submissions that use a piece of memory, and whether its contents are valid.
///
/// Submissions are numbered from 1; 0 means never. A piece of memory passes through
/// several owners by way of the pool, and work that fails must not poison a later
/// owner: [`Usage::recycle`] starts a new *generation*, and a failure names the one
/// that it belongs to.
#[derive(Debug, Default)]
pub struct Usage {
    last_use: AtomicU64,
    last_write: AtomicU64,
    generation: AtomicU64,
    poisoned: AtomicBool,
    reason: Mutex<Option<Error>>,
}

impl Usage {
    /// Notes that the submission reads, or also writes, this memory. True for the
    /// first write of that submission.
    pub fn note(&self, submission: u64, writes: bool) -> bool {
        self.last_use.fetch_max(submission, Relaxed);
        writes && self.last_write.fetch_max(submission, Relaxed) < submission
    }

    /// The last submission that reads or writes this memory.
    pub fn last_use(&self) -> u64 {
        self.last_use.load(Relaxed)
    }

    /// The last submission that writes this memory.
    pub fn last_write(&self) -> u64 {
        self.last_write.load(Relaxed)
    }

    /// The number of owners that this memory had before.
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// Hands the memory to its next owner: its contents are nobody's any more.
    pub fn recycle(&self) {
        let mut reason = self.reason.lock();
        self.generation.fetch_add(1, Relaxed);
        self.poisoned.store(false, Relaxed);
        *reason = None;
    }

    /// Marks the contents as lost, unless the memory has had another owner since.
    /// The first reason stays.
    pub fn poison(&self, generation: u64, error: &Error) {
        let mut reason = self.reason.lock();
        if self.generation() == generation && reason.is_none() {
            *reason = Some(error.clone());
            self.poisoned.store(true, Relaxed);
        }
    }

    /// Marks the contents as valid: they were wholly overwritten.
    pub fn heal(&self) {
        if self.poisoned.load(Relaxed) {
            let mut reason = self.reason.lock();
            self.poisoned.store(false, Relaxed);
            *reason = None;
        }
    }

    /// Whether the contents are valid.
    ///
    /// # Errors
    /// [`Error::Poisoned`] with the reason where they are not.
    pub fn check(&self) -> Result<()> {
        if self.poisoned.load(Relaxed)
            && let Some(reason) = self.reason.lock().clone()
        {
            return Err(reason.poisoning());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reaches_its_own_generation_alone() {
        let usage = Usage::default();
        let before = usage.generation();
        usage.recycle();
        usage.poison(before, &Error::Internal("late".into()));
        assert!(usage.check().is_ok());
        usage.poison(usage.generation(), &Error::Internal("now".into()));
        assert!(usage.check().unwrap_err().to_string().contains("now"));
        usage.heal();
        assert!(usage.check().is_ok());
    }

    #[test]
    fn the_first_write_of_a_submission_is_told() {
        let usage = Usage::default();
        assert!(!usage.note(1, false));
        assert!(usage.note(1, true));
        assert!(!usage.note(1, true));
        assert!(usage.note(2, true));
        assert_eq!((usage.last_use(), usage.last_write()), (2, 2));
    }
}
