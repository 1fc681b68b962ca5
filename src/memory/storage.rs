//! One allocation as tensors see it.

use super::{Block, Manager};
use crate::error::Result;
use crate::gpu::{Buffer, Usage};
use crate::tensor::DeviceType;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, OnceLock, Weak};

/// Where a storage's bytes are.
#[derive(Debug)]
pub enum Memory {
    /// Nowhere: there are none.
    Empty,
    /// In a block of ours.
    Owned(Arc<Block>),
    /// In memory of the caller's, by its first address.
    Borrowed(usize),
}

/// Reference-counted memory. Its tensors hold one count each; the last one gives the
/// memory back.
pub struct Storage {
    pub(super) memory: Memory,
    pub(super) bytes: u64,
    pub(super) device: DeviceType,
    /// Counts the writes, so that a packed view knows whether its buffer is current.
    version: AtomicU64,
    /// What queued work does to borrowed memory, once there is such work.
    borrowed_usage: OnceLock<Arc<Usage>>,
    /// The packed view whose dense buffer this is, for the layer above to fill.
    cache_of: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// The last submission that used the memory for an earlier owner.
    inherited: u64,
    pub(super) manager: Arc<Manager>,
}

impl Storage {
    pub(super) fn new(
        memory: Memory,
        bytes: u64,
        device: DeviceType,
        manager: Arc<Manager>,
    ) -> Self {
        let inherited = match &memory {
            Memory::Owned(block) => block.usage().last_use(),
            _ => 0,
        };
        Storage {
            inherited,
            memory,
            bytes,
            device,
            version: AtomicU64::new(1),
            borrowed_usage: OnceLock::new(),
            cache_of: OnceLock::new(),
            manager,
        }
    }

    /// The last submission that used this memory for an earlier owner, from the pool:
    /// the host may not touch it before.
    pub fn inherited_use(&self) -> u64 {
        self.inherited
    }

    /// Bytes, exactly as asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that its tensors name.
    pub fn device(&self) -> DeviceType {
        self.device
    }

    /// The first byte's address; 0 where there are no bytes.
    pub fn address(&self) -> usize {
        match &self.memory {
            Memory::Empty => 0,
            Memory::Owned(block) => block.address(),
            Memory::Borrowed(address) => *address,
        }
    }

    /// The first byte, where the host can reach it.
    pub fn host_pointer(&self) -> Option<NonNull<u8>> {
        match &self.memory {
            Memory::Empty => None,
            Memory::Owned(block) => block.host_pointer(),
            Memory::Borrowed(address) => NonNull::new(*address as *mut u8),
        }
    }

    /// The GPU buffer, where it lies in one.
    pub fn buffer(&self) -> Option<&Arc<Buffer>> {
        match &self.memory {
            Memory::Owned(block) => block.buffer(),
            _ => None,
        }
    }

    /// Whether the memory is the caller's.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.memory, Memory::Borrowed(_))
    }

    /// What queued work does to it.
    pub fn usage(&self) -> &Arc<Usage> {
        match &self.memory {
            Memory::Owned(block) => block.usage(),
            _ => self.borrowed_usage.get_or_init(Arc::default),
        }
    }

    /// Whether the contents are valid.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::error::Error::Poisoned) where the work that should have
    /// written them failed.
    pub fn check(&self) -> Result<()> {
        match &self.memory {
            Memory::Owned(block) => block.usage().check(),
            _ => self.borrowed_usage.get().map_or(Ok(()), |usage| usage.check()),
        }
    }

    /// The number of writes so far; never 0.
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// Notes that the contents changed.
    pub fn written(&self) {
        self.version.fetch_add(1, AcqRel);
    }

    /// Names the packed view whose dense buffer this is; once.
    pub fn set_cache_of(&self, view: Weak<dyn Any + Send + Sync>) {
        let _ = self.cache_of.set(view);
    }

    /// The packed view whose dense buffer this is.
    pub fn cache_of(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.cache_of.get()?.upgrade()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.memory, Memory::Empty);
        self.manager.clone().release(memory, self.bytes, self.device);
    }
}
