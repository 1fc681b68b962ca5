//! Convolution.

use super::handles::{list, optional_tensor, tensor};
use crate::ffi::boundary::produce;
use crate::ffi::caller::noted;
use crate::ffi::handle::insert;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::conv::Convolution;
use crate::runtime::Runtime;

noted! {
    /// A convolution of vectors or images, or a transposed one.
    pub unsafe extern "C" fn aoti_torch_mps_convolution(
        input: AtenTensorHandle,
        weight: AtenTensorHandle,
        bias: *const AtenTensorHandle,
        stride: *const i64,
        stride_len_: i64,
        padding: *const i64,
        padding_len_: i64,
        dilation: *const i64,
        dilation_len_: i64,
        transposed: i32,
        output_padding: *const i64,
        output_padding_len_: i64,
        groups: i64,
        ret0: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        // SAFETY: the header's contract for handles, lists and optional tensors.
        produce("ret0", ret0, || unsafe {
            let input = tensor("input", input)?;
            let weight = tensor("weight", weight)?;
            // A null handle is none as well: ExecuTorch takes it so.
            let bias = optional_tensor("bias", bias)?;
            let how = Convolution {
                stride: list("stride", stride, stride_len_)?,
                padding: list("padding", padding, padding_len_)?,
                dilation: list("dilation", dilation, dilation_len_)?,
                transposed: transposed != 0,
                output_padding: list("output_padding", output_padding, output_padding_len_)?,
                groups,
            };
            insert(Runtime::global().convolution(&input, &weight, bias.as_ref(), how)?)
        })
    }
}
