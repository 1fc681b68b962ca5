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
#[derive(Debug)]
pub struct HostMemory {
    pointer: NonNull<u8>,
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
        let layout = Layout::from_size_align(size, HOST_ALIGNMENT)
            .map_err(|_| refuse("above the address space"))?;
        // SAFETY: the size is not zero.
        let pointer = unsafe { alloc_zeroed(layout) };
        let pointer = NonNull::new(pointer).ok_or_else(|| refuse("the host has no memory left"))?;
        Ok(HostMemory { pointer, layout })
    }

    /// The first byte.
    pub fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: pointer and layout are those of the allocation, freed once.
        unsafe { dealloc(self.pointer.as_ptr(), self.layout) };
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
