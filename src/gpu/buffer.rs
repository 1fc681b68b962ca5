//! GPU buffers, the ones that the host can reach among them, and reserved addresses.
//!
//! The only user of `wgpu::hal`. A buffer made there counts as initialised (wgpu
//! zeroes an ordinary one at its first use) and, where it is mapped, keeps its
//! pointer for life: `wgpu::Buffer::map_async` would forbid submissions meanwhile.
#![allow(unsafe_code)]

use super::Gpu;
use super::errors::scoped;
use super::faults;
use super::usage::Usage;
use crate::config::Backend;
use crate::error::{Error, Result};
use std::ptr::NonNull;
use std::sync::Arc;
use wgpu::hal::{self, Device as _};

/// What a buffer is for, which decides its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// Tensors, in the GPU's own memory.
    Device,
    /// Tensors, in memory that the host reads and writes through a pointer.
    Unified,
    /// Staging that the host writes and the GPU copies from.
    Upload,
    /// Staging that the GPU copies to and the host reads.
    Download,
}

impl BufferKind {
    fn uses(self) -> wgpu::BufferUses {
        const TENSOR: wgpu::BufferUses = wgpu::BufferUses::COPY_SRC
            .union(wgpu::BufferUses::COPY_DST)
            .union(wgpu::BufferUses::STORAGE_READ_ONLY)
            .union(wgpu::BufferUses::STORAGE_READ_WRITE);
        match self {
            BufferKind::Device => TENSOR,
            // Not MAP_WRITE: Metal would make it write-combined, which is slow to read.
            BufferKind::Unified => TENSOR.union(wgpu::BufferUses::MAP_READ),
            BufferKind::Upload => wgpu::BufferUses::MAP_WRITE.union(wgpu::BufferUses::COPY_SRC),
            BufferKind::Download => wgpu::BufferUses::MAP_READ.union(wgpu::BufferUses::COPY_DST),
        }
    }

    fn usages(self) -> wgpu::BufferUsages {
        const TENSOR: wgpu::BufferUsages = wgpu::BufferUsages::COPY_SRC
            .union(wgpu::BufferUsages::COPY_DST)
            .union(wgpu::BufferUsages::STORAGE);
        match self {
            BufferKind::Device => TENSOR,
            BufferKind::Unified => TENSOR.union(wgpu::BufferUsages::MAP_READ),
            BufferKind::Upload => wgpu::BufferUsages::MAP_WRITE.union(wgpu::BufferUsages::COPY_SRC),
            BufferKind::Download => {
                wgpu::BufferUsages::MAP_READ.union(wgpu::BufferUsages::COPY_DST)
            }
        }
    }

    fn mapped(self) -> bool {
        self != BufferKind::Device
    }
}

/// The host's window into a mapped buffer.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    pointer: NonNull<u8>,
    coherent: bool,
}

// SAFETY: the address of a mapping may be used from any thread; who may read or write
// through it, and when, is for the holder of the pointer to prove.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself is never changed.
unsafe impl Sync for Mapping {}

/// One buffer of the device and what queued work does to it.
#[derive(Debug)]
pub struct Buffer {
    raw: wgpu::Buffer,
    size: u64,
    id: u64,
    kind: BufferKind,
    mapping: Option<Mapping>,
    usage: Arc<Usage>,
}

impl Buffer {
    /// A buffer of at least `size` bytes, rounded up to whole words.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] above the device's largest buffer (named with its
    /// limit) or where the driver has none left.
    pub fn new(gpu: &Gpu, size: u64, kind: BufferKind) -> Result<Self> {
        gpu.faults.check()?;
        faults::allocation(size)?;
        let limit = gpu.limits.max_buffer_size;
        let rounded = size.max(4).checked_next_multiple_of(4).filter(|&r| r <= limit);
        let Some(rounded) = rounded else {
            return Err(Error::OutOfMemory {
                requested: size,
                reason: format!("the device's largest buffer is {limit} bytes"),
            });
        };
        let (raw, mapping) = create(gpu, rounded, kind).map_err(|error| match error {
            Error::OutOfMemory { reason, .. } => Error::OutOfMemory { requested: size, reason },
            other => other,
        })?;
        Ok(Buffer { raw, size: rounded, id: gpu.next_id(), kind, mapping, usage: Arc::default() })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What the buffer is for.
    pub fn kind(&self) -> BufferKind {
        self.kind
    }

    /// The first byte, where the host can reach it. Valid for as long as the buffer.
    pub fn host_pointer(&self) -> Option<NonNull<u8>> {
        self.mapping.map(|m| m.pointer)
    }

    /// What queued work does to it.
    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// A number that no other buffer of the device has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn raw(&self) -> &wgpu::Buffer {
        &self.raw
    }

    /// Makes host writes through the pointer visible to work submitted later.
    pub fn flush_host_writes(&self, gpu: &Gpu) {
        self.sync_mapping(gpu, true);
    }

    /// Makes completed GPU writes visible to the host.
    pub fn invalidate_host_reads(&self, gpu: &Gpu) {
        self.sync_mapping(gpu, false);
    }

    fn sync_mapping(&self, gpu: &Gpu, flush: bool) {
        if self.mapping.is_none_or(|m| m.coherent) {
            return;
        }
        match gpu.backend {
            #[cfg(not(target_vendor = "apple"))]
            Backend::Vulkan => sync_hal::<hal::api::Vulkan>(gpu, self, flush),
            #[cfg(target_vendor = "apple")]
            Backend::Metal => sync_hal::<hal::api::Metal>(gpu, self, flush),
            #[cfg(windows)]
            Backend::Dx12 => sync_hal::<hal::api::Dx12>(gpu, self, flush),
            _ => {}
        }
    }
}

fn create(gpu: &Gpu, size: u64, kind: BufferKind) -> Result<(wgpu::Buffer, Option<Mapping>)> {
    match gpu.backend {
        #[cfg(not(target_vendor = "apple"))]
        Backend::Vulkan => create_hal::<hal::api::Vulkan>(gpu, size, kind),
        #[cfg(target_vendor = "apple")]
        Backend::Metal => create_hal::<hal::api::Metal>(gpu, size, kind),
        #[cfg(windows)]
        Backend::Dx12 => create_hal::<hal::api::Dx12>(gpu, size, kind),
        other => Err(Error::NotSupported(format!(
            "the backend {} is not of this platform",
            other.name()
        ))),
    }
}

fn create_hal<A: hal::Api>(
    gpu: &Gpu,
    size: u64,
    kind: BufferKind,
) -> Result<(wgpu::Buffer, Option<Mapping>)> {
    let failed = |error: hal::DeviceError| match error {
        hal::DeviceError::OutOfMemory => {
            Error::OutOfMemory { requested: size, reason: "the driver has no memory left".into() }
        }
        hal::DeviceError::Lost => Error::DeviceLost("while making a buffer".into()),
        other => Error::Validation { operation: "making a buffer", message: other.to_string() },
    };
    // SAFETY: the guard is used within this function and the device is not destroyed through it.
    let Some(device) = (unsafe { gpu.device.as_hal::<A>() }) else {
        return Err(Error::Internal("the device is not of its own backend".into()));
    };
    let desc = hal::BufferDescriptor {
        label: None,
        size,
        usage: kind.uses(),
        memory_flags: hal::MemoryFlags::empty(),
    };
    // SAFETY: the size is not zero and within the device's limit, as the caller checked.
    let buffer = unsafe { device.create_buffer(&desc) }.map_err(failed)?;
    let mapping = if kind.mapped() {
        // SAFETY: the buffer was just made with MAP_READ or MAP_WRITE, the range is all of
        // it, and it is mapped only here.
        match unsafe { device.map_buffer(&buffer, 0..size) } {
            Ok(m) => Some(Mapping { pointer: m.ptr, coherent: m.is_coherent }),
            Err(error) => {
                // SAFETY: no work has seen the buffer, and nobody else holds it.
                unsafe { device.destroy_buffer(buffer) };
                return Err(failed(error));
            }
        }
    } else {
        None
    };
    drop(device);
    let desc = wgpu::BufferDescriptor {
        label: None,
        size,
        usage: kind.usages(),
        mapped_at_creation: false,
    };
    let raw = scoped(&gpu.device, "making a buffer", || {
        // SAFETY: `buffer` comes from this device, was made with the uses that belong to
        // `desc`, is not empty, and its contents count as initialised: what a fresh
        // tensor holds is unspecified by the ABI, and any bit pattern is a valid word.
        unsafe { gpu.device.create_buffer_from_hal::<A>(buffer, &desc) }
    })?;
    Ok((raw, mapping))
}

fn sync_hal<A: hal::Api>(gpu: &Gpu, buffer: &Buffer, flush: bool) {
    // SAFETY: the guards are used within this function and nothing is destroyed through them.
    let device = unsafe { gpu.device.as_hal::<A>() };
    // SAFETY: as above.
    let raw = unsafe { buffer.raw.as_hal::<A>() };
    let (Some(device), Some(raw)) = (device, raw) else { return };
    let whole = std::iter::once(0..buffer.size);
    if flush {
        // SAFETY: the buffer is mapped for life and the range is all of it.
        unsafe { device.flush_mapped_ranges(&raw, whole) };
    } else {
        // SAFETY: as above.
        unsafe { device.invalidate_mapped_ranges(&raw, whole) };
    }
}

/// Whether a storage buffer can be made that the host reaches coherently.
pub(super) fn probe_unified(gpu: &Gpu) -> Result<()> {
    if !gpu.features.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS) {
        return Err(Error::NotSupported("the adapter has no mappable storage buffers".into()));
    }
    let probe = Buffer::new(gpu, 256, BufferKind::Unified)?;
    match probe.mapping {
        Some(Mapping { coherent: true, .. }) => Ok(()),
        // Host writes are not announced, so memory that must be flushed cannot be shared.
        _ => Err(Error::NotSupported("its mapped memory is not coherent".into())),
    }
}

/// A range of addresses that nothing is mapped to: reading or writing there faults.
#[derive(Debug)]
pub struct Reservation {
    start: usize,
    len: usize,
}

impl Reservation {
    /// Reserves up to `len` bytes of address space; less where the process may not have so much.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where not even 1 GiB is to be had.
    pub fn new(len: usize) -> Result<Self> {
        let mut len = len;
        while len >= 1 << 30 {
            if let Some(start) = reserve(len) {
                return Ok(Reservation { start, len });
            }
            len /= 2;
        }
        Err(Error::OutOfMemory {
            requested: len as u64,
            reason: "the system gives no address space for device pointers".into(),
        })
    }

    /// The first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes of address space.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(unix)]
fn reserve(len: usize) -> Option<usize> {
    // SAFETY: an anonymous private mapping at an address of the system's choice touches
    // no existing memory; PROT_NONE means that none is ever committed.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (p != libc::MAP_FAILED).then_some(p as usize)
}

#[cfg(unix)]
impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: start and length are those of a mapping made by `reserve`, unmapped once.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}

#[cfg(windows)]
fn reserve(len: usize) -> Option<usize> {
    use windows::Win32::System::Memory::{MEM_RESERVE, PAGE_NOACCESS, VirtualAlloc};
    // SAFETY: reserving at an address of the system's choice touches no existing memory.
    let p = unsafe { VirtualAlloc(None, len, MEM_RESERVE, PAGE_NOACCESS) };
    (!p.is_null()).then_some(p as usize)
}

#[cfg(windows)]
impl Drop for Reservation {
    fn drop(&mut self) {
        use windows::Win32::System::Memory::{MEM_RELEASE, VirtualFree};
        // SAFETY: the address is that of a reservation made by `reserve`, released once.
        // A failure leaves address space reserved, which harms nobody.
        let _ = unsafe { VirtualFree(self.start as *mut _, 0, MEM_RELEASE) };
    }
}
