//! Views by shape, and `cat`.

use super::handles::{list, optional, tensor};
use crate::dtype::DType;
use crate::error::Result;
use crate::ffi::boundary::produce;
use crate::ffi::handle::{self, insert};
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// A view of a tensor of this library: one of an ETensor would outlive its memory.
fn view(
    self_: AtenTensorHandle,
    ret0: *mut AtenTensorHandle,
    of: impl FnOnce(&Runtime, &Tensor) -> Result<Tensor>,
) -> AOTITorchError {
    produce("ret0", ret0, || insert(of(Runtime::global(), handle::own("self", self_)?.tensor())?))
}

/// `length` indices of a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_narrow(
    self_: AtenTensorHandle,
    dim: i64,
    start: i64,
    length: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    view(self_, ret0, |runtime, of| runtime.narrow(of, dim, start, length))
}

/// Every `step`-th index of a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_slice_Tensor(
    self_: AtenTensorHandle,
    dim: i64,
    start: *const i64,
    end: *const i64,
    step: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    view(self_, ret0, |runtime, of| {
        // SAFETY: the header's contract for optional values.
        let (start, end) = unsafe { (optional("start", start)?, optional("end", end)?) };
        runtime.slice(of, dim, start, end, step)
    })
}

/// The dimensions in another order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_permute(
    self_: AtenTensorHandle,
    dims: *const i64,
    dims_len_: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for lists.
    view(self_, ret0, |runtime, of| runtime.permute(of, unsafe { list("dims", dims, dims_len_) }?))
}

/// The same elements in another shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_reshape(
    self_: AtenTensorHandle,
    shape: *const i64,
    shape_len_: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    view(self_, ret0, |runtime, of| {
        // SAFETY: the header's contract for lists.
        runtime.reshape(of, unsafe { list("shape", shape, shape_len_) }?)
    })
}

/// Without a dimension of size 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_squeeze_dim(
    self_: AtenTensorHandle,
    dim: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    view(self_, ret0, |runtime, of| runtime.squeeze(of, dim))
}

/// The same bytes as elements of another type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_view_dtype(
    self_: AtenTensorHandle,
    dtype: i32,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    view(self_, ret0, |runtime, of| runtime.view_dtype(of, DType::from_code(dtype)?))
}

/// Tensors one after another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_cat(
    tensors: *const AtenTensorHandle,
    tensors_len_: i64,
    dim: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("ret0", ret0, || {
        // SAFETY: the header's contract for lists and handles.
        let list = unsafe {
            list("tensors", tensors, tensors_len_)?
                .iter()
                .map(|&handle| tensor("tensors", handle))
                .collect::<Result<Vec<Tensor>>>()?
        };
        insert(Runtime::global().cat(&list.iter().collect::<Vec<_>>(), dim)?)
    })
}
