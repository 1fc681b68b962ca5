//! Views, packed views and clones.
#![allow(unsafe_code)]

use super::transfer::Side;
use super::{Runtime, Views};
use crate::config::MemoryMode;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Checked, Layout};
use crate::memory::{Place, Storage};
use crate::tensor::{DeviceType, PackedView, Tensor};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Runtime {
    /// A tensor over memory that it does not own, or a view where `address` lies in a
    /// live device allocation. On device `mps` too the elements stay where they are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for null with elements, for memory that is too small
    /// where its size is known, and for a dead device address.
    ///
    /// # Safety
    /// Unless it lies in an allocation of this runtime, the memory from `address` to the
    /// layout's end is valid for reading and writing for as long as the tensor or a view
    /// of it lives.
    pub unsafe fn blob(
        &self,
        data: *mut u8,
        layout: Layout,
        dtype: DType,
        device: DeviceType,
    ) -> Result<Tensor> {
        // SAFETY: by this function's contract.
        unsafe { self.blob_of(data, &layout.checked(), dtype, device) }
    }

    /// As [`Runtime::blob`].
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn blob_of(
        &self,
        data: *mut u8,
        layout: &Checked<'_>,
        dtype: DType,
        device: DeviceType,
    ) -> Result<Tensor> {
        let address = data as usize;
        log::trace!("blob {address:#x} {:?} {dtype} {device:?}", layout.sizes());
        let bytes = layout.end_bytes(dtype.size())?;
        if address == 0 && bytes > 0 {
            return Err(Error::invalid("data", "null", format!("{bytes} bytes are needed")));
        }
        match self.inner.memory.find(address) {
            Place::Live(storage, offset) => {
                let tensor = view_at(storage, offset, address, layout, dtype)?;
                self.refresh_cache(&tensor)?;
                return Ok(tensor);
            }
            Place::Reserved if bytes > 0 => {
                return Err(Error::invalid(
                    "data",
                    format_args!("{address:#x}"),
                    "no live device allocation holds this address",
                ));
            }
            Place::Reserved | Place::Outside => {}
        }
        if address.checked_add(usize::try_from(bytes).unwrap_or(usize::MAX)).is_none() {
            return Err(Error::invalid(
                "data",
                format_args!("{address:#x}"),
                format!("{bytes} bytes from there pass the end of the address space"),
            ));
        }
        let storage = self.inner.memory.borrow(address, bytes, device);
        Tensor::with_dense(storage, layout, dtype, None)
    }

    /// A view of `of`'s storage; `increment` elements are added to `of`'s own offset. A
    /// view of a packed view is a view of its base. On device `mps` a view that is not
    /// packed becomes a packed view, unless the runtime makes strided ones.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it would reach outside the storage.
    pub fn view(
        &self,
        of: &Tensor,
        sizes: &[i64],
        strides: &[i64],
        increment: i64,
    ) -> Result<Tensor> {
        let offset = of.layout.offset().checked_add(increment).filter(|&offset| offset >= 0);
        let Some(offset) = offset else {
            return Err(Error::invalid(
                "offset_increment",
                increment,
                format!("added to the offset {} it leaves the storage", of.layout.offset()),
            ));
        };
        log::trace!("view {sizes:?} {strides:?} at {offset} of {:?}", of.sizes());
        let layout = Checked::new(sizes, strides, offset)?;
        let packed = if of.device() == DeviceType::Mps
            && self.inner.config.views == Views::Packed
            && !layout.is_packed()
        {
            Some(packed_view(of, &layout)?)
        } else {
            None
        };
        Tensor::with_dense(of.storage.clone(), &layout, of.dtype, packed)
    }

    /// A view with `of`'s rank and `of`'s own offset.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn as_strided(&self, of: &Tensor, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        self.view(of, sizes, strides, 0)
    }

    /// A plain view of `of`'s storage, from `offset_bytes` after the storage's start, with
    /// elements of another type.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the offset is negative or no multiple of the
    /// element's size, or the view would reach outside the storage.
    pub fn view_bytes(
        &self,
        of: &Tensor,
        offset_bytes: i64,
        dtype: DType,
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<Tensor> {
        let size = dtype.size() as i64;
        if offset_bytes < 0 || offset_bytes % size != 0 {
            return Err(Error::invalid(
                "offset_bytes",
                offset_bytes,
                format!("a multiple of {dtype}'s {size} bytes, not negative, is expected"),
            ));
        }
        let layout = Layout::new(sizes, strides, offset_bytes / size)?;
        Tensor::new(of.storage.clone(), layout, dtype)
    }

    /// A tensor of its own with the same values. Without `preserve_strides` the gaps are
    /// closed and the order of the strides is kept (PyTorch's preserve_format); a packed
    /// view's clone is contiguous. With it the true strides are kept, holes included.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and as [`Runtime::copy`].
    pub fn clone_tensor(&self, of: &Tensor, preserve_strides: bool) -> Result<Tensor> {
        if preserve_strides {
            let layout = of.layout.with_offset(0)?;
            let out = self.empty(layout, of.dtype, of.device())?;
            // The whole extent as it lies: elements that share a place stay shared.
            let run = |offset| Layout::new(&[of.layout.extent()], &[1], offset);
            let to = Tensor::new(out.storage.clone(), run(0)?, of.dtype)?;
            let from = Tensor::new(of.storage.clone(), run(of.layout.offset())?, of.dtype)?;
            self.copy(&to, &from, true)?;
            return Ok(out);
        }
        let layout = match &of.packed {
            Some(view) => view.dense.clone(),
            None => of.layout.closed()?,
        };
        let out = self.empty(layout, of.dtype, of.device())?;
        self.copy(&out, of, true)?;
        Ok(out)
    }

    /// The address of the first element. For a packed view that of its dense buffer, filled
    /// where the base was written since; the host may read it at once where memory is
    /// unified. For any other tensor this does not wait, except for work of an earlier
    /// owner of recycled memory.
    ///
    /// # Errors
    /// [`Error::Poisoned`] for a packed view whose base has no valid contents.
    pub fn data_ptr(&self, tensor: &Tensor) -> Result<*mut u8> {
        let Some(view) = &tensor.packed else {
            if tensor.storage.host_pointer().is_some() {
                self.wait_for(tensor.storage.inherited_use())?;
            }
            return Ok(tensor.plain_address() as *mut u8);
        };
        if view.base.host_pointer().is_none()
            && self.started_gpu().is_some_and(|gpu| gpu.info().memory == MemoryMode::Device)
        {
            // Nobody can read through the address: the fill waits for a reader that can.
            view.base.check()?;
            return Ok(self.cache_of(view)?.address() as *mut u8);
        }
        let storage = self.fill(view)?;
        self.wait_for(storage.last_write())?;
        storage.check()?;
        Ok(storage.address() as *mut u8)
    }

    /// A contiguous tensor with the values of now: a packed view's dense buffer, filled where
    /// the base was written since; any other tensor that is contiguous itself; else a clone.
    ///
    /// # Errors
    /// As [`Runtime::copy`].
    pub fn packed(&self, tensor: &Tensor) -> Result<Tensor> {
        if let Some(view) = &tensor.packed {
            let storage = self.fill(view)?;
            return Tensor::new(storage, view.dense.clone(), view.dtype);
        }
        if tensor.layout.is_contiguous() {
            return Ok(tensor.clone());
        }
        let out = self.empty(Layout::contiguous(tensor.sizes())?, tensor.dtype, tensor.device())?;
        self.copy(&out, tensor, true)?;
        Ok(out)
    }

    /// The dense buffer of a view, made if need be, its contents not looked at.
    fn cache_of(&self, view: &Arc<PackedView>) -> Result<Arc<Storage>> {
        let mut cache = view.cache.lock();
        self.ensure_cache(view, &mut cache)
    }

    fn ensure_cache(
        &self,
        view: &Arc<PackedView>,
        cache: &mut crate::tensor::Cache,
    ) -> Result<Arc<Storage>> {
        if let Some(storage) = &cache.storage {
            return Ok(storage.clone());
        }
        let bytes = view.dense.packed_bytes(view.dtype.size())?;
        let storage = match view.base.buffer() {
            Some(_) => self.inner.memory.allocate(bytes, DeviceType::Mps)?,
            None => self.inner.memory.allocate_beside_host(bytes)?,
        };
        let weak = Arc::downgrade(view);
        storage.set_cache_of(weak);
        cache.storage = Some(storage.clone());
        Ok(storage)
    }

    /// The dense buffer of a view with the contents of now.
    pub(super) fn fill(&self, view: &Arc<PackedView>) -> Result<Arc<Storage>> {
        let mut cache = view.cache.lock();
        let storage = self.ensure_cache(view, &mut cache)?;
        // Read before the copy is recorded: a write that comes between is seen next time.
        let version = view.base.version();
        // Memory of the caller's has other ways in: another blob over it, or the caller.
        if cache.filled == version && !view.base.is_borrowed() {
            self.inner.packs_skipped.fetch_add(1, Relaxed);
            return Ok(storage);
        }
        let dense = Side { storage: &storage, layout: &view.dense, dtype: view.dtype };
        let strided = Side { storage: &view.base, layout: &view.strided, dtype: view.dtype };
        self.transfer(dense, strided)?;
        cache.filled = version;
        self.inner.packs.fetch_add(1, Relaxed);
        Ok(storage)
    }

    /// Brings a packed view's buffer up to date before it is read as a tensor of its own.
    fn refresh_cache(&self, tensor: &Tensor) -> Result<()> {
        let Some(view) = tensor.storage.cache_of() else { return Ok(()) };
        match Arc::downcast::<PackedView>(view as Arc<dyn Any + Send + Sync>) {
            Ok(view) => self.fill(&view).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Tells that the host wrote through a pointer. For a packed view: through its dense
    /// buffer, all of which is written to the base. For any other tensor: to its storage,
    /// so that packed views of it are stale.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a packed view whose elements share places.
    pub fn mark_written(&self, tensor: &Tensor) -> Result<()> {
        let Some(view) = &tensor.packed else {
            tensor.storage.written();
            return Ok(());
        };
        if view.strided.overlaps() {
            return Err(Error::invalid(
                "handle",
                format_args!(
                    "a view of sizes {:?} and strides {:?}",
                    view.strided.sizes(),
                    view.strided.strides()
                ),
                "several of its elements share a place in the base",
            ));
        }
        let mut cache = view.cache.lock();
        // Without a buffer there was no pointer to write through.
        let Some(storage) = cache.storage.clone() else { return Ok(()) };
        let dense = Side { storage: &storage, layout: &view.dense, dtype: view.dtype };
        let strided = Side { storage: &view.base, layout: &view.strided, dtype: view.dtype };
        self.transfer(strided, dense)?;
        cache.filled = view.base.version();
        Ok(())
    }
}

/// A tensor of `layout` from `offset` bytes into a storage on, where `address` points.
fn view_at(
    storage: Arc<Storage>,
    offset: u64,
    address: usize,
    layout: &Checked<'_>,
    dtype: DType,
) -> Result<Tensor> {
    let size = dtype.size() as u64;
    if !offset.is_multiple_of(size) {
        return Err(Error::invalid(
            "data",
            format_args!("{address:#x}"),
            format!("byte {offset} of an allocation is no multiple of {dtype}'s {size}"),
        ));
    }
    let offset = layout.offset().saturating_add((offset / size) as i64);
    Tensor::with_dense(storage, &layout.with_offset(offset)?, dtype, None)
}

/// What goes with a view of `of` that is not packed.
fn packed_view(of: &Tensor, layout: &Checked<'_>) -> Result<Arc<PackedView>> {
    Ok(Arc::new(PackedView {
        base: of.storage.clone(),
        strided: layout.layout(),
        dense: Layout::contiguous(layout.sizes())?,
        dtype: of.dtype,
        cache: Mutex::default(),
    }))
}
