//! The gated delta rule: linear attention with a decaying state.

use super::dense::{countable, float_code, grid, params, shader, start, word};
use crate::error::{Error, Result};
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const DELTA_RULE: (&str, &str) =
    ("delta_rule", shader!("half.wgsl", "ops/elements.wgsl", "ops/delta_rule.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[DELTA_RULE];

const OPERATOR: &str = "gated_delta_rule";

/// The longest row of a state: 64 lanes of 16 elements.
const MAX_KEY: i64 = 1024;

impl Runtime {
    /// For each batch b and value head h, with its state S of [Dv, Dk], for each step t in
    /// order: `S *= g; d = beta (v - S k); S += d k^T; y = S q`. q and k are of
    /// [B, L, Hk, Dk], v and the result of [B, L, Hv, Dv], g and beta of [B, L, Hv], state
    /// of [B, Hv, Dv, Dk], read and written. Head h uses key head h / (Hv / Hk).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for shapes that do not fit; [`Error::NotSupported`] for
    /// dtypes that differ or are not f32, f16 or bf16, and for a Dk that is odd or above
    /// 1024.
    #[allow(clippy::too_many_arguments)] // The operator's own.
    pub fn gated_delta_rule(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        g: &Tensor,
        beta: &Tensor,
        state: &Tensor,
    ) -> Result<Tensor> {
        let kind = float_code(OPERATOR, "q", q.dtype)?;
        let named = [("q", q), ("k", k), ("v", v), ("g", g), ("beta", beta), ("state", state)];
        let [b, l, hk, hv, dk, dv] = check(&named)?;
        let (y, row) = self.fresh_rows(&[b, l, hv, dv], q.dtype)?;
        if y.numel() == 0 {
            return Ok(y);
        }
        if dk == 0 {
            self.zero(&y)?;
            return self.without_gaps(y);
        }
        let inputs = [q, k, v, g, beta];
        let mut dense = Vec::with_capacity(inputs.len());
        for input in inputs {
            dense.push(self.dense(input, 4)?);
        }
        // What is written must be no part of what is read.
        let apart = inputs.iter().all(|input| !input.shares_storage(state));
        let own = if apart { self.dense(state, 4)? } else { self.dense_as(state, state.dtype)? };
        let lanes = if dk <= 256 { 16u32 } else { 64 };
        let blocks = (dv as u64).div_ceil(u64::from(128 / lanes));
        let heads = (b as u64).saturating_mul(hv as u64);
        let mut operands = vec![Operand::write(&y), Operand::write(&own)];
        operands.extend(dense.iter().map(Operand::read));
        let element = q.dtype.size() as u32;
        let number = |value: i64| word(OPERATOR, "a size", value);
        let [heads_word, hk, hv, l] = [number(heads as i64)?, number(hk)?, number(hv)?, number(l)?];
        let [dk, dv, row, blocks_word] =
            [number(dk)?, number(dv)?, number(row)?, number(blocks as i64)?];
        self.launch(
            Launch {
                name: DELTA_RULE.0,
                wgsl: DELTA_RULE.1,
                constants: &[("TYPE", kind), ("LANES", lanes)],
                operands: &operands,
                groups: grid(OPERATOR, heads.saturating_mul(blocks))?,
            },
            |at| {
                let at = |i| start(at, i, element);
                params(&[
                    heads_word,
                    hk,
                    hv,
                    l,
                    dk,
                    dv,
                    row,
                    blocks_word,
                    at(0),
                    at(1),
                    at(2),
                    at(3),
                    at(4),
                    at(5),
                    at(6),
                ])
            },
        )?;
        if !own.shares_storage(state) {
            self.copy(state, &own, true)?;
        }
        self.without_gaps(y)
    }
}

/// B, L, Hk, Hv, Dk, Dv.
fn check(named: &[(&'static str, &Tensor); 6]) -> Result<[i64; 6]> {
    let [(_, q), _, (_, v), ..] = named;
    let shape = |name, tensor: &Tensor, expected: String| {
        let found = format!("of sizes {:?}", tensor.sizes());
        Error::invalid(name, found, format!("{OPERATOR}: {expected}"))
    };
    let &[b, l, hk, dk] = q.sizes() else {
        return Err(shape("q", q, "[B, L, Hk, Dk] is expected".into()));
    };
    let &[_, _, hv, dv] = v.sizes() else {
        return Err(shape("v", v, "[B, L, Hv, Dv] is expected".into()));
    };
    if hv > 0 && (hk == 0 || hv % hk != 0) {
        return Err(shape("v", v, format!("Hv is no multiple of q's Hk, {hk}")));
    }
    let (key, value, rate, states) = ([b, l, hk, dk], [b, l, hv, dv], [b, l, hv], [b, hv, dv, dk]);
    let expected: [&[i64]; 6] = [&key, &key, &value, &rate, &rate, &states];
    for (&(name, tensor), expected) in named.iter().zip(expected) {
        if tensor.sizes() != expected {
            return Err(shape(name, tensor, format!("sizes {expected:?} are expected")));
        }
        if tensor.dtype != q.dtype {
            return Err(Error::NotSupported(format!(
                "{OPERATOR}: {name} is of {}, q of {}; one dtype is expected",
                tensor.dtype, q.dtype
            )));
        }
        countable(OPERATOR, name, tensor)?;
    }
    if dk % 2 != 0 || dk > MAX_KEY {
        return Err(Error::NotSupported(format!(
            "{OPERATOR}: q has a Dk of {dk}; even ones up to {MAX_KEY} are supported"
        )));
    }
    Ok([b, l, hk, hv, dk, dv])
}
