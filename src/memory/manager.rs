//! Makes storages and takes their memory back.

use super::addresses::{AddressMap, DeviceAddresses};
use super::block::{Backing, Block, HostMemory};
use super::pool::Pool;
use super::storage::{DeviceType, Memory, Storage};
use crate::config::MemoryMode;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, BufferKind, Gpu, Reservation};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};

/// Address space for device memory, in bytes: far more than any device has.
const RESERVATION: usize = 1 << 42;

/// Blocks are multiples of this many bytes, so that sizes that differ a little share them.
const GRANULARITY: u64 = 256;

/// What is alive at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Storages.
    pub live_storages: u64,
    /// Bytes of `mps` storages.
    pub live_device_bytes: u64,
    /// Bytes of `cpu` storages that this library owns.
    pub live_host_bytes: u64,
    /// Bytes kept in the pool.
    pub pooled_bytes: u64,
    /// Allocations that the pool served.
    pub pool_hits: u64,
    /// Allocations that it could not.
    pub pool_misses: u64,
}

#[derive(Debug, Default)]
struct Counts {
    storages: AtomicU64,
    device_bytes: AtomicU64,
    host_bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The memory of one runtime.
pub struct Manager {
    gpu: OnceLock<Option<Arc<Gpu>>>,
    pool: Mutex<Pool<Arc<Block>>>,
    addresses: RwLock<AddressMap>,
    /// The number of known blocks, so that a process without any skips the look-up.
    known: AtomicUsize,
    device_addresses: OnceLock<DeviceAddresses>,
    limit: Option<u64>,
    /// Bytes of `mps` blocks, pooled ones too.
    allocated: AtomicU64,
    counts: Counts,
    /// What the layer above does before host memory is no tensor's any more, and whether
    /// there is anything to do.
    before_return: OnceLock<(Arc<AtomicUsize>, BeforeReturn)>,
}

/// Called with the first address and the bytes of host memory, and whether it is the caller's.
pub type BeforeReturn = Box<dyn Fn(usize, u64, bool) + Send + Sync>;

/// What an address that somebody passed is.
#[derive(Debug)]
pub enum Place {
    /// Among the bytes of a live storage, and so many bytes from its first.
    Live(Arc<Storage>, u64),
    /// One that this library hands out, and no live storage's: a reserved device address, or
    /// one in a block that is in the pool or whose tensor ends before it.
    Reserved,
    /// Not this library's.
    Outside,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Manager {
    /// Memory with a pool of `pool_bytes` and at most `limit` bytes for `mps` tensors.
    pub fn new(pool_bytes: u64, limit: Option<u64>) -> Self {
        Manager {
            gpu: OnceLock::new(),
            pool: Mutex::new(Pool::new(pool_bytes)),
            addresses: RwLock::default(),
            known: AtomicUsize::new(0),
            device_addresses: OnceLock::new(),
            limit,
            allocated: AtomicU64::new(0),
            counts: Counts::default(),
            before_return: OnceLock::new(),
        }
    }

    /// Sets what happens before a storage of host memory ends, where `due` is not 0; once.
    pub fn set_before_return(&self, due: Arc<AtomicUsize>, hook: BeforeReturn) {
        let _ = self.before_return.set((due, hook));
    }

    /// Says where `mps` memory comes from: a GPU, or the host. Once, before the first.
    pub fn attach(&self, gpu: Option<Arc<Gpu>>) {
        let _ = self.gpu.set(gpu);
    }

    /// The last submission that is known to be complete.
    pub(super) fn completed(&self) -> u64 {
        self.gpu().map_or(u64::MAX, |gpu| gpu.completed())
    }

    fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.gpu.get()?.as_ref()
    }

    /// A storage of `bytes` that owns its memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] after the pool was emptied and the allocation tried again.
    pub fn allocate(self: &Arc<Self>, bytes: u64, device: DeviceType) -> Result<Arc<Storage>> {
        let memory = match device {
            _ if bytes == 0 => Memory::Empty,
            DeviceType::Cpu => Memory::Owned(Arc::new(host_block(bytes)?)),
            DeviceType::Mps => Memory::Owned(self.take_block(bytes)?),
        };
        Ok(self.own(memory, bytes, device))
    }

    /// A storage of `bytes` of host memory for an `mps` tensor: what is made from
    /// memory of the caller's stays where the host can reach it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn allocate_beside_host(self: &Arc<Self>, bytes: u64) -> Result<Arc<Storage>> {
        let memory = if bytes == 0 {
            Memory::Empty
        } else {
            let block = Arc::new(host_block(bytes)?);
            self.allocated.fetch_add(block.capacity, Relaxed);
            self.make_known(&block);
            Memory::Owned(block)
        };
        Ok(self.own(memory, bytes, DeviceType::Mps))
    }

    fn own(self: &Arc<Self>, memory: Memory, bytes: u64, device: DeviceType) -> Arc<Storage> {
        self.count(bytes, device, true);
        let storage = Arc::new(Storage::new(memory, bytes, device, self.clone()));
        if let (Memory::Owned(block), DeviceType::Mps) = (&storage.memory, device) {
            *block.owner.lock() = Arc::downgrade(&storage);
        }
        storage
    }

    fn make_known(&self, block: &Arc<Block>) {
        self.addresses.write().insert(block.clone());
        self.known.fetch_add(1, Relaxed);
    }

    /// A storage over memory of the caller's.
    pub fn borrow(
        self: &Arc<Self>,
        address: usize,
        bytes: u64,
        device: DeviceType,
    ) -> Arc<Storage> {
        let memory = if bytes == 0 { Memory::Empty } else { Memory::Borrowed(address) };
        self.counts.storages.fetch_add(1, Relaxed);
        Arc::new(Storage::new(memory, bytes, device, self.clone()))
    }

    /// What lies at `address`. One past the last byte of a storage belongs to nobody.
    pub fn find(&self, address: usize) -> Place {
        if self.known.load(Relaxed) > 0
            && let Some((owner, offset, within)) = self.block_at(address)
        {
            match owner {
                Some(owner) if offset < owner.bytes => return Place::Live(owner, offset),
                _ if within => return Place::Reserved,
                _ => {}
            }
        }
        match self.device_addresses.get() {
            Some(addresses) if addresses.contains(address) => Place::Reserved,
            _ => Place::Outside,
        }
    }

    /// The owner of the block at or right before `address`, how far into the block that is,
    /// and whether it is within.
    fn block_at(&self, address: usize) -> Option<(Option<Arc<Storage>>, u64, bool)> {
        let addresses = self.addresses.read();
        let block = addresses.find(address)?;
        let offset = (address - block.address) as u64;
        Some((block.owner.lock().upgrade(), offset, offset < block.capacity))
    }

    /// Memory for `bytes` from the pool or new.
    fn take_block(&self, bytes: u64) -> Result<Arc<Block>> {
        let Some(rounded) = bytes.checked_next_multiple_of(GRANULARITY) else {
            return Err(Error::OutOfMemory {
                requested: bytes,
                reason: "above the address space".into(),
            });
        };
        let pooled = self.pool.lock().take(rounded);
        if let Some(block) = pooled {
            self.counts.hits.fetch_add(1, Relaxed);
            block.usage().recycle();
            return Ok(block);
        }
        self.counts.misses.fetch_add(1, Relaxed);
        let made = self.make_block(bytes, rounded).or_else(|error| match error {
            Error::OutOfMemory { .. } => {
                self.make_room();
                self.make_block(bytes, rounded)
            }
            other => Err(other),
        });
        let block = Arc::new(made?);
        self.make_known(&block);
        Ok(block)
    }

    fn make_block(&self, bytes: u64, rounded: u64) -> Result<Block> {
        self.reserve_bytes(bytes, rounded)?;
        let made = match self.gpu() {
            None => host_block(rounded),
            Some(gpu) => self.make_gpu_block(gpu, bytes, rounded),
        };
        if made.is_err() {
            self.allocated.fetch_sub(rounded, Relaxed);
        }
        made
    }

    fn make_gpu_block(&self, gpu: &Gpu, bytes: u64, rounded: u64) -> Result<Block> {
        // Rounding up must not push a request over the limit that it fits in.
        let size = rounded.min(gpu.limits().max_buffer_size).max(bytes);
        match gpu.info().memory {
            MemoryMode::Unified => {
                let buffer = Buffer::new(gpu, size, BufferKind::Unified)?;
                let pointer = buffer.host_pointer().ok_or_else(|| {
                    Error::Internal("a unified buffer without a host pointer".into())
                })?;
                let address = pointer.as_ptr() as usize;
                Ok(Block::new(Backing::Gpu(Arc::new(buffer)), address, rounded))
            }
            MemoryMode::Device => {
                let buffer = Buffer::new(gpu, size, BufferKind::Device)?;
                let addresses = match self.device_addresses.get() {
                    Some(addresses) => addresses,
                    None => {
                        let made = DeviceAddresses::new(Reservation::new(RESERVATION)?);
                        // Where another thread was first, its reservation is the one.
                        self.device_addresses.get_or_init(|| made)
                    }
                };
                let address = addresses.allocate(rounded)?;
                Ok(Block::new(Backing::Gpu(Arc::new(buffer)), address, rounded))
            }
        }
    }

    /// Counts `rounded` bytes against the configured limit.
    fn reserve_bytes(&self, bytes: u64, rounded: u64) -> Result<()> {
        let before = self.allocated.fetch_add(rounded, Relaxed);
        match self.limit {
            Some(limit) if before.saturating_add(rounded) > limit => {
                self.allocated.fetch_sub(rounded, Relaxed);
                Err(Error::OutOfMemory {
                    requested: bytes,
                    reason: format!(
                        "AOTI_WGPU_MEMORY_LIMIT_MB allows {limit} bytes, {before} are allocated"
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// Takes back what a storage held.
    pub(super) fn release(&self, memory: Memory, bytes: u64, device: DeviceType) {
        match memory {
            Memory::Borrowed(address) => {
                self.before_return(address, bytes, true);
                self.counts.storages.fetch_sub(1, Relaxed);
                return;
            }
            Memory::Empty => {}
            Memory::Owned(block) => {
                if block.buffer().is_none() {
                    self.before_return(block.address, bytes, false);
                }
                if device == DeviceType::Mps {
                    *block.owner.lock() = Weak::new();
                    let mut gone: SmallVec<[_; 1]> = SmallVec::new();
                    if block.buffer().is_some() == self.gpu().is_some() {
                        self.pool.lock().put(block.capacity, block, |evicted| gone.push(evicted));
                    } else {
                        gone.push(block);
                    }
                    gone.into_iter().for_each(|block| self.destroy(block));
                }
            }
        }
        self.count(bytes, device, false);
    }

    fn before_return(&self, address: usize, bytes: u64, borrowed: bool) {
        if let Some((due, hook)) = self.before_return.get()
            && due.load(Acquire) > 0
        {
            hook(address, bytes, borrowed);
        }
    }

    fn destroy(&self, block: Arc<Block>) {
        self.addresses.write().remove(&block);
        self.known.fetch_sub(1, Relaxed);
        self.allocated.fetch_sub(block.capacity, Relaxed);
        if let (Backing::Gpu(buffer), Some(gpu)) = (&block.backing, self.gpu()) {
            if buffer.kind() == BufferKind::Device
                && let Some(addresses) = self.device_addresses.get()
            {
                addresses.release(block.address, block.capacity);
            }
            gpu.bury(buffer.clone());
        }
    }

    /// Gives everything in the pool back to the system. GPU buffers go with the next
    /// submission.
    pub fn empty_pool(&self) {
        let blocks: Vec<_> = self.pool.lock().drain().collect();
        blocks.into_iter().for_each(|block| self.destroy(block));
    }

    /// Empties the pool, and gives back at once what can be.
    pub fn make_room(&self) {
        self.empty_pool();
        if let Some(gpu) = self.gpu() {
            gpu.reclaim();
        }
    }

    fn count(&self, bytes: u64, device: DeviceType, up: bool) {
        let counter = match device {
            DeviceType::Cpu => &self.counts.host_bytes,
            DeviceType::Mps => &self.counts.device_bytes,
        };
        if up {
            self.counts.storages.fetch_add(1, Relaxed);
            counter.fetch_add(bytes, Relaxed);
        } else {
            self.counts.storages.fetch_sub(1, Relaxed);
            counter.fetch_sub(bytes, Relaxed);
        }
    }

    /// What is alive at present.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            live_storages: self.counts.storages.load(Relaxed),
            live_device_bytes: self.counts.device_bytes.load(Relaxed),
            live_host_bytes: self.counts.host_bytes.load(Relaxed),
            pooled_bytes: self.pool.lock().kept(),
            pool_hits: self.counts.hits.load(Relaxed),
            pool_misses: self.counts.misses.load(Relaxed),
        }
    }
}

fn host_block(bytes: u64) -> Result<Block> {
    let memory = HostMemory::new(bytes)?;
    let address = memory.pointer().as_ptr() as usize;
    Ok(Block::new(Backing::Host(memory), address, bytes))
}
