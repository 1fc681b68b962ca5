//! A storage seen through a layout and an element type.
//!
//! A view of an `mps` tensor that is not packed is a *packed view*: what it reports is
//! a contiguous tensor, and beside it stands a dense buffer that is filled from the
//! base when somebody needs it. What the runtime itself works with is always the true
//! layout over the base: see [`Tensor::strided_layout`].

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Checked, Layout};
pub use crate::memory::DeviceType;
use crate::memory::Storage;
use parking_lot::Mutex;
use std::sync::Arc;

/// A tensor. Cloning makes another reference to the same elements, at the cost of one count.
#[derive(Debug, Clone)]
pub struct Tensor(Arc<Parts>);

/// What a tensor is made of; the crate's own.
#[doc(hidden)]
#[derive(Debug)]
pub struct Parts {
    pub(crate) storage: Arc<Storage>,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
    pub(crate) packed: Option<Arc<PackedView>>,
}

/// The dense buffer of a view that is not packed, shared by all handles to the view.
#[derive(Debug)]
pub(crate) struct PackedView {
    /// The base and where the view's elements lie in it.
    pub(crate) base: Arc<Storage>,
    pub(crate) strided: Layout,
    /// What is reported: the same sizes, contiguous.
    pub(crate) dense: Layout,
    pub(crate) dtype: DType,
    pub(crate) cache: Mutex<Cache>,
}

/// The buffer and the version of the base that it was filled from; 0 for never.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    pub(crate) storage: Option<Arc<Storage>>,
    pub(crate) filled: u64,
}

impl std::ops::Deref for Tensor {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Tensor {
    /// A tensor over `storage`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the layout reaches beyond the storage.
    pub(crate) fn new(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Result<Self> {
        Tensor::with_dense(storage, &layout.checked(), dtype, None)
    }

    /// As [`Tensor::new`], of a packed view where there is a dense buffer to go with it.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    #[inline]
    pub(crate) fn with_dense(
        storage: Arc<Storage>,
        layout: &Checked<'_>,
        dtype: DType,
        packed: Option<Arc<PackedView>>,
    ) -> Result<Self> {
        let end = layout.end_bytes(dtype.size())?;
        if end > storage.bytes() {
            return Err(outside(&storage, layout, dtype, end));
        }
        Ok(Tensor(Arc::new(Parts { layout: layout.layout(), storage, dtype, packed })))
    }

    /// The layout as it is reported: contiguous at offset 0 for a packed view.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.packed.as_ref().map_or(&self.layout, |view| &view.dense)
    }

    /// The true layout over the base's storage, in elements.
    pub fn strided_layout(&self) -> &Layout {
        &self.layout
    }

    /// Elements a dimension.
    pub fn sizes(&self) -> &[i64] {
        self.layout.sizes()
    }

    /// The number of elements.
    pub fn numel(&self) -> i64 {
        self.layout.numel()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> DeviceType {
        self.storage.device()
    }

    /// Bytes of the storage as it is reported: of the dense buffer for a packed view.
    pub fn storage_bytes(&self) -> u64 {
        match &self.packed {
            Some(view) => view.dense.packed_bytes(self.dtype.size()).unwrap_or(0),
            None => self.storage.bytes(),
        }
    }

    /// Whether this is a view with a dense buffer of its own.
    #[inline]
    pub fn is_packed_view(&self) -> bool {
        self.packed.is_some()
    }

    /// Whether two tensors share a storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// The first element's address, where it is known without waiting or filling: not for
    /// a packed view whose buffer does not exist yet, nor for recycled memory that the GPU
    /// still uses. 0 where there is no memory.
    #[inline]
    pub fn known_address(&self) -> Option<usize> {
        match &self.packed {
            Some(view) => view.cache.lock().storage.as_ref().map(|s| s.address()),
            None if self.storage.is_inherited_busy() => None,
            None => Some(self.plain_address()),
        }
    }

    /// The first element's address in the storage, by the true layout.
    #[inline]
    pub(crate) fn plain_address(&self) -> usize {
        match self.storage.address() {
            0 => 0,
            base => {
                // In range: the layout was held against the storage when the tensor was made.
                let offset = (self.layout.offset() as usize).wrapping_mul(self.dtype.size());
                base.wrapping_add(offset)
            }
        }
    }
}

#[cold]
fn outside(storage: &Storage, layout: &Checked<'_>, dtype: DType, end: u64) -> Error {
    Error::invalid(
        "sizes",
        format_args!("{:?}", layout.sizes()),
        format!(
            "with strides {:?}, offset {} and dtype {dtype} they reach byte {end} of a \
             storage of {} bytes",
            layout.strides(),
            layout.offset(),
            storage.bytes()
        ),
    )
}
