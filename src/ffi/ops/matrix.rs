//! Matrix products, convolution and attention.

use crate::error::{Error, Result};
use crate::ffi::boundary::guard;
use crate::ffi::described::with_tensor;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// Runs `body` on the tensors behind handles, in their order.
///
/// # Safety
/// As [`with_tensor`], for each handle.
unsafe fn with_tensors<const N: usize>(
    handles: [(&'static str, AtenTensorHandle); N],
    body: impl FnOnce([&Tensor; N]) -> Result<()>,
) -> Result<()> {
    let mut tensors = Vec::with_capacity(N);
    for (name, handle) in handles {
        // SAFETY: by this function's contract; the tensor is gone when the call ends.
        tensors.push(unsafe { with_tensor(name, handle, |tensor| Ok(tensor.clone())) }?);
    }
    match <[Tensor; N]>::try_from(tensors) {
        Ok(list) => body(list.each_ref()),
        Err(_) => Err(Error::Internal("not as many tensors as handles".into())),
    }
}

/// `out = self mat2`, two matrices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_mm_out(
    out: AtenTensorHandle,
    self_: AtenTensorHandle,
    mat2: AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract for handles.
    guard(|| unsafe {
        with_tensors([("out", out), ("self", self_), ("mat2", mat2)], |[out, a, b]| {
            Runtime::global().mm_out(out, a, b)
        })
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
        with_tensors([("out", out), ("self", self_), ("mat2", mat2)], |[out, a, b]| {
            Runtime::global().bmm_out(out, a, b)
        })
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
        with_tensors(handles, |[out, addend, a, b]| {
            Runtime::global().addmm_out(out, addend, a, b, beta, alpha)
        })
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
        with_tensors(handles, |[out, addend, a, b]| {
            Runtime::global().baddbmm_out(out, addend, a, b, beta, alpha)
        })
    })
}
