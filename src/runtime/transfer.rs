//! Moving elements between storages, wherever they are.
//!
//! Two sides that the host can reach are copied by a host plan, after a wait for the
//! work that still uses them; two GPU buffers by compute kernels; and between the host
//! and device memory elements travel packed through a staging buffer, spread or
//! gathered by whichever side is strided.
#![allow(unsafe_code)]

use super::staging::PIECE;
use super::{CopyEngine, Runtime};
use crate::copy::convert::ConvertPlan;
use crate::copy::device::{self, DeviceLimits};
use crate::copy::plan::CopyPlan;
use crate::copy::{convert, host};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{Binding, Buffer, BufferKind, Gpu, PipelineKey, Shader, Stream};
use crate::layout::Layout;
use crate::memory::Storage;
use crate::tensor::{DeviceType, Tensor};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::Arc;

/// One end of a transfer: elements of `dtype` at `layout` in a storage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub storage: &'a Arc<Storage>,
    pub layout: &'a Layout,
    pub dtype: DType,
}

impl<'a> From<&'a Tensor> for Side<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Side { storage: &tensor.storage, layout: &tensor.layout, dtype: tensor.dtype }
    }
}

impl Side<'_> {
    /// Absolute addresses of the first and one past the last byte.
    fn addresses(&self) -> Result<(u64, u64)> {
        let base = self.storage.address() as u64;
        let start = (self.layout.offset() as u64).saturating_mul(self.dtype.size() as u64);
        let end = self.layout.end_bytes(self.dtype.size())?;
        Ok((base.saturating_add(start), base.saturating_add(end)))
    }

    /// Whether writing all elements writes all of the storage.
    fn covers(&self) -> bool {
        self.layout.is_packed()
            && self
                .layout
                .packed_bytes(self.dtype.size())
                .is_ok_and(|bytes| bytes == self.storage.bytes())
    }
}

impl Runtime {
    /// PyTorch's `dst.copy_(src)`: `src` is broadcast to `dst`'s sizes and converted to
    /// its type. Source and destination may overlap: the source is read first.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the sizes do not broadcast or elements of `dst`
    /// share a place; [`Error::NotSupported`] for types that do not convert;
    /// [`Error::Poisoned`] where earlier work on `src` failed.
    pub fn copy(&self, dst: &Tensor, src: &Tensor, non_blocking: bool) -> Result<()> {
        // Data that leaves the host is taken before this returns, and data that reaches
        // it is there: waiting less would be allowed, and is not needed to be fast.
        let _ = non_blocking;
        log::trace!(
            "copy {:?} {} {:?} from {:?} {} {:?}",
            dst.sizes(),
            dst.dtype,
            dst.device(),
            src.sizes(),
            src.dtype,
            src.device()
        );
        if dst.dtype != src.dtype {
            check_convertible(dst.dtype, src.dtype)?;
        }
        if dst.layout.overlaps() {
            return Err(Error::invalid(
                "self",
                format_args!("of sizes {:?} and strides {:?}", dst.sizes(), dst.layout.strides()),
                "several of its elements share a place",
            ));
        }
        let broadcast;
        let src_layout = if src.layout.sizes() == dst.layout.sizes() {
            &src.layout
        } else {
            broadcast = src.layout.broadcast_to(dst.sizes())?;
            &broadcast
        };
        if dst.numel() == 0 {
            return Ok(());
        }
        let src = Side { layout: src_layout, ..Side::from(src) };
        self.copy_sides(dst.into(), src)
    }

    fn copy_sides(&self, dst: Side<'_>, src: Side<'_>) -> Result<()> {
        let ((dst_start, dst_end), (src_start, src_end)) = (dst.addresses()?, src.addresses()?);
        if dst_start < src_end && src_start < dst_end {
            let (to, from) = (dst.storage.address() as u64, src.storage.address() as u64);
            if dst.dtype == src.dtype {
                let plan = CopyPlan::at(dst.layout, to, src.layout, from, dst.dtype.size())?;
                if plan.is_identity() {
                    return src.storage.check();
                }
                if !plan.overlaps() {
                    return self.transfer(dst, src);
                }
            }
            let dense = Layout::contiguous(src.layout.sizes())?;
            let bytes = dense.packed_bytes(src.dtype.size())?;
            let device = match src.storage.buffer() {
                Some(_) => DeviceType::Mps,
                None => DeviceType::Cpu,
            };
            let storage = self.inner.memory.allocate(bytes, device)?;
            let between = Side { storage: &storage, layout: &dense, dtype: src.dtype };
            self.transfer(between, src)?;
            return self.transfer(dst, between);
        }
        self.transfer(dst, src)
    }

    /// Moves all elements of `src` to `dst`, which are of the same sizes and do not overlap.
    pub(super) fn transfer(&self, dst: Side<'_>, src: Side<'_>) -> Result<()> {
        src.storage.check()?;
        let by_host = (dst.storage.host_pointer(), src.storage.host_pointer());
        let by_gpu = (dst.storage.buffer(), src.storage.buffer());
        match (by_host, by_gpu) {
            (_, (Some(to), Some(from))) if self.prefers_gpu(by_host) => {
                let Some(gpu) = self.gpu()? else {
                    return Err(Error::Internal("a GPU buffer without a GPU".into()));
                };
                let mut stream = self.inner.stream.lock();
                encode_copy(&mut stream, gpu, (to, dst), (from, src))?;
                if dst.covers() {
                    dst.storage.heal();
                }
            }
            ((Some(to), Some(from)), _) => self.copy_on_host((dst, to), (src, from))?,
            ((None, Some(from)), (Some(to), _)) => self.upload((dst, to), (src, from))?,
            ((Some(to), None), (_, Some(from))) => self.download((dst, to), (src, from))?,
            _ => {
                return Err(Error::Internal("a storage without host or device memory".into()));
            }
        }
        dst.storage.written();
        Ok(())
    }

    fn prefers_gpu(&self, by_host: (Option<NonNull<u8>>, Option<NonNull<u8>>)) -> bool {
        if by_host.0.is_none() || by_host.1.is_none() {
            return true;
        }
        match self.inner.config.copy {
            CopyEngine::Gpu => true,
            CopyEngine::Host => false,
            CopyEngine::Auto => !self.started_gpu().is_some_and(|gpu| gpu.is_cpu()),
        }
    }

    /// Copies through both host pointers, once no queued work is in the way.
    fn copy_on_host(
        &self,
        (dst, to): (Side<'_>, NonNull<u8>),
        (src, from): (Side<'_>, NonNull<u8>),
    ) -> Result<()> {
        self.settle(dst.storage)?;
        self.settle(src.storage)?;
        self.wait_for(dst.storage.last_use().max(src.storage.last_write()))?;
        src.storage.check()?;
        // SAFETY: both layouts were held against their storages when their tensors were
        // made, and the storages are alive through `dst` and `src`. The two ranges share
        // no byte (the caller made a temporary otherwise), no GPU work uses them any
        // more, and host threads that touch them meanwhile break the ABI's own rule.
        unsafe { move_on_host((dst.layout, dst.dtype, to), (src.layout, src.dtype, from))? };
        if dst.covers() {
            dst.storage.heal();
        }
        Ok(())
    }

    /// Host to device memory, packed through staging buffers.
    fn upload(
        &self,
        (dst, to): (Side<'_>, &Arc<Buffer>),
        (src, from): (Side<'_>, NonNull<u8>),
    ) -> Result<()> {
        let bytes = dst.layout.packed_bytes(dst.dtype.size())?;
        if bytes > PIECE {
            for (dst_half, src_half) in halves(dst.layout, src.layout)? {
                let dst = Side { layout: &dst_half, ..dst };
                self.upload((dst, to), (Side { layout: &src_half, ..src }, from))?;
            }
            return Ok(());
        }
        let Some(gpu) = self.gpu()? else {
            return Err(Error::Internal("a GPU buffer without a GPU".into()));
        };
        self.settle(src.storage)?;
        self.wait_for(src.storage.last_write())?;
        src.storage.check()?;
        let staged = self.stage(gpu, bytes, BufferKind::Upload)?;
        let pointer = staged
            .host_pointer()
            .ok_or_else(|| Error::Internal("a staging buffer is not mapped".into()))?;
        let dense = Layout::contiguous(dst.layout.sizes())?;
        // SAFETY: the source is held against its storage as in `copy_on_host`; the staging
        // buffer is at least `bytes` long, ours alone, and no GPU work uses it.
        unsafe {
            move_on_host((&dense, dst.dtype, pointer), (src.layout, src.dtype, from))?;
        }
        staged.flush_host_writes(gpu);
        let mut stream = self.inner.stream.lock();
        let offset = (dst.layout.offset() as u64).saturating_mul(dst.dtype.size() as u64);
        if dst.layout.is_contiguous() && offset.is_multiple_of(4) && bytes.is_multiple_of(4) {
            stream.copy(gpu, (&staged, 0), (to, offset), bytes)?;
        } else {
            let between = self.inner.memory.allocate(bytes, DeviceType::Mps)?;
            let buffer = between
                .buffer()
                .ok_or_else(|| Error::Internal("device memory without a buffer".into()))?;
            stream.copy(gpu, (&staged, 0), (buffer, 0), bytes.next_multiple_of(4))?;
            let between = Side { storage: &between, layout: &dense, dtype: dst.dtype };
            encode_copy(&mut stream, gpu, (to, dst), (buffer, between))?;
        }
        if dst.covers() {
            dst.storage.heal();
        }
        drop(stream);
        self.inner.staging.lock().give(gpu, staged);
        Ok(())
    }

    /// A staging buffer; where there is no memory for one, the pool makes room.
    fn stage(&self, gpu: &Gpu, bytes: u64, kind: BufferKind) -> Result<Arc<Buffer>> {
        let first = self.inner.staging.lock().take(gpu, bytes, kind);
        match first {
            Err(Error::OutOfMemory { .. }) => {
                self.inner.memory.make_room();
                self.inner.staging.lock().take(gpu, bytes, kind)
            }
            result => result,
        }
    }

    /// Device to host memory, packed through staging buffers; waits for the source.
    fn download(
        &self,
        (dst, to): (Side<'_>, NonNull<u8>),
        (src, from): (Side<'_>, &Arc<Buffer>),
    ) -> Result<()> {
        let bytes = src.layout.packed_bytes(src.dtype.size())?;
        if bytes > PIECE {
            for (dst_half, src_half) in halves(dst.layout, src.layout)? {
                let src = Side { layout: &src_half, ..src };
                self.download((Side { layout: &dst_half, ..dst }, to), (src, from))?;
            }
            return Ok(());
        }
        match self.download_piece((dst, to), (src, from), bytes) {
            // The copy was in one batch with work of others that failed.
            Err(Error::Poisoned(_)) if src.storage.check().is_ok() => {
                self.download_piece((dst, to), (src, from), bytes)
            }
            result => result,
        }
    }

    fn download_piece(
        &self,
        (dst, to): (Side<'_>, NonNull<u8>),
        (src, from): (Side<'_>, &Arc<Buffer>),
        bytes: u64,
    ) -> Result<()> {
        let Some(gpu) = self.gpu()? else {
            return Err(Error::Internal("a GPU buffer without a GPU".into()));
        };
        let staged = self.stage(gpu, bytes, BufferKind::Download)?;
        let pointer = staged
            .host_pointer()
            .ok_or_else(|| Error::Internal("a staging buffer is not mapped".into()))?;
        let dense = Layout::contiguous(src.layout.sizes())?;
        let offset = (src.layout.offset() as u64).saturating_mul(src.dtype.size() as u64);
        let words = bytes.next_multiple_of(4);
        let submission = {
            let mut stream = self.inner.stream.lock();
            if src.layout.is_contiguous() && offset.is_multiple_of(4) {
                stream.copy(gpu, (from, offset), (&staged, 0), words)?;
            } else {
                let between = self.inner.memory.allocate(bytes, DeviceType::Mps)?;
                let buffer = between
                    .buffer()
                    .ok_or_else(|| Error::Internal("device memory without a buffer".into()))?;
                let packed = Side { storage: &between, layout: &dense, dtype: src.dtype };
                encode_copy(&mut stream, gpu, (buffer, packed), (from, src))?;
                stream.copy(gpu, (buffer, 0), (&staged, 0), words)?;
            }
            stream.current()
        };
        self.settle(dst.storage)?;
        self.wait_for(submission.max(dst.storage.last_use()))?;
        src.storage.check()?;
        staged.usage().check()?;
        staged.invalidate_host_reads(gpu);
        // SAFETY: the staging buffer is at least `bytes` long and the copy into it is
        // complete; the destination is held against its storage as in `copy_on_host`.
        unsafe {
            move_on_host((dst.layout, dst.dtype, to), (&dense, src.dtype, pointer))?;
        }
        if dst.covers() {
            dst.storage.heal();
        }
        self.inner.staging.lock().give(gpu, staged);
        Ok(())
    }

    /// Sets every element to zero.
    ///
    /// # Errors
    /// As [`Runtime::copy`].
    pub fn zero(&self, tensor: &Tensor) -> Result<()> {
        static ZERO: [u8; 16] = [0; 16];
        let sizes = tensor.sizes();
        let scalar = match tensor.storage.host_pointer() {
            Some(_) => self.inner.memory.borrow(ZERO.as_ptr() as usize, 16, DeviceType::Cpu),
            None => {
                let storage = self.inner.memory.allocate(16, tensor.device())?;
                let zero = Tensor::new(storage.clone(), Layout::contiguous(&[16])?, DType::U8)?;
                self.write_bytes(&zero, &ZERO)?;
                storage
            }
        };
        let layout = Layout::contiguous(&[])?.broadcast_to(sizes)?;
        let scalar = Tensor::new(scalar, layout, tensor.dtype)?;
        self.copy(tensor, &scalar, true)
    }

    /// Replaces all elements by `bytes`, row-major, of the tensor's own type.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there are not as many bytes as elements need.
    pub fn write_bytes(&self, tensor: &Tensor, bytes: &[u8]) -> Result<()> {
        let host = self.host_side("bytes", tensor, bytes.as_ptr() as usize, bytes.len())?;
        self.copy(tensor, &host, true)
    }

    /// All elements, row-major; waits for them.
    ///
    /// # Errors
    /// [`Error::Poisoned`] where the work that should have written them failed.
    pub fn to_vec(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        let bytes = tensor.layout.packed_bytes(tensor.dtype.size())?;
        let len = usize::try_from(bytes).map_err(|_| Error::OutOfMemory {
            requested: bytes,
            reason: "above the address space".into(),
        })?;
        let mut out = Vec::new();
        out.try_reserve_exact(len)
            .map_err(|error| Error::OutOfMemory { requested: bytes, reason: error.to_string() })?;
        out.resize(len, 0u8);
        let host = self.host_side("out", tensor, out.as_mut_ptr() as usize, len)?;
        self.copy(&host, tensor, false)?;
        Ok(out)
    }

    /// The bytes of a one-element tensor, in the first places; waits for them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for any other number of elements.
    pub fn item(&self, tensor: &Tensor) -> Result<[u8; 16]> {
        if tensor.numel() != 1 {
            return Err(Error::invalid(
                "tensor",
                format_args!("of sizes {:?}", tensor.sizes()),
                "one element is expected",
            ));
        }
        let mut out = [0u8; 16];
        let host = self.host_side("out", tensor, out.as_mut_ptr() as usize, tensor.dtype.size())?;
        self.copy(&host, tensor, false)?;
        Ok(out)
    }

    /// A contiguous tensor like `tensor` over `len` bytes of this process's own.
    fn host_side(
        &self,
        argument: &'static str,
        tensor: &Tensor,
        address: usize,
        len: usize,
    ) -> Result<Tensor> {
        let layout = Layout::contiguous(tensor.sizes())?;
        let needed = layout.packed_bytes(tensor.dtype.size())?;
        if needed != len as u64 {
            return Err(Error::invalid(
                argument,
                format_args!("{len} bytes"),
                format!("sizes {:?} of {} are {needed}", tensor.sizes(), tensor.dtype),
            ));
        }
        let storage = self.inner.memory.borrow(address, needed, DeviceType::Cpu);
        Tensor::new(storage, layout, tensor.dtype)
    }
}

/// Whether elements of one type become elements of the other.
fn check_convertible(dst: DType, src: DType) -> Result<()> {
    if dst.number_kind().is_some() && src.number_kind().is_some() {
        return Ok(());
    }
    Err(Error::NotSupported(format!("copying {src} to {dst}: no conversion is defined")))
}

/// Copies or converts between two pieces of host memory.
///
/// # Safety
/// Each pointer is the start of memory that is valid for its layout's reach, for reading
/// and for writing in turn; the ranges share no byte; nothing else uses them meanwhile.
unsafe fn move_on_host(
    (dst, dst_dtype, to): (&Layout, DType, NonNull<u8>),
    (src, src_dtype, from): (&Layout, DType, NonNull<u8>),
) -> Result<()> {
    if dst_dtype == src_dtype {
        let plan = CopyPlan::new(dst, src, dst_dtype.size())?;
        // SAFETY: a plan reaches what its layouts reach, which the caller vouches for.
        unsafe { host::run(&plan, to.as_ptr(), from.as_ptr()) };
        Ok(())
    } else {
        let plan = ConvertPlan::new((dst, 0, dst_dtype), (src, 0, src_dtype))?;
        // SAFETY: as above.
        unsafe { convert::run(&plan, to.as_ptr(), from.as_ptr()) };
        Ok(())
    }
}

/// Records the kernels that copy or convert one buffer's elements to another's.
fn encode_copy(
    stream: &mut Stream,
    gpu: &Gpu,
    (to, dst): (&Arc<Buffer>, Side<'_>),
    (from, src): (&Arc<Buffer>, Side<'_>),
) -> Result<()> {
    let limits = DeviceLimits {
        max_binding_bytes: gpu.limits().max_storage_buffer_binding_size,
        offset_alignment: u64::from(gpu.limits().min_storage_buffer_offset_alignment),
        max_groups: gpu.limits().max_compute_workgroups_per_dimension,
    };
    let mut launches = SmallVec::new();
    if dst.dtype == src.dtype {
        let plan = CopyPlan::new(dst.layout, src.layout, dst.dtype.size())?;
        device::launches(&plan, to.size(), from.size(), &limits, &mut launches)?;
    } else {
        let plan = ConvertPlan::new((dst.layout, 0, dst.dtype), (src.layout, 0, src.dtype))?;
        device::convert_launches(&plan, to.size(), from.size(), &limits, &mut launches)?;
    }
    let aliased = Arc::ptr_eq(to, from);
    for launch in &launches {
        let kernel = &launch.kernel;
        let key = PipelineKey::Builtin {
            name: kernel.name,
            constants: kernel.constants.clone(),
            aliased,
        };
        let pipeline = gpu.pipeline(&key, || {
            Ok(Shader::Wgsl { text: kernel.wgsl, constants: &kernel.constants, aliased })
        })?;
        let window = |buffer, range: &std::ops::Range<u64>, writes| Binding {
            buffer,
            offset: range.start,
            size: range.end.saturating_sub(range.start),
            writes,
        };
        let bindings = [window(to, &launch.dst, true), window(from, &launch.src, false)];
        let params = bytemuck::bytes_of(&launch.params);
        stream.dispatch(gpu, &pipeline, &bindings, params, launch.groups)?;
    }
    Ok(())
}

/// Both layouts cut in two along the outermost dimension that has more than one index.
fn halves(dst: &Layout, src: &Layout) -> Result<[(Layout, Layout); 2]> {
    let Some(axis) = dst.sizes().iter().position(|&size| size > 1) else {
        return Err(Error::Internal("one element is larger than a staging buffer".into()));
    };
    let size = dst.sizes().get(axis).copied().unwrap_or(0);
    let part = |layout: &Layout, start: i64, len: i64| {
        let mut sizes: SmallVec<[i64; 6]> = layout.sizes().into();
        if let Some(size) = sizes.get_mut(axis) {
            *size = len;
        }
        let stride = layout.strides().get(axis).copied().unwrap_or(0);
        Layout::new(&sizes, layout.strides(), layout.offset() + start * stride)
    };
    let first = size / 2;
    Ok([
        (part(dst, 0, first)?, part(src, 0, first)?),
        (part(dst, first, size - first)?, part(src, first, size - first)?),
    ])
}
