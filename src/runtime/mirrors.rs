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
    range: Range<usize>,
    /// The copy.
    pub storage: Arc<Storage>,
    /// Bytes of the copy before the first of the range.
    ahead: usize,
}

impl Mirror {
    /// Where the byte at an address of the range is, in bytes from the copy's start.
    pub fn place(&self, address: usize) -> u64 {
        place(&self.range, self.ahead, address)
    }
}

fn place(range: &Range<usize>, ahead: usize, address: usize) -> u64 {
    address.saturating_sub(range.start).saturating_add(ahead) as u64
}

/// An argument in host memory.
pub(super) struct Hosted<'a> {
    pub storage: &'a Arc<Storage>,
    /// Its first byte in the storage.
    pub offset: u64,
    /// What its place in a buffer has to be a multiple of, in bytes.
    pub unit: u64,
}

impl Hosted<'_> {
    fn fits(&self, range: &Range<usize>, ahead: usize) -> bool {
        let start = place(range, ahead, self.storage.address()).saturating_add(self.offset);
        !range.contains(&self.storage.address()) || start.is_multiple_of(self.unit)
    }
}

/// Where a copy may begin in its buffer: as far behind a multiple of this as the host's bytes
/// do, or wherever else the arguments need it.
const ALIGNMENT: usize = 16;

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
    /// Device copies of host memory, one for each of `arguments` (several may be one). What
    /// queued work has written already is carried on from.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where arguments overlap and no copy has both at a multiple of
    /// their units.
    pub(super) fn mirrors_of(&self, arguments: &[Hosted<'_>]) -> Result<Vec<Mirror>> {
        // Ranges that overlap, directly or through a third, become one.
        let mut ranges: Vec<Range<usize>> =
            arguments.iter().map(|argument| addresses(argument.storage)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        let mirrors = joined
            .into_iter()
            .map(|range| self.mirror(range, arguments))
            .collect::<Result<Vec<_>>>()?;
        let of = |argument: &Hosted<'_>| {
            mirrors.iter().find(|m| m.range.contains(&argument.storage.address())).cloned()
        };
        Ok(arguments.iter().filter_map(of).collect())
    }

    fn mirror(&self, range: Range<usize>, arguments: &[Hosted<'_>]) -> Result<Mirror> {
        let inside: Vec<&Hosted<'_>> = arguments
            .iter()
            .filter(|argument| range.contains(&argument.storage.address()))
            .collect();
        let fit = |range: &Range<usize>, ahead| inside.iter().all(|a| a.fits(range, ahead));
        let covering = {
            let written = self.inner.mirrors.written.lock();
            written
                .iter()
                .find(|m| m.range.start <= range.start && range.end <= m.range.end)
                .filter(|m| fit(&m.range, m.ahead))
                .cloned()
        };
        if let Some(mirror) = covering {
            return Ok(mirror);
        }
        if self.inner.mirrors.touches(&range) {
            self.settle_all()?;
        }
        let ahead = std::iter::once(range.start % ALIGNMENT)
            .chain(0..ALIGNMENT)
            .find(|&ahead| fit(&range, ahead))
            .ok_or_else(|| {
                Error::NotSupported(format!(
                    "arguments of one kernel overlap in host memory at {range:#x?}, and are not \
                     a whole number of elements apart"
                ))
            })?;
        let bytes = range.len().saturating_add(ahead) as u64;
        let storage = self.inner.memory.allocate(bytes, DeviceType::Mps)?;
        let mirror = Mirror { range, storage, ahead };
        self.move_bytes(&mirror, Direction::ToDevice)?;
        Ok(mirror)
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
            match self.move_bytes(&mirror, Direction::ToHost) {
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

    fn move_bytes(&self, mirror: &Mirror, direction: Direction) -> Result<()> {
        let count = i64::try_from(mirror.range.len()).unwrap_or(i64::MAX);
        let ahead = i64::try_from(mirror.ahead).unwrap_or(i64::MAX);
        let (start, bytes) = (mirror.range.start, mirror.range.len() as u64);
        let host = self.inner.memory.borrow(start, bytes, DeviceType::Cpu);
        let (of_host, of_copy) = (Layout::of_bytes(count)?, Layout::new(&[count], &[1], ahead)?);
        let host = Side { storage: &host, layout: &of_host, dtype: DType::U8 };
        let copy = Side { storage: &mirror.storage, layout: &of_copy, dtype: DType::U8 };
        match direction {
            Direction::ToDevice => self.transfer(copy, host),
            Direction::ToHost => self.transfer(host, copy),
        }
    }
}

enum Direction {
    ToDevice,
    ToHost,
}
