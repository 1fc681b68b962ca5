//! Tensors that come, go, are viewed and copied.

use super::boundary::{self, code, guard, guard_void, produce};
use super::caller::noted;
use super::constants::LAYOUT_STRIDED;
use super::described::with_tensor;
use super::handle::{self, insert};
use super::{AOTITorchError, AtenTensorHandle, models};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::{Runtime, check_fork};
use crate::tensor::Tensor;
use std::ffi::c_void;

noted! {
    /// A tensor over memory that it does not own.
    pub unsafe extern "C" fn aoti_torch_create_tensor_from_blob(
        data: *mut c_void,
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        storage_offset: i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || {
            // SAFETY: the header's contract; the memory outlives the tensor.
            let tensor = unsafe {
                boundary::with_layout(ndim, sizes, strides, storage_offset, |layout| {
                    let dtype = DType::from_code(dtype)?;
                    let device = boundary::device(device_type, device_index)?;
                    Runtime::global().blob_of(data.cast(), layout, dtype, device)
                })
            }?;
            insert(tensor)
        })
    }
}

noted! {
    /// As [`aoti_torch_create_tensor_from_blob`], for a layout that must be strided.
    pub unsafe extern "C" fn aoti_torch_create_tensor_from_blob_v2(
        data: *mut c_void,
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        storage_offset: i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        out: *mut AtenTensorHandle,
        layout: i32,
        _opaque_metadata: *const u8,
        _opaque_metadata_size: i64,
    ) -> AOTITorchError {
        if layout != LAYOUT_STRIDED {
            return guard(|| {
                Err(Error::invalid("layout", layout, "strided (0) is the only layout there is"))
            });
        }
        // SAFETY: the header's contract, which is the same.
        unsafe {
            aoti_torch_create_tensor_from_blob(
                data,
                ndim,
                sizes,
                strides,
                storage_offset,
                dtype,
                device_type,
                device_index,
                out,
            )
        }
    }
}

noted! {
    /// A tensor that owns new memory.
    pub unsafe extern "C" fn aoti_torch_empty_strided(
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || {
            // SAFETY: the header's contract.
            let tensor = unsafe {
                boundary::with_layout(ndim, sizes, strides, 0, |layout| {
                    let dtype = DType::from_code(dtype)?;
                    let device = boundary::device(device_type, device_index)?;
                    Runtime::global().empty_of(layout, dtype, device)
                })
            }?;
            insert(tensor)
        })
    }
}

noted! {
    /// As [`aoti_torch_empty_strided`], of host memory only.
    pub unsafe extern "C" fn aoti_torch_empty_strided_pinned(
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        if device_type != boundary::DEVICE_CPU {
            return guard(|| {
                Err(Error::invalid("device_type", device_type, "pinned memory is cpu (0) memory"))
            });
        }
        // SAFETY: the header's contract, which is the same.
        unsafe { aoti_torch_empty_strided(ndim, sizes, strides, dtype, device_type, device_index, out) }
    }
}

/// Gives a handle back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_delete_tensor_object(
    tensor: AtenTensorHandle,
) -> AOTITorchError {
    // In the child of a fork what the handle holds is of no use and its locks may be held
    // for good; programs throw where this fails, so there is nothing to do and no failure.
    if check_fork().is_err() {
        return code::OK;
    }
    guard(|| handle::remove("tensor", tensor))
}

noted! {
    /// A second handle to the same tensor.
    pub unsafe extern "C" fn aoti_torch_new_tensor_handle(
        tensor: AtenTensorHandle,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || handle::new(handle::maybe_defined("tensor", tensor)?.cloned()))
    }
}

noted! {
    /// A handle that is not defined yet.
    pub unsafe extern "C" fn aoti_torch_new_uninitialized_tensor(
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || handle::new(None))
    }
}

/// Binds `dst` to the tensor of `src`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_assign_tensors(
    src: AtenTensorHandle,
    dst: AtenTensorHandle,
) -> AOTITorchError {
    guard(|| handle::rebind("dst", dst, handle::maybe_defined("src", src)?.cloned()))
}

noted! {
    /// A second handle to the tensor of `src`.
    pub unsafe extern "C" fn aoti_torch_assign_tensors_out(
        src: AtenTensorHandle,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || handle::new(handle::maybe_defined("src", src)?.cloned()))
    }
}

noted! {
    /// A view of `self`'s storage; the increment is added to `self`'s own offset.
    pub unsafe extern "C" fn aoti_torch__reinterpret_tensor(
        self_: AtenTensorHandle,
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        offset_increment: i64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || {
            let of = handle::own("self", self_)?.tensor();
            // SAFETY: the header's contract.
            let view = unsafe {
                boundary::with_dims(ndim, sizes, strides, |sizes, strides| {
                    Runtime::global().view(of, sizes, strides, offset_increment)
                })
            }?;
            insert(view)
        })
    }
}

noted! {
    /// A view of `self`'s rank and offset.
    pub unsafe extern "C" fn aoti_torch_as_strided(
        self_: AtenTensorHandle,
        sizes: *const i64,
        strides: *const i64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || {
            let of = handle::own("self", self_)?.tensor();
            let rank = i64::try_from(of.layout().rank()).unwrap_or(i64::MAX);
            // SAFETY: the header's contract: arrays of `self`'s rank.
            let view = unsafe {
                boundary::with_dims(rank, sizes, strides, |sizes, strides| {
                    Runtime::global().as_strided(of, sizes, strides)
                })
            }?;
            insert(view)
        })
    }
}

noted! {
    /// A plain view of another dtype, at an offset in bytes.
    pub unsafe extern "C" fn aoti_torch__alloc_from_pool(
        self_: AtenTensorHandle,
        offset_bytes: i64,
        dtype: i32,
        ndim: i64,
        sizes: *const i64,
        strides: *const i64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        produce("out", out, || {
            let of = handle::own("self", self_)?.tensor();
            let dtype = DType::from_code(dtype)?;
            // SAFETY: the header's contract.
            let view = unsafe {
                boundary::with_dims(ndim, sizes, strides, |sizes, strides| {
                    Runtime::global().view_bytes(of, offset_bytes, dtype, sizes, strides)
                })
            }?;
            insert(view)
        })
    }
}

/// `self.copy_(src)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_copy_(
    self_: AtenTensorHandle,
    src: AtenTensorHandle,
    non_blocking: i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    guard(|| unsafe { copy("self", self_, src, non_blocking != 0) })
}

/// `dst.copy_(src)`, with the arguments the other way round.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_tensor_copy_(
    src: AtenTensorHandle,
    dst: AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    guard(|| unsafe { copy("dst", dst, src, false) })
}

/// # Safety
/// As [`with_tensor`], of both.
unsafe fn copy(
    to: &'static str,
    dst: AtenTensorHandle,
    src: AtenTensorHandle,
    non_blocking: bool,
) -> Result<()> {
    // SAFETY: by this function's contract; a copy keeps no view.
    unsafe {
        with_tensor(to, dst, |dst| {
            with_tensor("src", src, |src| Runtime::global().copy(dst, src, non_blocking))
        })
    }
}

noted! {
    /// A tensor of its own with the same values and no gaps.
    pub unsafe extern "C" fn aoti_torch_clone(
        self_: AtenTensorHandle,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        // SAFETY: the header's contract.
        produce("out", out, || insert(unsafe { clone(self_, false) }?))
    }
}

noted! {
    /// A tensor of its own with the same values and strides.
    pub unsafe extern "C" fn aoti_torch_clone_preserve_strides(
        self_: AtenTensorHandle,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        // SAFETY: the header's contract.
        produce("out", out, || insert(unsafe { clone(self_, true) }?))
    }
}

/// # Safety
/// As [`with_tensor`].
unsafe fn clone(of: AtenTensorHandle, preserve_strides: bool) -> Result<Tensor> {
    // SAFETY: by this function's contract; the clone has memory of its own.
    unsafe { with_tensor("self", of, |of| Runtime::global().clone_tensor(of, preserve_strides)) }
}

/// Fills a tensor with zeroes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_zero_(self_: AtenTensorHandle) -> AOTITorchError {
    guard(|| Runtime::global().zero(handle::own("self", self_)?.tensor()))
}

/// What the delegate calls at the end of a model: frees what models that went left behind.
#[unsafe(no_mangle)]
pub extern "C" fn cleanup_memory() {
    guard_void("cleanup_memory", || {
        let runtime = Runtime::global();
        // A failure of the work that went does not keep its memory.
        let waited = runtime.synchronize();
        let freed = models::one_gone();
        waited.and(freed).and(runtime.trim())
    });
}

/// What the delegate calls beside [`cleanup_memory`]: there is no metadata apart from
/// the handles, so that there is nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn cleanup_tensor_metadata() {}
