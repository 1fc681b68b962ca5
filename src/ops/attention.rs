//! Attention: softmax of scaled products, times values.
//!
//! Scores are never stored: `attention_tile` goes through the keys with a running maximum
//! for 64 queries at a time, `attention_rows` does so for up to eight rows, reading keys
//! and values once. Heads that share keys count as more queries of one head. Where that leaves a device idle the keys are split, and `attention_finish` adds
//! the parts up. `attention_weights` makes the second result, which programs get and
//! throw away, and which is therefore a function of its own.

use super::dense::{float_code, grid, params, shader, start, word};
use super::matmul::{Matrices, Product};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::{DeviceType, Tensor};
use smallvec::{SmallVec, smallvec};

macro_rules! kernel {
    ($mask:literal, $file:literal) => {
        shader!("half.wgsl", "ops/vectors.wgsl", "ops/attention_common.wgsl", $mask, $file)
    };
}

/// A kernel without a mask and the same with one.
type Kernels = [(&'static str, &'static str); 2];

const TILE: Kernels = [
    ("attention_tile", kernel!("ops/attention_no_mask.wgsl", "ops/attention_tile.wgsl")),
    ("attention_tile_mask", kernel!("ops/attention_mask.wgsl", "ops/attention_tile.wgsl")),
];
const ROWS: Kernels = [
    ("attention_rows", kernel!("ops/attention_no_mask.wgsl", "ops/attention_rows.wgsl")),
    ("attention_rows_mask", kernel!("ops/attention_mask.wgsl", "ops/attention_rows.wgsl")),
];
const WEIGHTS: Kernels = [
    ("attention_weights", kernel!("ops/attention_no_mask.wgsl", "ops/attention_weights.wgsl")),
    ("attention_weights_mask", kernel!("ops/attention_mask.wgsl", "ops/attention_weights.wgsl")),
];
const FINISH: (&str, &str) =
    ("attention_finish", kernel!("ops/attention_no_mask.wgsl", "ops/attention_finish.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] =
    &[TILE[0], TILE[1], ROWS[0], ROWS[1], WEIGHTS[0], WEIGHTS[1], FINISH];

const OPERATOR: &str = "scaled_dot_product_attention";

/// Queries and keys of a tile.
const SIDE: i64 = 64;
/// Tiles that fill a large device: two or three a multiprocessor.
const FULL: i64 = 264;
/// Workgroups that fill it for work bound by memory.
const FULL_OF_LOADS: i64 = 1024;
/// Keys below which a part of them is not worth a workgroup of tiles.
const LEAST_KEYS: i64 = 256;
/// The most bytes of parts.
const PARTS_BYTES: i64 = 64 << 20;

/// A tensor (.., head, row, column) with its leading dimensions as one.
#[derive(Debug, Clone)]
struct Heads {
    tensor: Tensor,
    /// From one outer index, head, row and column to the next, in elements.
    strides: [i64; 4],
}

impl Heads {
    /// Four elements of a row are one aligned vector.
    fn quads(&self, columns: i64) -> u32 {
        let [outer, head, row, column] = self.strides;
        let starts = [self.tensor.strided_layout().offset(), outer, head, row, columns];
        // Host memory is mirrored from wherever it starts.
        let aligned = self.tensor.storage.buffer().is_some();
        u32::from(aligned && column == 1 && starts.iter().all(|n| n % 4 == 0))
    }

    fn words(&self, argument: &str) -> Result<[u32; 4]> {
        word(OPERATOR, argument, self.tensor.strided_layout().end())?;
        let mut words = [0; 4];
        for (to, &stride) in words.iter_mut().zip(&self.strides) {
            *to = word(OPERATOR, argument, stride)?;
        }
        Ok(words)
    }
}

/// Checked operands; sizes in elements.
struct Problem {
    q: Heads,
    k: Heads,
    mask: Option<Heads>,
    outer: i64,
    key_heads: i64,
    /// Query heads that share a key head.
    shared_by: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    causal: bool,
    scale: f32,
}

impl Problem {
    /// Rows that share keys.
    fn rows(&self) -> i64 {
        self.shared_by * self.queries
    }

    fn matrices(&self) -> i64 {
        self.outer * self.key_heads
    }
}

/// What a kernel is launched with.
struct Plan {
    shader: (&'static str, &'static str),
    constants: SmallVec<[(&'static str, u32); 12]>,
    groups: u64,
    /// What the kernel counts: workgroups, or items.
    used: i64,
    splits: i64,
    split_keys: i64,
    columns: i64,
}

impl Runtime {
    /// Attention as PyTorch's `_scaled_dot_product_attention_math_for_mps`:
    /// `softmax(scale q k^T + mask) v`, contiguous, of q's type and of sizes (.., h, l, w),
    /// for q of (.., h, l, e), k of (.., g, s, e) and v of (.., g, s, w), any strides.
    ///
    /// h is a multiple of g: head i of q uses head i / (h / g) of k and v, whose other
    /// leading dimensions broadcast to q's. The mask broadcasts to (.., h, l, s); it is of
    /// bool, true where a key takes part, or of floats that are added. With `causal` query i
    /// sees the keys 0 to i. `scale` is 1 / sqrt(e) unless it is given.
    ///
    /// A row that sees no key, because there is none or each has the score -inf, is 0, as in
    /// PyTorch since 2.8. Sums are kept in f32 and rounded once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes that do not go together and for `causal` with a
    /// mask, [`Error::NotSupported`] for other types than f32, f16 and bf16.
    pub fn scaled_dot_product_attention(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<Tensor> {
        let problem = self.attention_problem(q, k, mask, causal, scale)?;
        let (&[.., columns], k_sizes) = (v.sizes(), k.sizes()) else {
            return Err(refuse("value", v, "at least two dimensions".into()));
        };
        let mut wanted = Dims::from_slice(k_sizes);
        if let Some(last) = wanted.last_mut() {
            *last = columns;
        }
        if v.sizes() != wanted.as_slice() || v.dtype() != q.dtype() {
            let expected = format!("sizes {:?} and {}, as the key", wanted.as_slice(), q.dtype());
            return Err(refuse("value", v, expected));
        }
        let v = self.heads_of("value", v, lead_of(q), problem.key_heads)?;
        let mut sizes = Dims::from_slice(q.sizes());
        if let Some(last) = sizes.last_mut() {
            *last = columns;
        }
        // Rows of whole vectors; cut to their columns in the end.
        let mut padded = sizes.clone();
        if let Some(last) = padded.last_mut() {
            *last = whole_vectors(columns);
        }
        let padded = Layout::contiguous(&padded)?;
        let out = self.empty(padded.clone(), q.dtype(), DeviceType::Mps)?;
        if padded.numel() > 0 && columns > 0 {
            self.attend(&problem, &v, columns, &out)?;
        }
        let result = Layout::new(&sizes, padded.strides(), 0)?;
        self.without_gaps(Tensor::new(out.storage.clone(), result, q.dtype())?)
    }

    /// The second result of PyTorch's operator: the softmax alone, contiguous, of q's type
    /// and of sizes (.., h, l, s). Arguments as of
    /// [`Runtime::scaled_dot_product_attention`], whose kernels do not make it.
    ///
    /// # Errors
    /// As there.
    pub fn attention_weights(
        &self,
        q: &Tensor,
        k: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<Tensor> {
        let problem = self.attention_problem(q, k, mask, causal, scale)?;
        let Problem { outer, key_heads, shared_by, queries, keys, depth, .. } = problem;
        let heads = key_heads * shared_by;
        let pitch = whole_vectors(keys);
        let mut sizes = Dims::from_slice(q.sizes());
        let mut padded = sizes.clone();
        if let (Some(size), Some(wide)) = (sizes.last_mut(), padded.last_mut()) {
            (*size, *wide) = (keys, pitch);
        }
        let padded = Layout::contiguous(&padded)?;
        let out = self.empty(padded.clone(), q.dtype(), DeviceType::Mps)?;
        if padded.numel() > 0 {
            let scores = self.empty(padded.clone(), DType::F32, DeviceType::Mps)?;
            let [k_outer, k_head, k_row, k_column] = problem.k.strides;
            self.multiply(&Product {
                operator: OPERATOR,
                a: Matrices { tensor: &problem.q.tensor, strides: problem.q.strides },
                b: Matrices {
                    tensor: &problem.k.tensor,
                    strides: [k_outer, k_head, k_column, k_row],
                },
                b_shared_by: shared_by,
                addend: None,
                alpha: problem.scale,
                out: Matrices {
                    tensor: &scores,
                    strides: [heads * queries * pitch, queries * pitch, pitch, 1],
                },
                outer,
                inner: heads,
                rows: queries,
                columns: keys,
                depth,
            })?;
            let [bare, masked] = WEIGHTS;
            let used = outer * heads * queries;
            let plan = Plan {
                shader: if problem.mask.is_some() { masked } else { bare },
                constants: smallvec![
                    ("OUT_TYPE", float_code(OPERATOR, "query", q.dtype())?),
                    ("CAUSAL", u32::from(causal)),
                ],
                groups: used as u64,
                used,
                splits: 1,
                split_keys: keys,
                columns: keys,
            };
            let scores = Heads { tensor: scores, strides: [0; 4] };
            let problem = Problem { q: scores.clone(), k: scores.clone(), ..problem };
            self.launch_attention(&problem, &scores, &plan, &out)?;
        }
        let result = Layout::new(&sizes, padded.strides(), 0)?;
        self.without_gaps(Tensor::new(out.storage.clone(), result, q.dtype())?)
    }

    fn attention_problem(
        &self,
        q: &Tensor,
        k: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<Problem> {
        float_code(OPERATOR, "query", q.dtype())?;
        let (&[.., queries, depth], &[.., keys, k_depth]) = (q.sizes(), k.sizes()) else {
            let (name, tensor) = if q.sizes().len() < 2 { ("query", q) } else { ("key", k) };
            return Err(refuse(name, tensor, "at least two dimensions".into()));
        };
        if depth == 0 {
            return Err(refuse("query", q, "heads of at least one element".into()));
        }
        if k.sizes().len() != q.sizes().len() || k_depth != depth || k.dtype() != q.dtype() {
            let rank = q.sizes().len();
            let expected = format!("{rank} dimensions, the last of {depth}, and {}", q.dtype());
            return Err(refuse("key", k, expected));
        }
        let lead = lead_of(q);
        let heads = lead.last().copied().unwrap_or(1);
        let key_heads = lead_of(k).last().copied().unwrap_or(1);
        if heads != key_heads && (key_heads == 0 || heads % key_heads != 0) {
            let expected = format!("a number of heads that divides the query's {heads}");
            return Err(refuse("key", k, expected));
        }
        if causal && mask.is_some() {
            return Err(Error::invalid(
                "is_causal",
                true,
                format!("{OPERATOR} takes either that or an attn_mask"),
            ));
        }
        let mask = match mask {
            None => None,
            Some(mask) => {
                if mask.dtype() != DType::Bool {
                    float_code(OPERATOR, "attn_mask", mask.dtype())?;
                }
                let mut sizes = Dims::from_slice(q.sizes());
                if let Some(last) = sizes.last_mut() {
                    *last = keys;
                }
                let layout = mask.strided_layout().broadcast_to(&sizes).map_err(|_| {
                    let sizes = sizes.as_slice();
                    refuse("attn_mask", mask, format!("sizes that broadcast to {sizes:?}"))
                })?;
                let mask = Tensor::new(mask.storage.clone(), layout, mask.dtype())?;
                Some(self.heads_of("attn_mask", &mask, lead, heads)?)
            }
        };
        let outer_lead = lead.split_last().map_or(&[][..], |(_, outer)| outer);
        Ok(Problem {
            q: self.heads_of("query", q, lead, heads)?,
            k: self.heads_of("key", k, lead, key_heads)?,
            mask,
            outer: outer_lead.iter().product(),
            key_heads,
            shared_by: if key_heads == 0 { 1 } else { heads / key_heads },
            queries,
            keys,
            depth,
            causal,
            scale: scale.unwrap_or_else(|| 1.0 / (depth as f64).sqrt()) as f32,
        })
    }

    /// The tensor with its dimensions before the heads broadcast to those of `lead` and
    /// made one; a copy where no single stride goes through them.
    fn heads_of(
        &self,
        argument: &'static str,
        tensor: &Tensor,
        lead: &[i64],
        heads: i64,
    ) -> Result<Heads> {
        let outer = lead.split_last().map_or(&[][..], |(_, outer)| outer);
        let own = tensor.strided_layout();
        let matrix = own.sizes().iter().skip(lead.len()).copied();
        let mut sizes = Dims::from_slice(outer);
        if !lead.is_empty() {
            sizes.push(heads);
        }
        sizes.extend(matrix);
        let layout = own.broadcast_to(&sizes).map_err(|_| {
            refuse(argument, tensor, format!("leading sizes that broadcast to {outer:?}"))
        })?;
        let tensor = Tensor::new(tensor.storage.clone(), layout, tensor.dtype())?;
        if let Some(heads) = as_heads(&tensor, outer.len()) {
            return Ok(heads);
        }
        let dense = self.dense_as(&tensor, tensor.dtype())?;
        as_heads(&dense, outer.len())
            .ok_or_else(|| Error::Internal(format!("{argument}: a contiguous copy has gaps")))
    }

    fn attend(&self, p: &Problem, v: &Heads, columns: i64, out: &Tensor) -> Result<()> {
        let dtype = float_code(OPERATOR, "query", out.dtype())?;
        let mut plan = plan_of(p, v, columns, dtype);
        if plan.splits == 1 {
            plan.constants.push(("OUT_TYPE", dtype));
            return self.launch_attention(p, v, &plan, out);
        }
        plan.constants.push(("PARTS", 1));
        let pitch = whole_vectors(columns) + 4;
        let layout = Layout::contiguous(&[plan.splits, p.matrices(), p.rows(), pitch])?;
        let parts = self.empty(layout, DType::F32, DeviceType::Mps)?;
        self.launch_attention(p, v, &plan, &parts)?;
        let items = p.matrices() * p.rows() * (whole_vectors(columns) / 4);
        let finish = Plan {
            shader: FINISH,
            constants: smallvec![("OUT_TYPE", dtype)],
            groups: (items as u64).div_ceil(256),
            used: items,
            ..plan
        };
        let parts = Heads { tensor: parts, strides: [0; 4] };
        let sizes = Problem { q: parts.clone(), k: parts.clone(), mask: None, ..*p };
        self.launch_attention(&sizes, &parts, &finish, out)
    }

    fn launch_attention(&self, p: &Problem, v: &Heads, plan: &Plan, out: &Tensor) -> Result<()> {
        let number = |value| word(OPERATOR, "a size", value);
        word(OPERATOR, "the result's end", out.numel())?;
        let (q, k, values) = (p.q.words("query")?, p.k.words("key")?, v.words("value")?);
        let m = match &p.mask {
            Some(mask) => mask.words("attn_mask")?,
            None => [0; 4],
        };
        let [queries, keys] = [number(p.queries)?, number(p.keys)?];
        let [depth, columns] = [number(p.depth)?, number(plan.columns)?];
        let [shared_by, key_heads] = [number(p.shared_by)?, number(p.key_heads)?];
        let [splits, split_keys] = [number(plan.splits)?, number(plan.split_keys)?];
        let used = number(plan.used)?;
        let mut operands: SmallVec<[Operand<'_>; 5]> = smallvec![
            Operand::write(out),
            Operand::read(&p.q.tensor),
            Operand::read(&p.k.tensor),
            Operand::read(&v.tensor),
        ];
        let mut constants = plan.constants.clone();
        if let Some(mask) = &p.mask {
            operands.push(Operand::read(&mask.tensor));
            let code = match mask.tensor.dtype() {
                DType::Bool => 3,
                dtype => float_code(OPERATOR, "attn_mask", dtype)?,
            };
            constants.push(("MASK_TYPE", code));
        }
        let (name, wgsl) = plan.shader;
        let launch = Launch {
            name,
            wgsl,
            constants: &constants,
            operands: &operands,
            groups: grid(OPERATOR, plan.groups)?,
        };
        self.launch(launch, |offsets| {
            let at = |i: usize| {
                let size = operands.get(i).map_or(1, |o| o.tensor.dtype().size() as u32);
                start(offsets, i, size)
            };
            params(
                &[
                    [queries, keys, depth, columns],
                    [at(1), q[0], q[1], q[2]],
                    [q[3], at(2), k[0], k[1]],
                    [k[2], k[3], at(3), values[0]],
                    [values[1], values[2], values[3], shared_by],
                    [at(4), m[0], m[1], m[2]],
                    [m[3], p.scale.to_bits(), key_heads, splits],
                    [split_keys, used, at(0), 0],
                ]
                .concat(),
            )
        })
    }
}

/// The layout of what [`Runtime::attention_weights`] makes of a query and a key that go
/// together.
///
/// # Errors
/// [`Error::InvalidArgument`] where these are more elements than a tensor has.
pub fn weights_layout(q: &Tensor, k: &Tensor) -> Result<Layout> {
    let mut sizes = Dims::from_slice(q.sizes());
    if let (Some(last), [.., keys, _]) = (sizes.last_mut(), k.sizes()) {
        *last = *keys;
    }
    Layout::contiguous(&sizes)
}

/// Which kernel makes it, and into how many parts the keys are cut.
fn plan_of(p: &Problem, v: &Heads, columns: i64, dtype: u32) -> Plan {
    let rows = p.rows();
    let few = rows <= 4 && p.depth <= 256 || rows <= 8 && p.depth <= 128;
    let mut constants: SmallVec<[(&'static str, u32); 12]> = smallvec![
        ("TYPE", dtype),
        ("Q_QUADS", p.q.quads(p.depth)),
        ("K_QUADS", p.k.quads(p.depth)),
        ("V_QUADS", v.quads(columns)),
        ("CAUSAL", u32::from(p.causal)),
    ];
    let (kernels, groups, step, wanted, least) = if few && columns <= 256 {
        let rows = (rows as u64).next_power_of_two() as u32;
        let lanes = ((columns as u64).div_ceil(4).next_power_of_two() as u32).max(8);
        let step = if rows == 8 { 32 } else { 64 };
        constants.extend([("ROWS", rows), ("STEP", step), ("LANES", lanes)]);
        (ROWS, p.matrices(), i64::from(step), FULL_OF_LOADS, i64::from(step))
    } else {
        let wide = if columns > 64 { 128 } else { 64 };
        constants.push(("COLUMNS", wide as u32));
        let tiles = (rows + SIDE - 1) / SIDE * ((columns + wide - 1) / wide);
        (TILE, tiles * p.matrices(), SIDE, FULL, LEAST_KEYS)
    };
    let bytes = (p.matrices() * rows).saturating_mul(4 * (whole_vectors(columns) + 4));
    let most = (p.keys / least).min(PARTS_BYTES / bytes.max(1)).max(1);
    let parts = (wanted / groups.max(1)).clamp(1, most);
    // Every part but the last one is of whole steps.
    let split_keys = ((p.keys.max(1) + parts - 1) / parts + step - 1) / step * step;
    let splits = ((p.keys + split_keys - 1) / split_keys).max(1);
    let [bare, masked] = kernels;
    Plan {
        shader: if p.mask.is_some() { masked } else { bare },
        constants,
        groups: (groups * splits) as u64,
        used: groups * splits,
        splits,
        split_keys,
        columns,
    }
}

/// The dimensions before the last two.
fn lead_of(tensor: &Tensor) -> &[i64] {
    let sizes = tensor.sizes();
    sizes.get(..sizes.len().saturating_sub(2)).unwrap_or(&[])
}

fn whole_vectors(columns: i64) -> i64 {
    (columns + 3) / 4 * 4
}

/// The first `outer` dimensions as one, where a single stride goes through them.
fn as_heads(tensor: &Tensor, outer: usize) -> Option<Heads> {
    let layout = tensor.strided_layout();
    let dims = || layout.sizes().iter().copied().zip(layout.strides().iter().copied());
    // From the last one: each stride is the next one's, as many times as that is large.
    let mut through: Option<(i64, i64)> = None;
    for (size, stride) in dims().take(outer).filter(|&(size, _)| size != 1).rev() {
        through = match through {
            None => Some((stride, stride.checked_mul(size)?)),
            Some((first, next)) if stride == next => Some((first, next.checked_mul(size)?)),
            Some(_) if tensor.numel() > 0 => return None,
            kept => kept,
        };
    }
    let mut strides = [0; 4];
    if let (Some(to), Some((first, _))) = (strides.first_mut(), through) {
        *to = first;
    }
    let rest: SmallVec<[i64; 4]> =
        dims().skip(outer).map(|(size, stride)| if size == 1 { 0 } else { stride }).collect();
    for (to, &stride) in strides.iter_mut().skip(1).rev().zip(rest.iter().rev()) {
        *to = stride;
    }
    Some(Heads { tensor: tensor.clone(), strides })
}

fn refuse(argument: &'static str, tensor: &Tensor, expected: String) -> Error {
    Error::invalid(
        argument,
        format_args!("of sizes {:?} and {}", tensor.sizes(), tensor.dtype()),
        format!("{OPERATOR} expects {expected}"),
    )
}
