//! Elements by index tensors, and fills.

use super::handles::{list, tensor, tensors};
use crate::error::{Error, Result};
use crate::ffi::boundary::{guard, produce, text};
use crate::ffi::handle::insert;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::index::Reduce;
use crate::runtime::Runtime;
use crate::tensor::Tensor;
use std::ffi::c_char;

/// Optional tensors: pointers to handles, null where there is none.
///
/// # Safety
/// `len` pointers to handles or null, as [`tensor`] takes them.
unsafe fn optional_tensors(
    start: *const *const AtenTensorHandle,
    len: i64,
) -> Result<Vec<Option<Tensor>>> {
    // SAFETY: by this function's contract.
    let pointers = unsafe { list("indices", start, len) }?;
    pointers
        .iter()
        .map(|&pointer| {
            if pointer.is_null() {
                return Ok(None);
            }
            // SAFETY: not null, so it points to a handle by this function's contract.
            let handle = unsafe { list("indices", pointer, 1) }?;
            match handle {
                // SAFETY: by this function's contract.
                &[handle] => unsafe { tensor("indices", handle) }.map(Some),
                _ => Err(Error::Internal("a list of one has another length".into())),
            }
        })
        .collect()
}

/// `self[indices]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_index_Tensor(
    self_: AtenTensorHandle,
    indices: *const *const AtenTensorHandle,
    indices_len_: i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("ret0", ret0, || {
        // SAFETY: the header's contract for handles and lists.
        let (input, indices) =
            unsafe { (tensor("self", self_)?, optional_tensors(indices, indices_len_)?) };
        let indices: Vec<Option<&Tensor>> = indices.iter().map(Option::as_ref).collect();
        insert(Runtime::global().index(&input, &indices)?)
    })
}

/// A copy of `self` with values at the indices, or added there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_index_put(
    self_: AtenTensorHandle,
    indices: *const *const AtenTensorHandle,
    indices_len_: i64,
    values: AtenTensorHandle,
    accumulate: i32,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("ret0", ret0, || {
        // SAFETY: the header's contract for handles and lists.
        let ([input, values], indices) = unsafe {
            let tensors = tensors([("self", self_), ("values", values)])?;
            (tensors, optional_tensors(indices, indices_len_)?)
        };
        let indices: Vec<Option<&Tensor>> = indices.iter().map(Option::as_ref).collect();
        insert(Runtime::global().index_put(&input, &indices, &values, accumulate != 0)?)
    })
}

/// `out` = `self` with the elements of `src` reduced into it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_scatter_reduce_two_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    dim: i64,
    index: AtenTensorHandle,
    src: AtenTensorHandle,
    reduce: *const c_char,
    include_self: i32,
) -> AOTITorchError {
    let handles = [("out", out), ("self", self_), ("index", index), ("src", src)];
    guard(|| {
        // SAFETY: the header's contract for handles.
        let [out, input, index, src] = unsafe { tensors(handles) }?;
        // SAFETY: the header's contract: a C string.
        let reduce = Reduce::from_name(&unsafe { text(reduce) })?;
        let include_self = include_self != 0;
        Runtime::global().scatter_reduce_out(&out, &input, dim, &index, &src, reduce, include_self)
    })
}

/// Sets every element to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_fill__Scalar(
    self_: AtenTensorHandle,
    value: f64,
) -> AOTITorchError {
    guard(|| {
        // SAFETY: the header's contract for handles.
        let tensor = unsafe { tensor("self", self_) }?;
        Runtime::global().fill_scalar(&tensor, value)
    })
}
