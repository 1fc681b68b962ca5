//! What the getters ask of: a handle of ours, or an ETensor.

use super::executorch::{self, Foreign};
use super::handle::{self, AtenTensorHandle};
use super::slot::LiveSlot;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Layout, MAX_DIMS};
use crate::runtime::Runtime;
use crate::tensor::{DeviceType, Tensor};
use std::cell::UnsafeCell;
use std::ffi::c_void;

/// A tensor as it came through the boundary.
pub(super) enum Described<'a> {
    Own(LiveSlot<'a>),
    Foreign(Foreign),
}

/// Looks a handle up, where ETensors are accepted as well.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] where it is neither a live handle nor an ETensor.
///
/// # Safety
/// An address outside every handle of this library is that of an ETensor.
#[inline]
pub(super) unsafe fn describe<'a>(
    argument: &'static str,
    handle: AtenTensorHandle,
) -> Result<Described<'a>> {
    match handle::own_or_foreign(argument, handle)? {
        Some(slot) => Ok(Described::Own(slot)),
        // SAFETY: by this function's contract.
        None => Ok(Described::Foreign(unsafe { executorch::read(argument, handle) }?)),
    }
}

/// Runs `body` on the tensor behind a handle, or on an ETensor wrapped as one.
///
/// # Errors
/// As [`describe`], and what `body` returns.
///
/// # Safety
/// As [`describe`]; the ETensor's memory is valid during the call, and `body` keeps
/// no view of the tensor.
pub(super) unsafe fn with_tensor<R>(
    argument: &'static str,
    handle: AtenTensorHandle,
    body: impl FnOnce(&Tensor) -> Result<R>,
) -> Result<R> {
    // SAFETY: by this function's contract.
    match unsafe { describe(argument, handle) }? {
        Described::Own(slot) => body(slot.tensor()),
        // SAFETY: by this function's contract.
        Described::Foreign(foreign) => body(&unsafe { foreign.tensor() }?),
    }
}

thread_local! {
    /// Sizes and strides that a getter gave for an ETensor, until the thread's next one.
    static SIZES: UnsafeCell<[i64; MAX_DIMS]> = const { UnsafeCell::new([0; MAX_DIMS]) };
    static STRIDES: UnsafeCell<[i64; MAX_DIMS]> = const { UnsafeCell::new([0; MAX_DIMS]) };
}

fn keep(
    array: &'static std::thread::LocalKey<UnsafeCell<[i64; MAX_DIMS]>>,
    values: &[i64],
) -> *mut i64 {
    array.with(|array| {
        let start = array.get().cast::<i64>();
        // SAFETY: a layout has at most `MAX_DIMS` entries; the array is this thread's
        // and no reference into it exists.
        unsafe { start.copy_from_nonoverlapping(values.as_ptr(), values.len().min(MAX_DIMS)) };
        start
    })
}

impl Described<'_> {
    #[inline]
    pub(super) fn layout(&self) -> &Layout {
        match self {
            Described::Own(slot) => slot.tensor().layout(),
            Described::Foreign(foreign) => &foreign.layout,
        }
    }

    #[inline]
    pub(super) fn dtype(&self) -> DType {
        match self {
            Described::Own(slot) => slot.dtype(),
            Described::Foreign(foreign) => foreign.dtype,
        }
    }

    #[inline]
    pub(super) fn device(&self) -> DeviceType {
        match self {
            Described::Own(slot) => slot.device(),
            Described::Foreign(_) => DeviceType::Cpu,
        }
    }

    /// Sizes that live as long as the handle; an ETensor's until the thread's next call.
    #[inline]
    pub(super) fn sizes(&self) -> *mut i64 {
        match self {
            Described::Own(slot) => slot.sizes(),
            Described::Foreign(foreign) => keep(&SIZES, foreign.layout.sizes()),
        }
    }

    /// As [`Described::sizes`], of strides.
    #[inline]
    pub(super) fn strides(&self) -> *mut i64 {
        match self {
            Described::Own(slot) => slot.strides(),
            Described::Foreign(foreign) => keep(&STRIDES, foreign.layout.strides()),
        }
    }

    /// The address of the first element; fills a packed view where that is due.
    #[inline]
    pub(super) fn data(&self) -> Result<*mut c_void> {
        match self {
            Described::Own(slot) => match slot.final_data() {
                Some(data) => Ok(data),
                None => {
                    let data = Runtime::global().data_ptr(slot.tensor())?.cast();
                    slot.set_data(data);
                    Ok(data)
                }
            },
            Described::Foreign(foreign) => Ok(foreign.data.cast()),
        }
    }

    /// Bytes of the storage.
    ///
    /// # Errors
    /// Where they overflow 64 bits.
    pub(super) fn storage_bytes(&self) -> Result<u64> {
        match self {
            Described::Own(slot) => Ok(slot.tensor().storage_bytes()),
            Described::Foreign(foreign) => foreign.layout.end_bytes(foreign.dtype.size()),
        }
    }
}
