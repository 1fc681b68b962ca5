//! Device copies of host memory that GPU work was given.
//!
//! A blob of host memory stays the caller's. When a kernel binds it, the kernel gets a
//! device copy of it, one for all blobs that overlap, taken when the work is encoded;
//! what the kernel may have written is brought back before any wait returns.

use super::Runtime;
use super::transfer::Side;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Layout;
use crate::memory::Storage;
use crate::tensor::DeviceType;
use parking_lot::{Mutex, ReentrantMutex};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The copies that queued work has written.
#[derive(Debug, Default)]
pub struct Mirrors {
    written: Mutex<Vec<Mirror>>,
    /// At least the length of `written`, so that a wait without any looks no further; not 0
    /// before all that was brought back is there. Also what the memory's manager asks before
    /// it gives memory back.
    pub(super) count: Arc<AtomicUsize>,
    /// Held while contents are brought back: others wait for that.
    settling: ReentrantMutex<()>,
}

/// A device copy of the host's bytes at `range`.
#[derive(Debug, Clone)]
pub struct Mirror {
    /// Host addresses.
    pub range: Range<usize>,
    /// The copy.
    pub storage: Arc<Storage>,
}

impl Mirrors {
    /// Whether queued work has written host memory among these addresses.
    fn touches(&self, range: &Range<usize>) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.written.lock().iter().any(|m| overlap(&m.range, range))
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn addresses(storage: &Storage) -> Range<usize> {
    span(storage.address(), storage.bytes())
}

fn span(start: usize, bytes: u64) -> Range<usize> {
    start..start.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX))
}

impl Runtime {
    /// Device copies of host memory, one for each of `storages` (several may be one). What
    /// queued work has written already is carried on from.
    pub(super) fn mirrors_of(&self, storages: &[&Arc<Storage>]) -> Result<Vec<Mirror>> {
        // Ranges that overlap, directly or through a third, become one.
        let mut ranges: Vec<Range<usize>> = storages.iter().map(|s| addresses(s)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        let mirrors =
            joined.into_iter().map(|range| self.mirror(range)).collect::<Result<Vec<_>>>()?;
        Ok(storages
            .iter()
            .filter_map(|s| mirrors.iter().find(|m| m.range.contains(&s.address())).cloned())
            .collect())
    }

    fn mirror(&self, range: Range<usize>) -> Result<Mirror> {
        let covering = {
            let written = self.inner.mirrors.written.lock();
            written
                .iter()
                .find(|m| m.range.start <= range.start && range.end <= m.range.end)
                .cloned()
        };
        if let Some(mirror) = covering {
            return Ok(mirror);
        }
        if self.inner.mirrors.touches(&range) {
            self.settle_all()?;
        }
        let bytes = range.len() as u64;
        let storage = self.inner.memory.allocate(bytes, DeviceType::Mps)?;
        let host = self.inner.memory.borrow(range.start, bytes, DeviceType::Cpu);
        self.move_bytes(&storage, &host, bytes)?;
        Ok(Mirror { range, storage })
    }

    /// Notes that queued work writes a mirror.
    pub(super) fn mirror_written(&self, mirror: &Mirror) {
        let mut written = self.inner.mirrors.written.lock();
        if !written.iter().any(|m| Arc::ptr_eq(&m.storage, &mirror.storage)) {
            written.push(mirror.clone());
            self.inner.mirrors.count.store(written.len(), Ordering::Release);
        }
    }

    /// Before the host reads or writes a storage through its pointer: brings back what
    /// queued work has written there.
    pub(super) fn settle(&self, storage: &Storage) -> Result<()> {
        self.settle_range(&addresses(storage))
    }

    fn settle_range(&self, range: &Range<usize>) -> Result<()> {
        if self.inner.mirrors.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let _settling = self.inner.mirrors.settling.lock();
        if self.inner.mirrors.touches(range) { self.settle_all() } else { Ok(()) }
    }

    /// The last tensor over host memory goes, and nothing may write there any more. For memory
    /// of the caller's, what work has yet to write there is waited for.
    pub(super) fn settle_for_good(&self, address: usize, bytes: u64, borrowed: bool) {
        let range = address..address.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
        gpu::outlive(|| self.settle_last(range, borrowed));
    }

    fn settle_last(&self, range: Range<usize>, borrowed: bool) {
        let mirrors = &self.inner.mirrors;
        let _settling = mirrors.settling.lock();
        let forget = |which: &dyn Fn(&Mirror) -> bool| {
            let mut written = mirrors.written.lock();
            written.retain(|mirror| !which(mirror));
            mirrors.count.store(written.len(), Ordering::Release);
        };
        if !borrowed {
            // Nobody will see what is written to all of these.
            forget(&|m| range.start <= m.range.start && m.range.end <= range.end);
        }
        if let Err(error) = self.settle_range(&range) {
            log::error!("memory at {range:#x?} lacks what the GPU should have written: {error}");
            forget(&|m| overlap(&m.range, &range));
        }
    }

    /// Waits for the work that writes mirrors and brings their contents back. The memory of
    /// work that failed is left as it was: its tensors say so.
    ///
    /// # Errors
    /// The first failure to bring contents back, which is tried again at the next wait.
    pub(super) fn settle_all(&self) -> Result<()> {
        let mirrors = &self.inner.mirrors;
        if mirrors.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let _settling = mirrors.settling.lock();
        let written = std::mem::take(&mut *mirrors.written.lock());
        if written.is_empty() {
            return Ok(());
        }
        let mut result = Ok(());
        let mut left = Vec::new();
        for mirror in written {
            let bytes = mirror.range.len() as u64;
            let host = self.inner.memory.borrow(mirror.range.start, bytes, DeviceType::Cpu);
            match self.move_bytes(&host, &mirror.storage, bytes) {
                Ok(()) | Err(Error::Poisoned(_)) => {}
                Err(error) => {
                    left.push(mirror);
                    result = result.and(Err(error));
                }
            }
        }
        let mut written = mirrors.written.lock();
        written.append(&mut left);
        mirrors.count.store(written.len(), Ordering::Release);
        result
    }

    fn move_bytes(&self, to: &Arc<Storage>, from: &Arc<Storage>, bytes: u64) -> Result<()> {
        let layout = Layout::of_bytes(i64::try_from(bytes).unwrap_or(i64::MAX))?;
        let dst = Side { storage: to, layout: &layout, dtype: DType::U8 };
        let src = Side { storage: from, layout: &layout, dtype: DType::U8 };
        self.transfer(dst, src)
    }
}
