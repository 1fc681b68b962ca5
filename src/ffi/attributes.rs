//! The getters. Each answers for an ETensor of ExecuTorch as well.

use super::boundary::{code, device_code, produce};
use super::described::{Described, describe};
use super::handle;
use super::slot::LiveSlot;
use super::{AOTITorchError, AtenTensorHandle};
use crate::error::{Error, Result};
use crate::runtime::in_child;
use std::ffi::c_void;

/// Writes what `get` says of the tensor.
///
/// # Safety
/// As [`describe`].
#[inline]
unsafe fn answer<T>(
    tensor: AtenTensorHandle,
    out: *mut T,
    get: impl FnOnce(&Described<'_>) -> Result<T>,
) -> AOTITorchError {
    // SAFETY: by this function's contract.
    produce("out", out, || get(&unsafe { describe("tensor", tensor) }?))
}

/// As [`answer`], for what programs ask before they launch anything: where `own` answers
/// for a tensor of this library, it does so without the guard, since none of this panics.
///
/// # Safety
/// As [`describe`].
#[inline(always)]
unsafe fn answer_at_once<T>(
    tensor: AtenTensorHandle,
    out: *mut T,
    own: impl FnOnce(LiveSlot<'_>) -> Option<T>,
    get: impl FnOnce(&Described<'_>) -> Result<T>,
) -> AOTITorchError {
    #[cold]
    #[inline(never)]
    unsafe fn otherwise<T>(
        tensor: AtenTensorHandle,
        out: *mut T,
        get: impl FnOnce(&Described<'_>) -> Result<T>,
    ) -> AOTITorchError {
        // SAFETY: by this function's contract.
        unsafe { answer(tensor, out, get) }
    }

    if !in_child()
        && !out.is_null()
        && out.is_aligned()
        && let Some(value) = handle::known(tensor).and_then(own)
    {
        // SAFETY: as in `produce`.
        unsafe { out.write(value) };
        return code::OK;
    }
    // SAFETY: by this function's contract.
    unsafe { otherwise(tensor, out, get) }
}

/// The address of the first element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_data_ptr(
    tensor: AtenTensorHandle,
    out: *mut *mut c_void,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer_at_once(tensor, out, |own| own.final_data(), |tensor| tensor.data()) }
}

/// Sizes, as many as there are dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_sizes(
    tensor: AtenTensorHandle,
    out: *mut *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer_at_once(tensor, out, |own| Some(own.sizes()), |tensor| Ok(tensor.sizes())) }
}

/// Strides in elements, as many as there are dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_strides(
    tensor: AtenTensorHandle,
    out: *mut *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer_at_once(tensor, out, |own| Some(own.strides()), |tensor| Ok(tensor.strides())) }
}

/// The size of one dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_size(
    tensor: AtenTensorHandle,
    d: i64,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| entry(tensor.layout().sizes(), d)) }
}

/// The stride of one dimension, in elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_stride(
    tensor: AtenTensorHandle,
    d: i64,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| entry(tensor.layout().strides(), d)) }
}

/// One entry a dimension, counted from the end where `d` is negative.
fn entry(values: &[i64], d: i64) -> Result<i64> {
    let rank = signed(values.len());
    let index = if d < 0 { d.saturating_add(rank) } else { d };
    usize::try_from(index)
        .ok()
        .and_then(|index| values.get(index))
        .copied()
        .ok_or_else(|| Error::invalid("d", d, format!("the tensor has {rank} dimensions")))
}

fn signed(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// The number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_dim(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(signed(tensor.layout().rank()))) }
}

/// The number of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_numel(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(tensor.layout().numel())) }
}

/// c10's code of the element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_dtype(
    tensor: AtenTensorHandle,
    out: *mut i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe {
        answer_at_once(
            tensor,
            out,
            |own| Some(own.dtype().code()),
            |tensor| Ok(tensor.dtype().code()),
        )
    }
}

/// c10's code of the device type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_device_type(
    tensor: AtenTensorHandle,
    out: *mut i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(device_code(tensor.device()))) }
}

/// The device's index: there is one device, 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_device_index(
    tensor: AtenTensorHandle,
    out: *mut i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |_| Ok(0)) }
}

/// c10's code of the layout, which is always strided.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_layout(
    tensor: AtenTensorHandle,
    out: *mut i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |_| Ok(super::constants::LAYOUT_STRIDED)) }
}

/// Elements from the start of the storage to the first element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_storage_offset(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(tensor.layout().offset())) }
}

/// Bytes of the storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_storage_size(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(signed(tensor.storage_bytes()?))) }
}

/// Whole elements that the storage has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_get_storage_numel(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe {
        answer(tensor, out, |tensor| {
            Ok(signed(tensor.storage_bytes()? / tensor.dtype().size() as u64))
        })
    }
}

/// Whether the elements lie in row-major order without gaps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_is_contiguous(
    tensor: AtenTensorHandle,
    out: *mut bool,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { answer(tensor, out, |tensor| Ok(tensor.layout().is_contiguous())) }
}

/// Whether a handle has a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_is_defined(
    tensor: AtenTensorHandle,
    out: *mut bool,
) -> AOTITorchError {
    produce("out", out, || {
        if handle::is_foreign(tensor) {
            // SAFETY: the header's contract.
            return unsafe { describe("tensor", tensor) }.map(|_| true);
        }
        Ok(handle::maybe_defined("tensor", tensor)?.is_some())
    })
}
