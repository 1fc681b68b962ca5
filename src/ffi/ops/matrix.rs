//! Matrix products.

use super::handles::tensors;
use crate::ffi::boundary::guard;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::runtime::Runtime;

/// `out = self mat2`, two matrices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_mm_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    mat2: AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles.
    guard(|| unsafe {
        let [out, a, b] = tensors([("out", out), ("self", self_), ("mat2", mat2)])?;
        Runtime::global().mm_out(&out, &a, &b)
    })
}

/// `out = self mat2`, matrix by matrix of two batches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_bmm_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    mat2: AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles.
    guard(|| unsafe {
        let [out, a, b] = tensors([("out", out), ("self", self_), ("mat2", mat2)])?;
        Runtime::global().bmm_out(&out, &a, &b)
    })
}

/// `out = beta self + alpha mat1 mat2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_addmm_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    mat1: AtenTensorHandle,
    mat2: AtenTensorHandle,
    beta: f64,
    alpha: f64,
) -> AOTITorchError {
    let handles = [("out", out), ("self", self_), ("mat1", mat1), ("mat2", mat2)];
    // SAFETY: the header's contract for handles.
    guard(|| unsafe {
        let [out, addend, a, b] = tensors(handles)?;
        Runtime::global().addmm_out(&out, &addend, &a, &b, beta, alpha)
    })
}

/// `out = beta self + alpha batch1 batch2`, matrix by matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_baddbmm_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    batch1: AtenTensorHandle,
    batch2: AtenTensorHandle,
    beta: f64,
    alpha: f64,
) -> AOTITorchError {
    let handles = [("out", out), ("self", self_), ("batch1", batch1), ("batch2", batch2)];
    // SAFETY: the header's contract for handles.
    guard(|| unsafe {
        let [out, addend, a, b] = tensors(handles)?;
        Runtime::global().baddbmm_out(&out, &addend, &a, &b, beta, alpha)
    })
}
