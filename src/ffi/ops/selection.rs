//! Sorting, the largest elements, and sums along a dimension.

use super::handles::{give_two, optional, tensor};
use crate::dtype::DType;
use crate::ffi::boundary::{guard, produce};
use crate::ffi::handle::insert;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::runtime::Runtime;

/// The `k` largest or smallest elements and their places. They are in order whether
/// `sorted` is asked for or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_topk(
    self_: AtenTensorHandle,
    k: i64,
    dim: i64,
    largest: i32,
    _sorted: i32,
    ret0: *mut AtenTensorHandle,
    ret1: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles and results.
    guard(|| unsafe {
        let input = tensor("self", self_)?;
        give_two([("ret0", ret0), ("ret1", ret1)], || {
            Runtime::global().topk(&input, k, dim, largest != 0)
        })
    })
}

/// All elements in order, and their places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_sort(
    self_: AtenTensorHandle,
    dim: i64,
    descending: i32,
    ret0: *mut AtenTensorHandle,
    ret1: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles and results.
    guard(|| unsafe {
        let input = tensor("self", self_)?;
        give_two([("ret0", ret0), ("ret1", ret1)], || {
            Runtime::global().sort(&input, dim, descending != 0)
        })
    })
}

/// As [`aoti_torch_mps_sort`], which is stable in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_sort_stable(
    self_: AtenTensorHandle,
    _stable: *const i32,
    dim: i64,
    descending: i32,
    ret0: *mut AtenTensorHandle,
    ret1: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract, which is the same.
    unsafe { aoti_torch_mps_sort(self_, dim, descending, ret0, ret1) }
}

/// Sums of all elements up to each one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_cumsum(
    self_: AtenTensorHandle,
    dim: i64,
    dtype: *const i32,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("ret0", ret0, || {
        // SAFETY: the header's contract for handles and optional values.
        let (input, dtype) = unsafe { (tensor("self", self_)?, optional("dtype", dtype)?) };
        let dtype = dtype.map(DType::from_code).transpose()?;
        insert(Runtime::global().cumsum(&input, dim, dtype)?)
    })
}
