//! Scaled dot product attention.

use super::handles::{optional, optional_tensor, tensors};
use crate::error::{Error, Result};
use crate::ffi::boundary::{check_output, guard};
use crate::ffi::caller::noted;
use crate::ffi::deferred;
use crate::ffi::handle;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::attention::weights_layout;
use crate::runtime::Runtime;
use crate::tensor::Tensor;

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
        // SAFETY: the header's contract for handles, optional values and results, which are
        // written where they are not null and aligned, as is checked first.
        guard(|| unsafe {
            check_output("ret0", ret0)?;
            if !ret1.is_null() {
                check_output("ret1", ret1)?;
            }
            let [query, key, value] = tensors([("query", query), ("key", key), ("value", value)])?;
            let mask = optional_tensor("attn_mask", attn_mask)?;
            let scale = optional("scale", scale)?;
            if dropout_p != 0.0 {
                return Err(Error::NotSupported(format!(
                    "_scaled_dot_product_attention_math_for_mps: dropout_p is {}; programs for \
                     inference have 0",
                    dropout_p
                )));
            }
            if !dropout_mask.is_null() {
                return Err(Error::NotSupported(
                    "_scaled_dot_product_attention_math_for_mps: a dropout_mask is given; programs \
                     for inference have none"
                        .into(),
                ));
            }
            let (mask, causal) = (mask.as_ref(), is_causal != 0);
            let rt = Runtime::global();
            let result = rt.scaled_dot_product_attention(&query, &key, &value, mask, causal, scale)?;
            let weights = match ret1.is_null() {
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
                ret1.write(weights);
            }
            ret0.write(result);
            Ok(())
        })
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
        // SAFETY: the header's contract, which is the same.
        unsafe {
            aoti_torch_mps__scaled_dot_product_attention_math_for_mps::body(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                dropout_mask,
                scale,
                ret0,
                ret1,
            )
        }
    }
}
