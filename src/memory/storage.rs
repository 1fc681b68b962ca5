//! One allocation as tensors see it.

use super::{Block, Manager};
use crate::error::Result;
use crate::gpu::{Buffer, Usage};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, OnceLock, Weak};

/// The devices that tensors name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// Host memory.
    Cpu,
    /// The GPU; called after Metal Performance Shaders, whatever the backend.
    Mps,
}

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
    /// The first byte's.
    address: usize,
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
        let address = match &memory {
            Memory::Empty => 0,
            Memory::Owned(block) => block.address(),
            Memory::Borrowed(address) => *address,
        };
        Storage {
            inherited,
            address,
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

    /// Whether the host must wait for an earlier owner's work before it touches the memory.
    #[inline]
    pub fn is_inherited_busy(&self) -> bool {
        self.inherited > 0
            && self.host_pointer().is_some()
            && self.manager.completed() < self.inherited
    }

    /// Bytes, exactly as asked for.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that its tensors name.
    #[inline]
    pub fn device(&self) -> DeviceType {
        self.device
    }

    /// The first byte's address; 0 where there are no bytes.
    #[inline]
    pub fn address(&self) -> usize {
        self.address
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

    /// The last submission that reads or writes it.
    pub fn last_use(&self) -> u64 {
        self.known_usage().map_or(0, |usage| usage.last_use())
    }

    /// The last submission that writes it.
    pub fn last_write(&self) -> u64 {
        self.known_usage().map_or(0, |usage| usage.last_write())
    }

    /// Marks the contents as valid: they were wholly overwritten.
    pub fn heal(&self) {
        if let Some(usage) = self.known_usage() {
            usage.heal();
        }
    }

    /// What queued work does to it, where there ever was some.
    fn known_usage(&self) -> Option<&Arc<Usage>> {
        match &self.memory {
            Memory::Owned(block) => Some(block.usage()),
            _ => self.borrowed_usage.get(),
        }
    }

    /// Whether the contents are valid.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::error::Error::Poisoned) where the work that should have
    /// written them failed.
    pub fn check(&self) -> Result<()> {
        self.known_usage().map_or(Ok(()), |usage| usage.check())
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

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("memory", &self.memory)
            .field("bytes", &self.bytes)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.memory, Memory::Empty);
        self.manager.release(memory, self.bytes, self.device);
    }
}
