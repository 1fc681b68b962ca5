//! Scaled dot product attention.

use super::handles::{optional, tensor};
use crate::error::{Error, Result};
use crate::ffi::boundary::{check_output, guard};
use crate::ffi::caller::noted;
use crate::ffi::deferred;
use crate::ffi::handle;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::attention::weights_layout;
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// The arguments of both exports.
struct Call {
    query: AtenTensorHandle,
    key: AtenTensorHandle,
    value: AtenTensorHandle,
    attn_mask: *const AtenTensorHandle,
    dropout_p: f64,
    is_causal: i32,
    dropout_mask: *const AtenTensorHandle,
    scale: *const f64,
    ret0: *mut AtenTensorHandle,
    ret1: *mut AtenTensorHandle,
}

impl Call {
    /// # Safety
    /// The header's contract for handles, optional values and results.
    unsafe fn run(self) -> Result<()> {
        check_output("ret0", self.ret0)?;
        if !self.ret1.is_null() {
            check_output("ret1", self.ret1)?;
        }
        // SAFETY: by this function's contract.
        let (query, key, value, mask, scale) = unsafe {
            (
                tensor("query", self.query)?,
                tensor("key", self.key)?,
                tensor("value", self.value)?,
                optional_tensor("attn_mask", self.attn_mask)?,
                optional("scale", self.scale)?,
            )
        };
        if self.dropout_p != 0.0 {
            return Err(Error::NotSupported(format!(
                "_scaled_dot_product_attention_math_for_mps: dropout_p is {}; programs for \
                 inference have 0",
                self.dropout_p
            )));
        }
        if !self.dropout_mask.is_null() {
            return Err(Error::NotSupported(
                "_scaled_dot_product_attention_math_for_mps: a dropout_mask is given; programs \
                 for inference have none"
                    .into(),
            ));
        }
        let (mask, causal) = (mask.as_ref(), self.is_causal != 0);
        let rt = Runtime::global();
        let result = rt.scaled_dot_product_attention(&query, &key, &value, mask, causal, scale)?;
        let weights = match self.ret1.is_null() {
            true => None,
            false => Some(weights(&query, &key, mask, causal, scale)?),
        };
        let result = match handle::insert(result) {
            Ok(result) => result,
            Err(error) => {
                return match weights {
                    Some(weights) => handle::remove("ret1", weights).and(Err(error)),
                    None => Err(error),
                };
            }
        };
        if let Some(weights) = weights {
            // SAFETY: not null and aligned, as checked, and ours by this function's contract.
            unsafe { self.ret1.write(weights) };
        }
        // SAFETY: as above.
        unsafe { self.ret0.write(result) };
        Ok(())
    }
}

/// A handle to the weights. They are made at once where they are smaller than what they are
/// made from, and otherwise, from copies of that, when somebody asks for them.
fn weights(
    query: &Tensor,
    key: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<AtenTensorHandle> {
    let rt = Runtime::global();
    let layout = weights_layout(query, key)?;
    let bytes = |tensor: &Tensor| tensor.numel().saturating_mul(tensor.dtype().size() as i64);
    let operands = [Some(query), Some(key), mask];
    let held = operands.into_iter().flatten().map(bytes).fold(0, i64::saturating_add);
    if layout.numel().saturating_mul(query.dtype().size() as i64) <= held {
        return handle::insert(rt.attention_weights(query, key, mask, causal, scale)?);
    }
    let dtype = query.dtype();
    let copy = |tensor: &Tensor| rt.clone_tensor(tensor, false);
    let (query, key) = (copy(query)?, copy(key)?);
    let mask = mask.map(copy).transpose()?;
    let make =
        move || Runtime::global().attention_weights(&query, &key, mask.as_ref(), causal, scale);
    deferred::insert(&layout, dtype, Box::new(make))
}

/// A null handle is none as well.
///
/// # Safety
/// The header's contract for optional handles.
unsafe fn optional_tensor(
    name: &'static str,
    at: *const AtenTensorHandle,
) -> Result<Option<Tensor>> {
    // SAFETY: by this function's contract.
    match unsafe { optional(name, at) }?.filter(|handle| !handle.is_null()) {
        // SAFETY: as above.
        Some(handle) => Ok(Some(unsafe { tensor(name, handle) }?)),
        None => Ok(None),
    }
}

noted! {
    /// Attention; heads of queries may share heads of keys and values.
    pub unsafe extern "C" fn aoti_torch_mps__scaled_dot_product_attention_math_for_mps(
        query: AtenTensorHandle,
        key: AtenTensorHandle,
        value: AtenTensorHandle,
        attn_mask: *const AtenTensorHandle,
        dropout_p: f64,
        is_causal: i32,
        dropout_mask: *const AtenTensorHandle,
        scale: *const f64,
        ret0: *mut AtenTensorHandle,
        ret1: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        let call = Call {
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale,
            ret0, ret1,
        };
        // SAFETY: the header's contract, which is the same.
        guard(|| unsafe { call.run() })
    }
}

noted! {
    /// The same: that heads are shared need not be announced.
    pub unsafe extern "C" fn aoti_torch_mps__scaled_dot_product_attention_math_for_mps_v2(
        query: AtenTensorHandle,
        key: AtenTensorHandle,
        value: AtenTensorHandle,
        attn_mask: *const AtenTensorHandle,
        dropout_p: f64,
        is_causal: i32,
        dropout_mask: *const AtenTensorHandle,
        scale: *const f64,
        _enable_gqa: i32,
        ret0: *mut AtenTensorHandle,
        ret1: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        let call = Call {
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale,
            ret0, ret1,
        };
        // SAFETY: the header's contract, which is the same.
        guard(|| unsafe { call.run() })
    }
}
