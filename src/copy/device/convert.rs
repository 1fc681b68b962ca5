//! Launches that convert between element types.

use super::super::convert::ConvertPlan;
use super::super::plan::{CopyPlan, Dim};
use super::{
    Buffers, DeviceLimits, KernelDims, LANES, Launch, Launches, MAX_BYTE_WINDOW, Windows, fold,
    inner_first, items_for, kernels, pieces, walk_params,
};
use crate::dtype::DType;
use crate::error::Result;

/// Elements that a fast conversion handles at a time.
const FOUR: u64 = 4;

/// The launches that convert as `plan` says, between buffers of `dst_bytes` and
/// `src_bytes`.
///
/// # Errors
/// As [`super::launches`].
pub fn convert_launches(
    plan: &ConvertPlan,
    dst_bytes: u64,
    src_bytes: u64,
    limits: &DeviceLimits,
    out: &mut Launches,
) -> Result<()> {
    // Elements of 1 and 2 bytes are addressed by 32 bits of bytes on either side.
    let max_binding_bytes = limits.max_binding_bytes.min(MAX_BYTE_WINDOW);
    let limits = DeviceLimits { max_binding_bytes, ..*limits };
    let buffers = Buffers::new(plan.walk(), dst_bytes, src_bytes, &limits)?;
    let (to, from) = (plan.dst_dtype(), plan.src_dtype());
    let mut emit = |walk: &CopyPlan, windows: Windows| match four_at_a_time(walk, to, from) {
        Some(dims) => fast(walk, &dims, to, from, windows),
        None => general(walk, to, from, windows),
    };
    if let [inner] = plan.walk().dims()
        && inner.size > FOUR
        && !inner.size.is_multiple_of(FOUR)
    {
        let (head, tail) = plan.walk().split_at(0, inner.size / FOUR * FOUR);
        pieces(&head, &buffers, out, &mut emit)?;
        return pieces(&tail, &buffers, out, &mut emit);
    }
    pieces(plan.walk(), &buffers, out, &mut emit)
}

/// The dimensions, innermost first, with four elements as one, where the fast kernels
/// serve the types and both sides keep to multiples of four.
fn four_at_a_time(walk: &CopyPlan, to: DType, from: DType) -> Option<KernelDims> {
    let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
    if !(to == DType::F32 && is_half(from) || from == DType::F32 && is_half(to)) {
        return None;
    }
    let (d, s) = (to.size() as u64, from.size() as u64);
    let mut dims = inner_first(walk, None);
    let inner = dims.first_mut()?;
    if (inner.dst, inner.src) != (d, s) || !inner.size.is_multiple_of(FOUR) {
        return None;
    }
    *inner = Dim { size: inner.size / FOUR, dst: d * FOUR, src: s * FOUR };
    let aligned = |dst: u64, src: u64| dst.is_multiple_of(d * FOUR) && src.is_multiple_of(s * FOUR);
    (aligned(walk.dst(), walk.src()) && dims.iter().all(|dim| aligned(dim.dst, dim.src)))
        .then_some(dims)
}

fn fast(walk: &CopyPlan, dims: &[Dim], to: DType, from: DType, windows: Windows) -> Launch {
    let (d, s) = (to.size() as u64 * FOUR, from.size() as u64 * FOUR);
    let total = dims.iter().map(|dim| dim.size).product();
    let items = items_for(total);
    let head =
        [(walk.dst() - windows.dst.start) / d, (walk.src() - windows.src.start) / s, total, 0];
    Launch {
        kernel: kernels::fast_convert(to, from, dims.len(), items),
        params: walk_params(head, dims, d, s, LANES * items),
        groups: fold(total.div_ceil(LANES * items)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn general(walk: &CopyPlan, to: DType, from: DType, windows: Windows) -> Launch {
    let (d, s) = (to.size() as u64, from.size() as u64);
    let dims = inner_first(walk, None);
    let total = walk.bytes() / d;
    let first = walk.dst() - windows.dst.start;
    let group = if d < 4 && walk.is_packed() { 4 / d } else { 1 };
    let (start, lead) = if group > 1 { (first / 4, first % 4 / d) } else { (first / d, 0) };
    let work = (lead + total).div_ceil(group);
    let items = items_for(work);
    let head = [start, (walk.src() - windows.src.start) / s, total, lead];
    Launch {
        kernel: kernels::convert(to, from, group, dims.len(), items),
        params: walk_params(head, &dims, d, s, LANES * items * group),
        groups: fold(work.div_ceil(LANES * items)),
        dst: windows.dst,
        src: windows.src,
    }
}
