//! A piece of memory that passes from owner to owner by way of the pool.
#![allow(unsafe_code)]

use super::Storage;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Usage, faults};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Alignment of host memory in bytes: a cache line, and what vector loads like.
const HOST_ALIGNMENT: usize = 64;

/// Host memory that this library owns.
///
/// It is aligned by hand: from an allocator that is asked for more than its own alignment,
/// zeroes are written, and with them every page is taken, where the system's fresh pages are
/// zero already and cost nothing until they are used.
#[derive(Debug)]
pub struct HostMemory {
    pointer: NonNull<u8>,
    allocation: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the allocation belongs to this value alone; what is read and written through its
// address, and when, is for the holders of the address to prove, as with memory from C.
unsafe impl Send for HostMemory {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Zeroed memory of `bytes` (at least one).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(bytes: u64) -> Result<Self> {
        faults::allocation(bytes)?;
        let refuse = |reason: &str| Error::OutOfMemory { requested: bytes, reason: reason.into() };
        let size = usize::try_from(bytes.max(1)).map_err(|_| refuse("above the address space"))?;
        let layout = size
            .checked_add(HOST_ALIGNMENT - 1)
            .and_then(|padded| Layout::array::<u8>(padded).ok())
            .ok_or_else(|| refuse("above the address space"))?;
        // SAFETY: the size is not zero.
        let allocation = unsafe { alloc_zeroed(layout) };
        let allocation =
            NonNull::new(allocation).ok_or_else(|| refuse("the host has no memory left"))?;
        let padding = allocation.addr().get().wrapping_neg() % HOST_ALIGNMENT;
        // SAFETY: the padding is less than the alignment, and so many bytes less one were
        // asked for beyond the size: the address and `size` bytes from it are within.
        let pointer = unsafe { allocation.add(padding) };
        Ok(HostMemory { pointer, allocation, layout })
    }

    /// The first byte.
    pub fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: address and layout are those of the allocation, freed once.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

/// What a block consists of.
#[derive(Debug)]
pub enum Backing {
    /// A buffer of the GPU.
    Gpu(Arc<Buffer>),
    /// Host memory, of a `cpu` tensor or of the host backend.
    Host(HostMemory),
}

/// A piece of memory with an address, and whose it is at present.
#[derive(Debug)]
pub struct Block {
    pub(super) backing: Backing,
    pub(super) address: usize,
    pub(super) capacity: u64,
    /// The storage that owns the block now; none while it is in the pool.
    pub(super) owner: Mutex<Weak<Storage>>,
    usage: Arc<Usage>,
}

impl Block {
    pub(super) fn new(backing: Backing, address: usize, capacity: u64) -> Self {
        let usage = match &backing {
            Backing::Gpu(buffer) => buffer.usage().clone(),
            Backing::Host(_) => Arc::default(),
        };
        Block { backing, address, capacity, owner: Mutex::default(), usage }
    }

    /// The first byte's address: real, or reserved in device memory.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The GPU buffer, where the block is one.
    pub fn buffer(&self) -> Option<&Arc<Buffer>> {
        match &self.backing {
            Backing::Gpu(buffer) => Some(buffer),
            Backing::Host(_) => None,
        }
    }

    /// The first byte, where the host can reach it.
    pub fn host_pointer(&self) -> Option<NonNull<u8>> {
        match &self.backing {
            Backing::Gpu(buffer) => buffer.host_pointer(),
            Backing::Host(memory) => Some(memory.pointer()),
        }
    }

    /// What queued work does to it.
    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
}
