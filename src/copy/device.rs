//! Turns a plan into launches of the kernels in `shaders/`. Pure data: which kernel,
//! which bytes of the two buffers to bind, which parameters, how many workgroups.
//!
//! Which kernel serves what is decided in `copy_piece`. Around that stand the
//! limits of a device: a binding holds so many bytes at most, so `pieces` cuts a
//! plan along its longest dimension until both sides fit; it begins at an aligned
//! offset, so the rest of an offset travels as a parameter; and a grid has so many
//! workgroups a dimension, so their number is folded into two.
//!
//! Launches of one call are to run in their order, each seeing what the one before it
//! wrote: two pieces may share a word of the destination.

use super::plan::{CopyPlan, Dim, Form};
use crate::error::{Error, Result};
use kernels::{Kernel, Tiling};
use smallvec::SmallVec;
use std::ops::Range;

mod convert;
pub mod kernels;

pub use convert::convert_launches;

/// What the launches must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The largest storage binding, in bytes.
    pub max_binding_bytes: u64,
    /// What a binding's offset must be a multiple of, in bytes; a power of two.
    pub offset_alignment: u64,
    /// The most workgroups along one dimension of a grid.
    pub max_groups: u32,
}

/// The parameters' words; they are passed as immediates.
pub const PARAMS: usize = 28;

/// One dispatch. Binding 0 is the destination, binding 1 the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What runs.
    pub kernel: Kernel,
    /// The destination buffer's bytes to bind.
    pub dst: Range<u64>,
    /// The source buffer's bytes to bind.
    pub src: Range<u64>,
    /// `params` of the shader.
    pub params: [u32; PARAMS],
    /// Workgroups to dispatch.
    pub groups: [u32; 3],
}

/// The launches of one copy; most copies are one.
pub type Launches = SmallVec<[Launch; 1]>;

/// Dimensions that the kernels' parameters hold.
const KERNEL_DIMS: usize = 6;
type KernelDims = SmallVec<[Dim; KERNEL_DIMS]>;
/// Dimensions around the tiles of a transpose.
const TILE_DIMS: usize = 4;
/// Invocations a workgroup.
const LANES: u64 = 256;
/// Workgroups a row of the grid, once there is more than one row.
const FOLD: u64 = 32768;
/// Workgroups that fill a large device a few times, so that it does not wait for the last.
const ENOUGH_GROUPS: u64 = 2048;
/// Items an invocation does, where there are enough of them to fill a device with
/// fewer invocations.
const MANY_ITEMS: u64 = 4;
/// Items from which [`MANY_ITEMS`] are done together.
const MANY: u64 = 1 << 20;
/// Kernels that address single bytes do so with 31 bits.
const MAX_BYTE_WINDOW: u64 = 1 << 31;
/// Every window ends at a multiple of this, or with its buffer.
const WINDOW_END: u64 = 16;

/// The launches that copy as `plan` says, between buffers of `dst_bytes` and
/// `src_bytes`. Buffers whose size is a multiple of 16 are served best.
///
/// # Errors
/// [`Error::InvalidArgument`] where the plan reaches past the end of a buffer;
/// [`Error::NotSupported`] where the limits leave no room for one element.
pub fn launches(
    plan: &CopyPlan,
    dst_bytes: u64,
    src_bytes: u64,
    limits: &DeviceLimits,
    out: &mut Launches,
) -> Result<()> {
    let buffers = Buffers::new(plan, dst_bytes, src_bytes, limits)?;
    if plan.form() == Form::Contiguous
        && let Some((head, tail)) = plan.split_off_tail()
    {
        // Fifteen bytes at the end must not make words of all the others.
        pieces(&head, &buffers, out, &mut copy_piece)?;
        return pieces(&tail, &buffers, out, &mut copy_piece);
    }
    pieces(plan, &buffers, out, &mut copy_piece)
}

/// The two buffers and what may be bound of them.
pub(super) struct Buffers<'a> {
    dst_bytes: u64,
    src_bytes: u64,
    limits: &'a DeviceLimits,
}

impl<'a> Buffers<'a> {
    fn new(
        plan: &CopyPlan,
        dst_bytes: u64,
        src_bytes: u64,
        limits: &'a DeviceLimits,
    ) -> Result<Self> {
        for (argument, end, bytes) in
            [("dst", plan.dst_end(), dst_bytes), ("src", plan.src_end(), src_bytes)]
        {
            // A binding's size is a multiple of 4.
            let usable = bytes / 4 * 4;
            if end > usable {
                return Err(Error::invalid(
                    argument,
                    format_args!("a buffer of {bytes} bytes"),
                    format!("the copy reaches byte {end}"),
                ));
            }
        }
        if u64::from(limits.max_groups) < FOLD || !limits.offset_alignment.is_power_of_two() {
            return Err(Error::NotSupported(format!(
                "a device with {limits:?}: {FOLD} workgroups a dimension are needed, and an \
                 alignment that is a power of two"
            )));
        }
        Ok(Buffers { dst_bytes, src_bytes, limits })
    }

    fn window(&self, begin: u64, end: u64, bytes: u64) -> Range<u64> {
        let begin = begin & !(self.limits.offset_alignment - 1);
        begin..end.next_multiple_of(WINDOW_END).min(bytes / 4 * 4)
    }

    fn windows(&self, plan: &CopyPlan) -> Windows {
        Windows {
            dst: self.window(plan.dst(), plan.dst_end(), self.dst_bytes),
            src: self.window(plan.src(), plan.src_end(), self.src_bytes),
        }
    }

    fn largest(&self, plan: &CopyPlan) -> u64 {
        let whole = self.limits.max_binding_bytes / 4 * 4;
        if plan.unit() < 4 { whole.min(MAX_BYTE_WINDOW) } else { whole.min(u32::MAX.into()) }
    }
}

/// The bytes that one launch binds.
pub(super) struct Windows {
    dst: Range<u64>,
    src: Range<u64>,
}

/// Cuts `plan` until each piece fits the limits and the kernels' parameters, and has
/// `emit` turn each into a launch.
pub(super) fn pieces(
    plan: &CopyPlan,
    buffers: &Buffers<'_>,
    out: &mut Launches,
    emit: &mut impl FnMut(&CopyPlan, Windows) -> Launch,
) -> Result<()> {
    if plan.form() == Form::Empty {
        return Ok(());
    }
    let windows = buffers.windows(plan);
    let largest = buffers.largest(plan);
    let excess = |window: &Range<u64>| (window.end - window.start).saturating_sub(largest);
    let (dst, src) = (excess(&windows.dst), excess(&windows.src));
    if dst == 0 && src == 0 && plan.dims().len() < KERNEL_DIMS {
        out.push(emit(plan, windows));
        return Ok(());
    }
    // Of the side that is too long, or of the number of dimensions, take the worst
    // part and cut it in two.
    let reach = |d: &Dim| if dst >= src { (d.size - 1) * d.dst } else { (d.size - 1) * d.src };
    let too_long = dst > 0 || src > 0;
    let axis = if too_long {
        plan.dims().iter().enumerate().max_by_key(|(_, d)| reach(d))
    } else {
        plan.dims().iter().enumerate().min_by_key(|(_, d)| d.size)
    };
    let (head, tail) = match axis {
        Some((axis, dim)) if !too_long || reach(dim) >= plan.run() => plan.halves(axis),
        _ => plan.halves_of_run().ok_or_else(|| {
            Error::NotSupported(format!(
                "copying {} bytes at a time with bindings of {largest} bytes",
                plan.unit()
            ))
        })?,
    };
    pieces(&head, buffers, out, emit)?;
    pieces(&tail, buffers, out, emit)
}

/// Chooses the kernel. Measured on an H200: see `docs/BENCHMARKS.md`.
fn copy_piece(plan: &CopyPlan, windows: Windows) -> Launch {
    let unit = plan.unit();
    if unit >= 4 {
        return match plan.form() {
            Form::Transpose { axis } if plan.dims().len() <= TILE_DIMS + 2 => {
                let [x, y] = tiled_sizes(plan, axis);
                let large = is_many_tiles(plan) && x > 32 && y > 32;
                let tiling = kernels::transpose(unit, large);
                tiles(plan, axis, tiling, windows)
            }
            _ => strided(plan, windows),
        };
    }
    // Groups of 16 bytes are read and written whole, also where a buffer ends.
    let grouped = windows.dst.end.is_multiple_of(16) && windows.src.end.is_multiple_of(16);
    match (plan.form(), plan.is_packed()) {
        (Form::Transpose { axis }, _) if is_half_transpose(plan, axis) => {
            tiles(plan, axis, kernels::transpose_2(rows_begin_at_words(plan, axis)), windows)
        }
        (_, true) if grouped && plan.run() >= 16 => shift_pack(plan, windows),
        (_, true) => narrow_pack(plan, windows),
        (_, false) if grouped && plan.run() >= 16 && groups_are_one_runs(plan) => {
            shift_scatter(plan, windows)
        }
        _ => narrow_scatter(plan, windows),
    }
}

/// Whether tiles of 64 x 64 are more than a device does at once.
fn is_many_tiles(plan: &CopyPlan) -> bool {
    plan.bytes() / plan.unit() >= 256 * 64 * 64
}

/// Sizes along the destination's innermost dimension and along the source's.
fn tiled_sizes(plan: &CopyPlan, axis: usize) -> [u64; 2] {
    let size = |dim: Option<&Dim>| dim.map_or(1, |d| d.size);
    [size(plan.dims().last()), size(plan.dims().get(axis))]
}

fn is_half_transpose(plan: &CopyPlan, axis: usize) -> bool {
    plan.unit() == 2
        && plan.dims().len() <= TILE_DIMS + 2
        && plan.dims().last().is_some_and(|inner| inner.dst == 2)
        && plan.dims().get(axis).is_some_and(|across| across.src == 2)
}

/// Of a transpose of halves: whether rows along the destination's innermost dimension
/// and columns along the source's all begin at a multiple of 4 bytes.
fn rows_begin_at_words(plan: &CopyPlan, axis: usize) -> bool {
    let Some(inner) = plan.dims().len().checked_sub(1) else { return false };
    let dims = || plan.dims().iter().enumerate();
    plan.dst().is_multiple_of(4)
        && plan.src().is_multiple_of(4)
        && dims().all(|(i, d)| i == inner || d.dst.is_multiple_of(4))
        && dims().all(|(i, d)| i == axis || d.src.is_multiple_of(4))
}

/// Whether no 16 aligned bytes of the destination hold bytes of two runs: each dimension
/// steps over all that lies inside it, and 15 bytes more.
fn groups_are_one_runs(plan: &CopyPlan) -> bool {
    let mut dims: KernelDims = plan.dims().iter().copied().collect();
    dims.sort_unstable_by_key(|d| d.dst);
    let mut extent = plan.run();
    dims.iter().all(|d| {
        let apart = d.dst >= extent + 15;
        extent += (d.size - 1) * d.dst;
        apart
    })
}

/// The dimensions innermost first, the run as one of them where it is `items` long.
fn inner_first(plan: &CopyPlan, run: Option<Dim>) -> KernelDims {
    let mut dims: KernelDims = run.into_iter().collect();
    dims.extend(plan.dims().iter().rev().copied());
    if dims.is_empty() {
        dims.push(Dim { size: 1, dst: 0, src: 0 });
    }
    dims
}

fn strided(plan: &CopyPlan, windows: Windows) -> Launch {
    let unit = plan.unit();
    let steps = plan.run() / unit;
    let run = (steps > 1).then_some(Dim { size: steps, dst: unit, src: unit });
    let dims = inner_first(plan, run);
    let total = plan.bytes() / unit;
    let items = items_for(total);
    let head = [
        (plan.dst() - windows.dst.start) / unit,
        (plan.src() - windows.src.start) / unit,
        total,
        0,
    ];
    Launch {
        kernel: kernels::strided(unit, dims.len(), items),
        params: walk_params(head, &dims, unit, unit, LANES * items),
        groups: fold(total.div_ceil(LANES * items)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn narrow_pack(plan: &CopyPlan, windows: Windows) -> Launch {
    let unit = plan.unit();
    let steps = plan.run() / unit;
    let run = (steps > 1).then_some(Dim { size: steps, dst: unit, src: unit });
    let dims = inner_first(plan, run);
    let total = plan.bytes() / unit;
    let first = plan.dst() - windows.dst.start;
    let lead = first % 4 / unit;
    let words = (lead * unit + plan.bytes()).div_ceil(4);
    let items = items_for(words);
    let head = [first / 4, (plan.src() - windows.src.start) / unit, total, lead];
    Launch {
        kernel: kernels::narrow_pack(unit, dims.len(), items),
        params: walk_params(head, &dims, unit, unit, LANES * items * (4 / unit)),
        groups: fold(words.div_ceil(LANES * items)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn shift_pack(plan: &CopyPlan, windows: Windows) -> Launch {
    let dims = inner_first(plan, Some(Dim { size: plan.run(), dst: 1, src: 1 }));
    let total = plan.bytes();
    let first = plan.dst() - windows.dst.start;
    let lead = first % 16;
    let quads = (lead + total).div_ceil(16);
    let head = [first / 16, plan.src() - windows.src.start, total, lead];
    Launch {
        kernel: kernels::shift_pack(dims.len()),
        // The start of a second run may lie just past the workgroup's own bytes.
        params: walk_params(head, &dims, 1, 1, LANES * 16 + 16),
        groups: fold(quads.div_ceil(LANES)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn narrow_scatter(plan: &CopyPlan, windows: Windows) -> Launch {
    // A run that begins at the worst byte of a word; a run of one unit never
    // straddles two, being aligned to itself.
    let unit = plan.unit();
    let words = (plan.run() + 4 - unit).div_ceil(4);
    let run = (words > 1).then_some(Dim { size: words, dst: 4, src: 4 });
    let mut dims = inner_first(plan, run);
    if words == 1 {
        // Dimension 0 counts words also where there is one a run.
        dims.insert(0, Dim { size: 1, dst: 0, src: 0 });
    }
    let total = plan.bytes() / plan.run() * words;
    let items = items_for(total);
    let head = [plan.dst() - windows.dst.start, plan.src() - windows.src.start, total, plan.run()];
    Launch {
        kernel: kernels::narrow_scatter(dims.len(), items),
        params: walk_params(head, &dims, 1, 1, LANES * items),
        groups: fold(total.div_ceil(LANES * items)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn shift_scatter(plan: &CopyPlan, windows: Windows) -> Launch {
    // A run that begins at the last unit of a group.
    let groups = (plan.run() + 16 - plan.unit()).div_ceil(16);
    let dims = inner_first(plan, Some(Dim { size: groups, dst: 16, src: 16 }));
    let total = plan.bytes() / plan.run() * groups;
    let head = [plan.dst() - windows.dst.start, plan.src() - windows.src.start, total, plan.run()];
    Launch {
        kernel: kernels::shift_scatter(dims.len()),
        params: walk_params(head, &dims, 1, 1, LANES),
        groups: fold(total.div_ceil(LANES)),
        dst: windows.dst,
        src: windows.src,
    }
}

fn tiles(plan: &CopyPlan, axis: usize, tiling: Tiling, windows: Windows) -> Launch {
    let unit = plan.unit();
    let Tiling { kernel, tile, walk, shift } = tiling;
    let dims = plan.dims();
    let x = dims.last().copied().unwrap_or_default();
    let y = dims.get(axis).copied().unwrap_or_default();
    let inner = dims.len().saturating_sub(1);
    let around = dims.iter().enumerate().rev().filter(|&(d, _)| d != axis && d != inner);
    let mut rows: SmallVec<[[u64; 4]; TILE_DIMS]> = SmallVec::new();
    let mut images = 1;
    for (_, dim) in around {
        images *= dim.size;
        rows.push([dim.size, dim.dst / unit, dim.src / unit, 0]);
    }
    let dims_around = rows.len() as u64;
    let tiles = [(x.size + shift).div_ceil(tile[0]), y.size.div_ceil(tile[1])];
    // As many tiles a workgroup as leave enough workgroups, and about the same for each; along
    // x, unless there is only one.
    let walked = usize::from(tiles[0] == 1);
    let wanted = (tiles[0] * tiles[1] * images + ENOUGH_GROUPS / 2) / ENOUGH_GROUPS;
    let mut groups = tiles;
    groups[walked] = tiles[walked].div_ceil(wanted.clamp(1, walk));
    let walk = tiles[walked].div_ceil(groups[walked]);
    let total = groups[0] * groups[1] * images;
    match rows.first_mut() {
        Some(row) => row[3] = walk,
        None => rows.push([0, 0, 0, walk]),
    }
    let head = [
        [
            (plan.dst() - windows.dst.start) / unit,
            (plan.src() - windows.src.start) / unit,
            x.size,
            y.size,
        ],
        [x.dst / unit, x.src / unit, y.dst / unit, y.src / unit],
        [groups[0], groups[1], total, dims_around],
    ];
    Launch {
        kernel,
        params: words(head.iter().chain(&rows).flatten().copied()),
        groups: fold(total),
        dst: windows.dst,
        src: windows.src,
    }
}

/// Items an invocation: a divisor of the work that still fills the device.
pub(super) fn items_for(total: u64) -> u64 {
    if total >= MANY { MANY_ITEMS } else { 1 }
}

/// The parameters of `walk.wgsl`: strides in units of `dst_unit` and `src_unit` bytes;
/// no item is more than `reach` after its workgroup's first.
pub(super) fn walk_params(
    head: [u64; 4],
    dims: &[Dim],
    dst_unit: u64,
    src_unit: u64,
    reach: u64,
) -> [u32; PARAMS] {
    let dims = dims.iter().flat_map(|d| {
        [d.size, u64::from(divider(d.size, reach)), d.dst / dst_unit, d.src / src_unit]
    });
    words(head.into_iter().chain(dims))
}

/// What divides numbers below `size + reach` by `size`: 0 where the quotient is 0 or 1,
/// else a factor and, from bit 16, a shift: `i * factor >> shift`.
///
/// With `2^(bits-1) < size <= 2^bits` and `factor = ceil(2^(15+bits) / size)`, the
/// quotient is exact below 2^15 (the factor is less than `size / 2^(15+bits)` too
/// large, relatively), and neither the factor nor the product overflows.
fn divider(size: u64, reach: u64) -> u32 {
    debug_assert!(reach <= 1 << 14);
    if size >= reach {
        return 0;
    }
    let shift = 15 + u64::from(size.next_power_of_two().trailing_zeros());
    (1u64 << shift).div_ceil(size) as u32 | (shift as u32) << 16
}

/// Windows are less than 2^32 units and bytes long, so every number of a piece fits.
/// Strides of a dimension that is walked lie inside the window; so do sizes.
fn words(values: impl Iterator<Item = u64>) -> [u32; PARAMS] {
    let mut params = [0; PARAMS];
    for (word, value) in params.iter_mut().zip(values) {
        debug_assert!(value <= u64::from(u32::MAX), "{value}");
        *word = value as u32;
    }
    params
}

/// `count` workgroups as a grid; the shaders skip what the last row has too many.
pub(super) fn fold(count: u64) -> [u32; 3] {
    if count <= FOLD { [count as u32, 1, 1] } else { [FOLD as u32, count.div_ceil(FOLD) as u32, 1] }
}

#[cfg(test)]
mod tests;
