//! Which block an address lies in, and the addresses that stand for device memory.

use super::Block;
use crate::error::{Error, Result};
use crate::gpu::Reservation;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks by their first address. Pooled blocks stay in: they have no owner then.
#[derive(Debug, Default)]
pub struct AddressMap {
    blocks: BTreeMap<usize, Arc<Block>>,
}

impl AddressMap {
    /// Makes the block known.
    pub fn insert(&mut self, block: Arc<Block>) {
        self.blocks.insert(block.address, block);
    }

    /// Forgets the block.
    pub fn remove(&mut self, block: &Block) {
        self.blocks.remove(&block.address);
    }

    /// The block that `address` lies in.
    pub fn find(&self, address: usize) -> Option<&Arc<Block>> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        ((address - start) as u64 <= block.capacity).then_some(block)
    }
}

/// Addresses of device memory are multiples of this, in bytes.
const ALIGNMENT: usize = 256;

/// Hands out ranges of reserved address space: first fit, neighbours joined when freed.
#[derive(Debug)]
pub struct DeviceAddresses {
    reservation: Reservation,
    /// Free ranges: first address to bytes.
    free: Mutex<BTreeMap<usize, usize>>,
}

impl DeviceAddresses {
    /// All of the reservation, free.
    pub fn new(reservation: Reservation) -> Self {
        let start = reservation.start().next_multiple_of(ALIGNMENT);
        let len = reservation.len() - (start - reservation.start());
        DeviceAddresses { reservation, free: Mutex::new(BTreeMap::from([(start, len)])) }
    }

    /// Whether `address` is one of these, free or not.
    pub fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.reservation.start()) < self.reservation.len()
    }

    /// Bytes of address space that a block of `bytes` takes: a gap keeps the end of one
    /// block from being the start of the next.
    fn span(bytes: u64) -> Option<usize> {
        usize::try_from(bytes).ok()?.checked_next_multiple_of(ALIGNMENT)?.checked_add(ALIGNMENT)
    }

    /// An address for a block of `bytes`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the reservation has no such range left.
    pub fn allocate(&self, bytes: u64) -> Result<usize> {
        let full = || Error::OutOfMemory {
            requested: bytes,
            reason: format!(
                "{} bytes of reserved device addresses hold no such range",
                self.reservation.len()
            ),
        };
        let span = Self::span(bytes).ok_or_else(full)?;
        let mut free = self.free.lock();
        let (start, len) = free
            .iter()
            .find(|&(_, &len)| len >= span)
            .map(|(&start, &len)| (start, len))
            .ok_or_else(full)?;
        free.remove(&start);
        if len > span {
            free.insert(start + span, len - span);
        }
        Ok(start)
    }

    /// Gives back the address of a block of `bytes`.
    pub fn release(&self, mut start: usize, bytes: u64) {
        let Some(mut len) = Self::span(bytes) else { return };
        let mut free = self.free.lock();
        if let Some((&before, &before_len)) = free.range(..start).next_back()
            && before + before_len == start
        {
            free.remove(&before);
            start = before;
            len += before_len;
        }
        if let Some(after_len) = free.remove(&(start + len)) {
            len += after_len;
        }
        free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_touch_and_join_again() {
        let addresses = DeviceAddresses::new(Reservation::new(1 << 30).unwrap());
        let whole = addresses.free.lock().clone();
        let mut taken: Vec<_> =
            [1u64, 256, 257, 4096].map(|n| (addresses.allocate(n).unwrap(), n)).into();
        for (a, n) in &taken {
            assert_eq!(a % ALIGNMENT, 0);
            assert!(taken.iter().all(|(b, _)| a == b || *b < *a || *b > a + *n as usize));
        }
        taken.swap(1, 3);
        for (a, n) in taken {
            addresses.release(a, n);
        }
        assert_eq!(*addresses.free.lock(), whole);
        assert!(matches!(addresses.allocate(1 << 40), Err(Error::OutOfMemory { .. })));
    }
}
