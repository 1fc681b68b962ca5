//! Pooling.

use super::handles::{give_two, list, optional, tensor};
use crate::ffi::boundary::{guard, produce};
use crate::ffi::handle::insert;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::pool::Window;
use crate::runtime::Runtime;

/// The largest element of each window, and its place in its plane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_max_pool2d_with_indices(
    self_: AtenTensorHandle,
    kernel_size: *const i64,
    kernel_size_len_: i64,
    stride: *const i64,
    stride_len_: i64,
    padding: *const i64,
    padding_len_: i64,
    dilation: *const i64,
    dilation_len_: i64,
    ceil_mode: i32,
    ret0: *mut AtenTensorHandle,
    ret1: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles, lists and results.
    guard(|| unsafe {
        let input = tensor("self", self_)?;
        let window = Window {
            kernel_size: list("kernel_size", kernel_size, kernel_size_len_)?,
            stride: list("stride", stride, stride_len_)?,
            padding: list("padding", padding, padding_len_)?,
            dilation: list("dilation", dilation, dilation_len_)?,
            ceil_mode: ceil_mode != 0,
        };
        give_two([("ret0", ret0), ("ret1", ret1)], || Runtime::global().max_pool2d(&input, window))
    })
}

/// The mean of each window.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_avg_pool2d(
    self_: AtenTensorHandle,
    kernel_size: *const i64,
    kernel_size_len_: i64,
    stride: *const i64,
    stride_len_: i64,
    padding: *const i64,
    padding_len_: i64,
    ceil_mode: i32,
    count_include_pad: i32,
    divisor_override: *const i64,
    ret0: *mut AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles, lists and optional values.
    produce("ret0", ret0, || unsafe {
        let input = tensor("self", self_)?;
        let window = Window {
            kernel_size: list("kernel_size", kernel_size, kernel_size_len_)?,
            stride: list("stride", stride, stride_len_)?,
            padding: list("padding", padding, padding_len_)?,
            dilation: &[],
            ceil_mode: ceil_mode != 0,
        };
        let divisor = optional("divisor_override", divisor_override)?;
        let include = count_include_pad != 0;
        insert(Runtime::global().avg_pool2d(&input, window, include, divisor)?)
    })
}
