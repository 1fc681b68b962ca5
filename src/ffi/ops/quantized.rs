//! The operators of ExecuTorch's Metal backend that PyTorch does not have.

use super::handles::tensors;
use crate::ffi::boundary::produce;
use crate::ffi::handle::insert;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::runtime::Runtime;

/// `ret = A weight^T`, the weights of 4 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps__linear_fp_act_4bit_weight(
    a: AtenTensorHandle,
    b: AtenTensorHandle,
    group_size: i64,
    s: AtenTensorHandle,
    z: AtenTensorHandle,
    ret: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("ret", ret, || {
        // SAFETY: the header's contract for handles.
        let [a, b, s, z] = unsafe { tensors([("A", a), ("B", b), ("S", s), ("Z", z)]) }?;
        insert(Runtime::global().linear_4bit(&a, &b, group_size, &s, &z)?)
    })
}

/// One product for each row of x, with the matrix of 4-bit weights that it names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_gather_qmv(
    x: AtenTensorHandle,
    w: AtenTensorHandle,
    scales: AtenTensorHandle,
    biases: AtenTensorHandle,
    experts: AtenTensorHandle,
    group_size: i64,
    ret: *mut AtenTensorHandle,
) -> AOTITorchError {
    let handles =
        [("x", x), ("w", w), ("scales", scales), ("biases", biases), ("experts", experts)];
    produce("ret", ret, || {
        // SAFETY: the header's contract for handles.
        let [x, w, scales, biases, experts] = unsafe { tensors(handles) }?;
        insert(Runtime::global().gather_qmv(&x, &w, &scales, &biases, &experts, group_size)?)
    })
}

/// Linear attention with a decaying state, which is updated in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_gated_delta_rule(
    q: AtenTensorHandle,
    k: AtenTensorHandle,
    v: AtenTensorHandle,
    g: AtenTensorHandle,
    beta: AtenTensorHandle,
    state: AtenTensorHandle,
    ret: *mut AtenTensorHandle,
) -> AOTITorchError {
    let handles = [("q", q), ("k", k), ("v", v), ("g", g), ("beta", beta), ("state", state)];
    produce("ret", ret, || {
        // SAFETY: the header's contract for handles.
        let [q, k, v, g, beta, state] = unsafe { tensors(handles) }?;
        insert(Runtime::global().gated_delta_rule(&q, &k, &v, &g, &beta, &state)?)
    })
}
