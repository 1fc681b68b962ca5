//! The policy by which freed memory is kept and handed out again.
//!
//! Best fit: the smallest kept piece that is large enough, if it is at most twice the
//! request or at most 32 KiB above it; among equals the one that was freed first, whose
//! GPU work is the likeliest to be over. Beyond the capacity the least recently freed
//! goes first, and nothing larger than half of the capacity is kept at all. Generic
//! over what it keeps, so that it is tested without a device.

use std::collections::{BTreeMap, VecDeque};

/// A request may get this many bytes more than it asked for, whatever its size.
const SLACK: u64 = 32 << 10;

/// So many bins are kept though nothing is in them: programs ask for the same sizes again
/// and again, and a bin that stays costs no allocation.
const IDLE_BINS: usize = 64;

/// Freed pieces of memory, of sizes in bytes.
#[derive(Debug)]
pub struct Pool<T> {
    /// By size: the pieces with the moments of being freed, the earliest first.
    bins: BTreeMap<u64, VecDeque<(u64, T)>>,
    capacity: u64,
    kept: u64,
    clock: u64,
}

impl<T> Pool<T> {
    /// An empty pool that keeps at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Pool { bins: BTreeMap::new(), capacity, kept: 0, clock: 0 }
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// A piece for a request of `bytes`, and its size.
    pub fn take(&mut self, bytes: u64) -> Option<T> {
        let most = bytes.saturating_mul(2).max(bytes.saturating_add(SLACK));
        let (&size, bin) = self.bins.range_mut(bytes..=most).find(|(_, bin)| !bin.is_empty())?;
        let (_, piece) = bin.pop_front()?;
        self.kept -= size;
        let idle = bin.is_empty();
        self.leave(size, idle);
        Some(piece)
    }

    /// Keeps a piece of `size` bytes; what must go for it goes to `evicted`.
    pub fn put(&mut self, size: u64, piece: T, mut evicted: impl FnMut(T)) {
        if size > self.capacity / 2 {
            evicted(piece);
            return;
        }
        self.clock += 1;
        self.bins.entry(size).or_default().push_back((self.clock, piece));
        self.kept += size;
        while self.kept > self.capacity {
            let moment = |bin: &VecDeque<(u64, T)>| bin.front().map(|(moment, _)| *moment);
            let bins =
                self.bins.iter_mut().filter_map(|(&size, bin)| Some((moment(bin)?, size, bin)));
            let Some((_, size, bin)) = bins.min_by_key(|(moment, ..)| *moment) else { break };
            let piece = bin.pop_front();
            let idle = bin.is_empty();
            self.kept -= size;
            self.leave(size, idle);
            if let Some((_, piece)) = piece {
                evicted(piece);
            }
        }
    }

    /// Bounds the bins with nothing in them, where one may have become so.
    fn leave(&mut self, size: u64, idle: bool) {
        if idle && self.bins.len() > IDLE_BINS {
            self.bins.remove(&size);
        }
    }

    /// Empties the pool.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.kept = 0;
        std::mem::take(&mut self.bins).into_values().flatten().map(|(_, piece)| piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(pool: &mut Pool<&'static str>, size: u64, name: &'static str) -> Vec<&'static str> {
        let mut gone = Vec::new();
        pool.put(size, name, |piece| gone.push(piece));
        gone
    }

    #[test]
    fn the_best_fit_wins_within_the_slack() {
        let mut pool = Pool::new(1 << 30);
        put(&mut pool, 4 << 20, "large");
        put(&mut pool, 1 << 20, "small");
        assert_eq!(pool.take((1 << 20) + 1), None, "4 MiB is more than twice");
        assert_eq!(pool.take(2 << 20), Some("large"));
        assert_eq!(pool.take(1 << 20), Some("small"));
        put(&mut pool, 33 << 10, "33 KiB");
        assert_eq!(pool.take(100), None);
        assert_eq!(pool.take(1 << 10), Some("33 KiB"));
        assert_eq!(pool.kept(), 0);
    }

    #[test]
    fn of_equals_the_first_freed_is_taken() {
        let mut pool = Pool::new(1 << 20);
        put(&mut pool, 64, "first");
        put(&mut pool, 64, "second");
        assert_eq!(pool.take(64), Some("first"));
    }

    #[test]
    fn the_least_recently_freed_goes_out_first() {
        let mut pool = Pool::new(100);
        assert!(put(&mut pool, 40, "a").is_empty());
        assert!(put(&mut pool, 50, "b").is_empty());
        assert_eq!(put(&mut pool, 30, "c"), ["a"]);
        assert_eq!(put(&mut pool, 51, "half and more"), ["half and more"]);
        assert_eq!(pool.kept(), 80);
        assert_eq!(pool.drain().count(), 2);
        assert_eq!(pool.kept(), 0);
    }

    #[test]
    fn a_pool_of_nothing_keeps_nothing() {
        let mut pool = Pool::new(0);
        assert_eq!(put(&mut pool, 1, "a"), ["a"]);
    }
}
