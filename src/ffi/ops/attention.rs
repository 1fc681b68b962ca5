//! Scaled dot product attention.

use super::handles::{optional, tensor};
use crate::error::{Error, Result};
use crate::ffi::boundary::{check_output, guard};
use crate::ffi::caller::noted;
use crate::ffi::handle;
use crate::ffi::{AOTITorchError, AtenTensorHandle};
use crate::ops::attention::Attention;
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
    grouped: bool,
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
        let how = Attention {
            mask: mask.as_ref(),
            causal: self.is_causal != 0,
            scale,
            grouped: self.grouped,
        };
        let rt = Runtime::global();
        let result = rt.scaled_dot_product_attention(&query, &key, &value, how)?;
        let weights = match self.ret1.is_null() {
            true => None,
            false => Some(rt.attention_weights(&query, &key, &value, how)?),
        };
        let result = handle::insert(result)?;
        if let Some(weights) = weights {
            match handle::insert(weights) {
                // SAFETY: not null and aligned, as checked, and ours by this function's
                // contract.
                Ok(weights) => unsafe { self.ret1.write(weights) },
                Err(error) => {
                    handle::remove("ret0", result)?;
                    return Err(error);
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.ret0.write(result) };
        Ok(())
    }
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
    /// Attention of queries to as many heads of keys and values.
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
        let grouped = false;
        let call = Call {
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, grouped,
            ret0, ret1,
        };
        // SAFETY: the header's contract, which is the same.
        guard(|| unsafe { call.run() })
    }
}

noted! {
    /// The same, where heads of keys and values may be shared.
    pub unsafe extern "C" fn aoti_torch_mps__scaled_dot_product_attention_math_for_mps_v2(
        query: AtenTensorHandle,
        key: AtenTensorHandle,
        value: AtenTensorHandle,
        attn_mask: *const AtenTensorHandle,
        dropout_p: f64,
        is_causal: i32,
        dropout_mask: *const AtenTensorHandle,
        scale: *const f64,
        enable_gqa: i32,
        ret0: *mut AtenTensorHandle,
        ret1: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        let grouped = enable_gqa != 0;
        let call = Call {
            query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, grouped,
            ret0, ret1,
        };
        // SAFETY: the header's contract, which is the same.
        guard(|| unsafe { call.run() })
    }
}
