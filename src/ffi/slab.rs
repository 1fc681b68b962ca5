//! Where handles lie: slabs of slots that are never unmapped nor used for anything else.
//!
//! So the address of a deleted handle can be told from a live one by reading its slot,
//! and an address that is no handle from both without reading it. Looking one up takes
//! no lock. Dead slots wait in a queue before they are cut again, so that a stale
//! handle does not soon point at another tensor; threads take and give slots in
//! batches, so that one slot costs no lock either.

use super::slot::{SLOT_BYTES, Slot};
use crate::error::{Error, Result};
use std::alloc::{Layout as Allocation, alloc_zeroed};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slots of the first slab, where a look-up is the quickest; each further one has twice as
/// many.
const FIRST_SLAB: usize = 4096;
/// Enough for four tebibytes of slots.
const MAX_SLABS: usize = 22;
/// Slots that a thread takes or gives at once.
const BATCH: usize = 32;
/// Dead slots that are kept back before the oldest of them is cut again.
const QUARANTINE: usize = 256;

/// What an address is.
#[derive(Debug)]
pub(super) enum Place {
    /// That of a slot, live or dead.
    Slot(&'static Slot),
    /// Within a slab, and not at the start of a slot.
    Inside,
    /// In no slab.
    Outside,
}

/// A slot that one owner holds exclusively, outside of any handle.
#[derive(Clone, Copy)]
struct Free(NonNull<Slot>);

// SAFETY: slots are shared memory whose contents synchronise themselves; the pointer
// alone gives no access that another thread could not have.
unsafe impl Send for Free {}

struct Shared {
    dead: VecDeque<Free>,
    /// The newest slab and how many of its slots were cut; none before the first.
    newest: Option<(usize, usize)>,
    counters: Vec<Arc<AtomicI64>>,
    /// Handles made less handles deleted by threads that have gone.
    of_gone_threads: i64,
}

struct Slabs {
    bases: [AtomicPtr<Slot>; MAX_SLABS],
    shared: Mutex<Shared>,
}

static SLABS: Slabs = Slabs {
    bases: [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_SLABS],
    shared: Mutex::new(Shared {
        dead: VecDeque::new(),
        newest: None,
        counters: Vec::new(),
        of_gone_threads: 0,
    }),
};

fn slots_of(slab: usize) -> usize {
    FIRST_SLAB << slab
}

/// What lies at this address. Lock-free.
#[inline]
pub(super) fn find(address: usize) -> Place {
    // Nearly all handles lie in the first slab; the others are looked at out of line.
    match find_in(0, address) {
        Some(place) => place,
        None => find_in_later(address),
    }
}

/// The slot at this address, if that is in the first slab; `None` says nothing.
#[inline(always)]
pub(super) fn find_first(address: usize) -> Option<&'static Slot> {
    match find_in(0, address) {
        Some(Place::Slot(slot)) => Some(slot),
        _ => None,
    }
}

#[inline(never)]
fn find_in_later(address: usize) -> Place {
    for slab in 1..MAX_SLABS {
        if let Some(place) = find_in(slab, address) {
            return place;
        }
    }
    Place::Outside
}

/// What lies at this address, if this slab decides that: it holds it, or is not there, and
/// then no later one is.
#[inline(always)]
fn find_in(slab: usize, address: usize) -> Option<Place> {
    let base = SLABS.bases.get(slab)?.load(Ordering::Acquire);
    if base.is_null() {
        return Some(Place::Outside);
    }
    let offset = address.wrapping_sub(base.addr());
    if offset >= slots_of(slab) * SLOT_BYTES {
        return None;
    }
    if !offset.is_multiple_of(SLOT_BYTES) {
        return Some(Place::Inside);
    }
    // SAFETY: the offset is within the slab, which lives as long as the process, and at
    // the start of one of its slots. Zeroed memory is a valid dead slot, and slots are
    // changed through their own cells only.
    Some(Place::Slot(unsafe { &*base.byte_add(offset) }))
}

/// Runs `body` on every slot, dead ones too.
pub(super) fn for_each(mut body: impl FnMut(&'static Slot)) {
    for (slab, base) in SLABS.bases.iter().enumerate() {
        let Some(base) = NonNull::new(base.load(Ordering::Acquire)) else { break };
        for index in 0..slots_of(slab) {
            // SAFETY: within the slab; otherwise as in `find`.
            body(unsafe { base.add(index).as_ref() });
        }
    }
}

/// Handles that are alive now.
pub(super) fn live() -> u64 {
    let shared = lock();
    let of_threads: i64 = shared.counters.iter().map(|c| c.load(Ordering::Relaxed)).sum();
    u64::try_from(shared.of_gone_threads + of_threads).unwrap_or(0)
}

/// A dead slot, for the caller alone.
///
/// # Errors
/// [`Error::OutOfMemory`] where there is no memory for another slab.
#[inline]
pub(super) fn take() -> Result<&'static Slot> {
    let free = match with_cache(Cache::take) {
        Some(free) => free?,
        None => {
            let mut shared = lock();
            shared.of_gone_threads += 1;
            shared.next()?
        }
    };
    // SAFETY: slots live as long as the process and are changed through their own
    // cells only.
    Ok(unsafe { free.0.as_ref() })
}

/// Gives back a slot that is dead and that no handle stands for any more.
#[inline]
pub(super) fn give(slot: &'static Slot) {
    let free = Free(NonNull::from(slot));
    if with_cache(|cache| cache.give(free)).is_none() {
        let mut shared = lock();
        shared.of_gone_threads -= 1;
        shared.dead.push_back(free);
    }
}

fn lock() -> MutexGuard<'static, Shared> {
    // Each change below is complete before anything that could panic.
    SLABS.shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The oldest dead slot if enough of them wait, else a new one.
    fn next(&mut self) -> Result<Free> {
        if self.dead.len() > QUARANTINE
            && let Some(free) = self.dead.pop_front()
        {
            return Ok(free);
        }
        match self.cut() {
            Err(error) => self.dead.pop_front().ok_or(error),
            cut => cut,
        }
    }

    /// A slot that was never used.
    fn cut(&mut self) -> Result<Free> {
        let (slab, index) = match self.newest {
            Some((slab, cut)) if cut < slots_of(slab) => (slab, cut),
            Some((slab, _)) => (self.map(slab + 1)?, 0),
            None => (self.map(0)?, 0),
        };
        let base = SLABS.bases.get(slab).map(|base| base.load(Ordering::Relaxed));
        let slot = base.and_then(NonNull::new).ok_or_else(no_slab)?;
        self.newest = Some((slab, index + 1));
        // SAFETY: `index` is less than the slots of this slab.
        Ok(Free(unsafe { slot.add(index) }))
    }

    /// Makes the next slab and gives its number.
    fn map(&mut self, slab: usize) -> Result<usize> {
        let base = SLABS.bases.get(slab).ok_or_else(no_slab)?;
        let allocation = Allocation::array::<Slot>(slots_of(slab)).map_err(|_| no_slab())?;
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(allocation) }.cast::<Slot>();
        if memory.is_null() {
            return Err(Error::OutOfMemory {
                requested: allocation.size() as u64,
                reason: "the host has no memory for more tensor handles".into(),
            });
        }
        base.store(memory, Ordering::Release);
        Ok(slab)
    }
}

#[cold]
fn no_slab() -> Error {
    Error::OutOfMemory {
        requested: SLOT_BYTES as u64,
        reason: format!("{} tensor handles are in use", slots_of(MAX_SLABS) - FIRST_SLAB),
    }
}

/// A thread's own slots.
struct Cache {
    fresh: Vec<Free>,
    dead: Vec<Free>,
    /// Handles that this thread made less those that it deleted.
    live: Arc<AtomicI64>,
}

impl Cache {
    fn new() -> Self {
        let live = Arc::new(AtomicI64::new(0));
        lock().counters.push(Arc::clone(&live));
        Cache { fresh: Vec::with_capacity(BATCH), dead: Vec::with_capacity(BATCH), live }
    }

    #[inline]
    fn count(&self, change: i64) {
        // Only this thread writes its counter.
        self.live.store(self.live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    #[inline]
    fn take(&mut self) -> Result<Free> {
        let free = match self.fresh.pop() {
            Some(free) => free,
            None => self.refill()?,
        };
        self.count(1);
        Ok(free)
    }

    #[cold]
    fn refill(&mut self) -> Result<Free> {
        let mut shared = lock();
        // The last is taken first: the order of the queue is kept.
        if shared.dead.len() >= QUARANTINE + BATCH {
            self.fresh.extend(shared.dead.drain(..BATCH).rev());
        } else {
            let first = shared.next()?;
            let rest = (1..BATCH).map_while(|_| shared.next().ok());
            self.fresh.extend(rest);
            self.fresh.reverse();
            return Ok(first);
        }
        drop(shared);
        self.fresh.pop().ok_or_else(no_slab)
    }

    #[inline]
    fn give(&mut self, free: Free) {
        self.count(-1);
        self.dead.push(free);
        if self.dead.len() >= BATCH {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        lock().dead.extend(self.dead.drain(..));
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let mut shared = lock();
        shared.dead.extend(self.dead.drain(..));
        shared.dead.extend(self.fresh.drain(..));
        shared.of_gone_threads += self.live.load(Ordering::Relaxed);
        shared.counters.retain(|counter| !Arc::ptr_eq(counter, &self.live));
    }
}

thread_local! {
    static CACHE: UnsafeCell<Option<Cache>> = const { UnsafeCell::new(None) };
}

/// Runs `body` on the thread's cache, or gives `None` while the thread's destructors
/// run and the cache has gone.
#[inline]
fn with_cache<R>(body: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    CACHE
        .try_with(|cache| {
            // SAFETY: the cache is this thread's, and nothing that `body` or `Cache::new`
            // runs comes back here: they use locks and vectors of this module alone.
            let cache = unsafe { &mut *cache.get() };
            body(cache.get_or_insert_with(Cache::new))
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let slot = take().unwrap();
        let address = std::ptr::from_ref(slot).addr();
        assert!(matches!(find(address), Place::Slot(found) if std::ptr::eq(found, slot)));
        for offset in [1, 8, 64, SLOT_BYTES - 1] {
            assert!(matches!(find(address + offset), Place::Inside), "{offset}");
        }
        let local = 0u64;
        for outside in [0, 1, usize::MAX, std::ptr::from_ref(&local).addr()] {
            assert!(matches!(find(outside), Place::Outside), "{outside:#x}");
        }
        give(slot);
    }

    #[test]
    fn a_dead_slot_rests() {
        let slot = take().unwrap();
        give(slot);
        let mut others = Vec::new();
        for _ in 0..QUARANTINE {
            let other = take().unwrap();
            assert!(!std::ptr::eq(other, slot));
            others.push(other);
        }
        others.into_iter().for_each(give);
    }

    #[test]
    fn slots_are_used_again_and_never_shared() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 * QUARANTINE {
            let pair = [take().unwrap(), take().unwrap()];
            assert!(!std::ptr::eq(pair[0], pair[1]));
            for slot in pair {
                seen.insert(std::ptr::from_ref(slot).addr());
                give(slot);
            }
        }
        // Slots that other tests of the process gave back take part.
        assert!(seen.len() < 50 * QUARANTINE, "{}", seen.len());
    }

    #[test]
    fn many_slots_grow_into_more_slabs() {
        let slots: Vec<_> = (0..2 * FIRST_SLAB).map(|_| take().unwrap()).collect();
        let addresses: std::collections::HashSet<_> =
            slots.iter().map(|slot| std::ptr::from_ref(*slot).addr()).collect();
        assert_eq!(addresses.len(), slots.len());
        for address in addresses {
            assert!(matches!(find(address), Place::Slot(_)));
        }
        slots.into_iter().for_each(give);
    }

    #[test]
    fn slots_move_between_threads() {
        let slots: Vec<_> = (0..3 * BATCH).map(|_| take().unwrap()).collect();
        std::thread::spawn(move || slots.into_iter().for_each(give)).join().unwrap();
        let again: Vec<_> = (0..3 * BATCH).map(|_| take().unwrap()).collect();
        again.into_iter().for_each(give);
    }
}
