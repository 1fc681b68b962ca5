//! Scaled dot product attention: `softmax(scale q kᵀ + mask) v`.
//!
//! The result is made without the matrix of scores (`attention_tile`), by several
//! workgroups a row where there are few rows (`attention_finish` puts their parts
//! together). The weights, which compiled programs always name and hardly ever use, are
//! made by [`Runtime::attention_weights`], from a product and `attention_weights`.

use super::dense::{float_code, grid, params, relaid, shader, start, word};
use super::matmul::{Matrices, Product};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const TILE: (&str, &str) = (
    "attention_tile",
    shader!("half.wgsl", "ops/attention_common.wgsl", "ops/attention_tile.wgsl"),
);
const FINISH: (&str, &str) =
    ("attention_finish", shader!("half.wgsl", "ops/attention_finish.wgsl"));
const WEIGHTS: (&str, &str) = (
    "attention_weights",
    shader!("half.wgsl", "ops/attention_common.wgsl", "ops/attention_weights.wgsl"),
);

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[TILE, FINISH, WEIGHTS];

/// Rows and keys of a tile; as in the shader.
const SIDE: i64 = 64;
/// The largest head that is served, in elements.
const LARGEST_HEAD: i64 = 256;
/// Workgroups that fill a large device once or twice.
const FULL: i64 = 264;
/// What the tile kernel declares of workgroup memory.
const TILE_BYTES: u32 = 24 << 10;

/// What is attended to, and how, beside the three tensors.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attention<'a> {
    /// Broadcast to (batch, heads, queries, keys): where it is of bool, what takes part;
    /// else it is added to the scores.
    pub mask: Option<&'a Tensor>,
    /// Query i sees the keys 0 to i alone.
    pub causal: bool,
    /// What the products are multiplied by; 1 / sqrt(head size) where it is not given.
    pub scale: Option<f64>,
    /// Query heads may be a multiple of the heads of keys and values, and share them.
    pub grouped: bool,
}

/// A checked call.
struct Call<'a> {
    operator: &'static str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
    how: Attention<'a>,
    batch: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    columns: i64,
    scale: f64,
    /// The three tensors came without a batch.
    flat: bool,
}

impl Runtime {
    /// Attention of queries (batch, heads, l, e), keys (batch, heads, s, e) and values
    /// (batch, heads, s, ev), or all without the batch: a contiguous tensor of (batch,
    /// heads, l, ev). A row that sees no key is 0, as PyTorch's.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes and types that do not fit each other;
    /// [`Error::NotSupported`] for types but f32, f16 and bf16, for other ranks, for heads of
    /// more than 256 elements, and for devices with less than 24 KiB of workgroup memory.
    pub fn scaled_dot_product_attention(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        how: Attention<'_>,
    ) -> Result<Tensor> {
        let call = Call::new(query, key, value, how)?;
        let sizes = [call.batch, call.heads, call.queries, call.columns];
        let (result, pitch) = self.fresh_rows(&sizes, query.dtype())?;
        if result.numel() > 0 && call.keys == 0 {
            self.zero(&result)?;
        } else if result.numel() > 0 {
            self.attend(&call, &result, pitch)?;
        }
        call.shaped(&self.without_gaps(result)?)
    }

    /// The weights that [`Runtime::scaled_dot_product_attention`] sums the values by: a
    /// contiguous tensor of (batch, heads, l, s), in the queries' type.
    ///
    /// # Errors
    /// As [`Runtime::scaled_dot_product_attention`].
    pub fn attention_weights(
        &self,
        query: &Tensor,
        key: &Tensor,
        how: Attention<'_>,
    ) -> Result<Tensor> {
        let call = Call::new(query, key, key, how)?;
        let sizes = [call.batch, call.heads, call.queries, call.keys];
        let (result, pitch) = self.fresh_rows(&sizes, query.dtype())?;
        if result.numel() > 0 {
            self.weigh(&call, &result, pitch)?;
        }
        call.shaped(&self.without_gaps(result)?)
    }

    fn attend(&self, call: &Call<'_>, result: &Tensor, pitch: i64) -> Result<()> {
        let op = call.operator;
        self.check_workgroup_memory(op)?;
        let [query, key, value] =
            [&call.query, &call.key, &call.value].map(|tensor| self.with_dense_rows(tensor));
        let (query, key, value) = (query?, key?, value?);
        let share = call.heads / call.key_heads;
        let rows = share * call.queries;
        let tiles = (rows + SIDE - 1) / SIDE;
        let pairs = call.batch * call.key_heads;
        let key_tiles = (call.keys + SIDE - 1) / SIDE;
        let wanted = (FULL / (tiles * pairs).max(1)).clamp(1, key_tiles);
        let split_keys = (key_tiles + wanted - 1) / wanted * SIDE;
        let splits = (call.keys + split_keys - 1) / split_keys;

        let all_rows = pairs * rows;
        let part_pitch = (call.columns + 3) / 4 * 4;
        let parts = match splits {
            1 => None,
            _ => Some(self.fresh(&[splits * all_rows * (part_pitch + 2)], DType::F32)?),
        };
        let quads = [&query, &key, &value].iter().all(|tensor| self.has_quads(tensor));
        let mask = call.mask.as_ref();
        let constants = [
            ("TYPE", float_code(op, "query", query.dtype())?),
            ("MASK_TYPE", call.mask_code()?),
            ("CAUSAL", u32::from(call.how.causal)),
            ("QUADS", u32::from(quads)),
            ("SPLIT", u32::from(parts.is_some())),
            ("COLUMNS", word(op, "value", (call.columns + SIDE - 1) / SIDE)?),
        ];
        let used = tiles * pairs * splits;
        let scale = (call.scale * std::f64::consts::LOG2_E) as f32;
        let mut numbers = [0u32; 31];
        let [q_batch, q_head, q_row] = strides(&query);
        let [k_batch, k_head, k_row] = strides(&key);
        let [v_batch, v_head, v_row] = strides(&value);
        let [m_batch, m_head, m_row, m_key] = call.mask_strides();
        let (pitch, stats) = match &parts {
            None => (pitch, 0),
            Some(_) => (part_pitch, splits * all_rows * part_pitch),
        };
        let values = [
            call.heads,
            call.queries,
            call.keys,
            call.depth, // row 0
            share,
            call.columns,
            0,
            q_batch, // row 1
            q_head,
            q_row,
            0,
            k_batch, // row 2
            k_head,
            k_row,
            0,
            v_batch, // row 3
            v_head,
            v_row,
            0,
            m_batch, // row 4
            m_head,
            m_row,
            m_key,
            0, // row 5
            pitch,
            0,
            splits,
            split_keys, // row 6
            tiles,
            used,
            stats, // row 7
        ];
        for (to, from) in numbers.iter_mut().zip(values) {
            *to = word(op, "a size or stride", from)?;
        }
        for (argument, tensor) in [("query", &query), ("key", &key), ("value", &value)] {
            word(op, argument, tensor.strided_layout().end())?;
        }
        let out = parts.as_ref().unwrap_or(result);
        let launch = Launch {
            name: TILE.0,
            wgsl: TILE.1,
            constants: &constants,
            operands: &[
                Operand::write(out),
                Operand::read(&query),
                Operand::read(&key),
                Operand::read(&value),
                Operand::read(mask.unwrap_or(&query)),
            ],
            groups: grid(op, used as u64)?,
        };
        let size = query.dtype().size() as u32;
        let mask_size = mask.map_or(1, |mask| mask.dtype().size() as u32);
        self.launch(launch, |offsets| {
            let out_start = start(offsets, 0, 4);
            for (at, value) in [
                (6, start(offsets, 1, size)),
                (10, start(offsets, 2, size)),
                (14, start(offsets, 3, size)),
                (18, start(offsets, 4, mask_size)),
                (23, out_start),
                (25, scale.to_bits()),
                (30, out_start.saturating_add(stats as u32)),
            ] {
                if let Some(word) = numbers.get_mut(at) {
                    *word = value;
                }
            }
            params(&numbers)
        })?;
        match parts {
            None => Ok(()),
            Some(parts) => {
                let shape = [all_rows, call.columns, pitch_of(result, call.columns), splits];
                self.combine(op, result, &parts, shape, [part_pitch, stats])
            }
        }
    }

    /// Puts the parts of `splits` together.
    fn combine(
        &self,
        op: &'static str,
        result: &Tensor,
        parts: &Tensor,
        shape: [i64; 4],
        [part_pitch, stats]: [i64; 2],
    ) -> Result<()> {
        let [rows, columns, ..] = shape;
        let mut numbers = [0u32; 4];
        for (to, from) in numbers.iter_mut().zip(shape) {
            *to = word(op, "a size", from)?;
        }
        let [rows_word, columns_word, pitch, splits] = numbers;
        let part_pitch = word(op, "value", part_pitch)?;
        let stats = word(op, "the parts' size", stats)?;
        let items = rows * ((columns + 1) / 2);
        let launch = Launch {
            name: FINISH.0,
            wgsl: FINISH.1,
            constants: &[("TYPE", float_code(op, "query", result.dtype())?)],
            operands: &[Operand::write(result), Operand::read(parts)],
            groups: grid(op, (items as u64).div_ceil(256))?,
        };
        self.launch(launch, |offsets| {
            let from = start(offsets, 1, 4);
            params(&[
                rows_word,
                columns_word,
                pitch,
                splits,
                start(offsets, 0, 4),
                from,
                part_pitch,
                from.saturating_add(stats),
            ])
        })
    }

    /// The weights, into rows `pitch` elements apart.
    fn weigh(&self, call: &Call<'_>, result: &Tensor, pitch: i64) -> Result<()> {
        let op = call.operator;
        let score_pitch = (call.keys + 3) / 4 * 4;
        let scores =
            self.fresh(&[call.batch, call.heads, call.queries, score_pitch], DType::F32)?;
        let [k_batch, k_head, k_row, k_column] = Matrices::of(&call.key).strides;
        self.multiply(&Product {
            operator: op,
            a: Matrices::of(&call.query),
            b: Matrices { tensor: &call.key, strides: [k_batch, k_head, k_column, k_row] },
            b_shared_by: call.heads / call.key_heads,
            addend: None,
            alpha: call.scale as f32,
            out: Matrices::of(&relaid(
                &scores,
                Layout::new(
                    &[call.batch, call.heads, call.queries, call.keys],
                    scores.layout().strides(),
                    0,
                )?,
            )?),
            outer: call.batch,
            inner: call.heads,
            rows: call.queries,
            columns: call.keys,
            depth: call.depth,
        })?;
        let rows = call.batch * call.heads * call.queries;
        let [m_batch, m_head, m_row, m_key] = call.mask_strides();
        let mut numbers = [0u32; 30];
        let values = [
            call.heads,
            call.queries,
            call.keys,
            0, // row 0
            0,
            0,
            0,
            0, // row 1
            0,
            0,
            0,
            0, // row 2
            0,
            0,
            0,
            0, // row 3
            0,
            0,
            0,
            m_batch, // row 4
            m_head,
            m_row,
            m_key,
            0, // row 5
            pitch,
            0,
            0,
            score_pitch, // row 6
            0,
            rows, // row 7
        ];
        for (to, from) in numbers.iter_mut().zip(values) {
            *to = word(op, "a size or stride", from)?;
        }
        word(op, "the number of scores", scores.numel())?;
        let mask = call.mask.as_ref();
        let constants = [
            ("TYPE", float_code(op, "query", result.dtype())?),
            ("MASK_TYPE", call.mask_code()?),
            ("CAUSAL", u32::from(call.how.causal)),
        ];
        let launch = Launch {
            name: WEIGHTS.0,
            wgsl: WEIGHTS.1,
            constants: &constants,
            operands: &[
                Operand::write(result),
                Operand::read(&scores),
                Operand::read(&call.key),
                Operand::read(&call.value),
                Operand::read(mask.unwrap_or(&call.query)),
            ],
            groups: grid(op, rows as u64)?,
        };
        let mask_size = mask.map_or(1, |mask| mask.dtype().size() as u32);
        self.launch(launch, |offsets| {
            for (at, value) in [
                (18, start(offsets, 4, mask_size)),
                (23, start(offsets, 0, 4)),
                (26, start(offsets, 1, 4)),
            ] {
                if let Some(word) = numbers.get_mut(at) {
                    *word = value;
                }
            }
            params(&numbers)
        })
    }

    fn check_workgroup_memory(&self, op: &str) -> Result<()> {
        let Some(gpu) = self.gpu()? else { return Ok(()) };
        let most = gpu.limits().max_compute_workgroup_storage_size;
        if most < TILE_BYTES {
            return Err(Error::NotSupported(format!(
                "{op}: it takes {TILE_BYTES} bytes of workgroup memory, the device has {most}"
            )));
        }
        Ok(())
    }

    /// The tensor itself where the elements of a head follow each other, and otherwise a
    /// copy.
    fn with_dense_rows(&self, tensor: &Tensor) -> Result<Tensor> {
        match (tensor.strided_layout().strides(), tensor.sizes()) {
            ([.., 1], _) | (_, [.., 1]) => Ok(tensor.clone()),
            _ => self.dense_as(tensor, tensor.dtype()),
        }
    }

    /// Whether every row is of aligned vectors of four elements.
    fn has_quads(&self, tensor: &Tensor) -> bool {
        let layout = tensor.strided_layout();
        self.on_device(tensor)
            && layout.offset() % 4 == 0
            && layout.sizes().last().is_some_and(|size| size % 4 == 0)
            && strides(tensor).iter().all(|stride| stride % 4 == 0)
    }
}

/// What [`Runtime::attention_weights`] will give.
///
/// # Errors
/// [`Error::InvalidArgument`] where there are more than a tensor holds.
pub fn weights_layout(query: &Tensor, key: &Tensor) -> Result<Layout> {
    let [batch, heads, queries, _] = four(query);
    let [.., keys, _] = four(key);
    match query.sizes().len() {
        3 => Layout::contiguous(&[heads, queries, keys]),
        _ => Layout::contiguous(&[batch, heads, queries, keys]),
    }
}

/// Elements from row to row of a result.
fn pitch_of(result: &Tensor, columns: i64) -> i64 {
    match result.strided_layout().strides() {
        [.., row, _] => *row,
        _ => columns,
    }
}

/// Strides of batch, head and row; 0 where there is one of them.
fn strides(tensor: &Tensor) -> [i64; 3] {
    let [batch, head, row, _] = Matrices::of(tensor).strides;
    [batch, head, row]
}

impl<'a> Call<'a> {
    fn new(query: &Tensor, key: &Tensor, value: &Tensor, how: Attention<'a>) -> Result<Self> {
        let operator = "_scaled_dot_product_attention_math_for_mps";
        let rank = query.sizes().len();
        if !(3..=4).contains(&rank) {
            return Err(Error::NotSupported(format!(
                "{operator}: query is of sizes {:?}; 3 and 4 dimensions are supported",
                query.sizes()
            )));
        }
        float_code(operator, "query", query.dtype())?;
        let refuse = |argument, tensor: &Tensor, expected: String| {
            Error::invalid(
                argument,
                format_args!("of sizes {:?} and {}", tensor.sizes(), tensor.dtype()),
                format!("{operator} expects {expected}"),
            )
        };
        let [batch, heads, queries, depth] = four(query);
        for (argument, tensor) in [("key", key), ("value", value)] {
            let of = (tensor.sizes().len(), tensor.dtype());
            if of != (rank, query.dtype()) {
                let expected = format!("{rank} dimensions and {}", query.dtype());
                return Err(refuse(argument, tensor, expected));
            }
        }
        let [key_batch, key_heads, keys, key_depth] = four(key);
        if (key_batch, key_depth) != (batch, depth) {
            let expected = format!("a batch of {batch} and heads of {depth} elements");
            return Err(refuse("key", key, expected));
        }
        let [value_batch, value_heads, value_keys, columns] = four(value);
        if [value_batch, value_heads, value_keys] != [batch, key_heads, keys] {
            let expected = format!("a batch of {batch}, {key_heads} heads and {keys} keys");
            return Err(refuse("value", value, expected));
        }
        let fits = match how.grouped {
            true => key_heads > 0 && heads % key_heads == 0 || heads == key_heads,
            false => heads == key_heads,
        };
        if !fits {
            let expected = match how.grouped {
                true => format!("a number of heads that divides {heads}"),
                false => format!("{heads} heads"),
            };
            return Err(refuse("key", key, expected));
        }
        for (argument, tensor, size) in [("query", query, depth), ("value", value, columns)] {
            if size > LARGEST_HEAD {
                return Err(Error::NotSupported(format!(
                    "{operator}: {argument} is of sizes {:?}; heads of {LARGEST_HEAD} elements \
                     are the limit",
                    tensor.sizes()
                )));
            }
        }
        let mask = match how.mask {
            None => None,
            Some(mask) => {
                if mask.dtype() != DType::Bool {
                    float_code(operator, "attn_mask", mask.dtype())?;
                }
                let own = mask.strided_layout();
                let wanted = [batch, heads, queries, keys];
                let to = if rank == 3 { &wanted[1..] } else { &wanted[..] };
                let layout = own.broadcast_to(to).map_err(|_| {
                    refuse("attn_mask", mask, format!("sizes that broadcast to {to:?}"))
                })?;
                Some(relaid(mask, layout)?)
            }
        };
        let scale = how.scale.unwrap_or_else(|| 1.0 / (depth as f64).sqrt());
        Ok(Call {
            operator,
            query: query.clone(),
            key: key.clone(),
            value: value.clone(),
            mask,
            how,
            batch,
            heads,
            key_heads: key_heads.max(1),
            queries,
            keys,
            depth,
            columns,
            scale: if depth == 0 { 0.0 } else { scale },
            flat: rank == 3,
        })
    }

    fn mask_code(&self) -> Result<u32> {
        match &self.mask {
            None => Ok(4),
            Some(mask) if mask.dtype() == DType::Bool => Ok(3),
            Some(mask) => float_code(self.operator, "attn_mask", mask.dtype()),
        }
    }

    fn mask_strides(&self) -> [i64; 4] {
        self.mask.as_ref().map_or([0; 4], |mask| Matrices::of(mask).strides)
    }

    /// A result of four dimensions as the call's rank has it.
    fn shaped(&self, result: &Tensor) -> Result<Tensor> {
        match (self.flat, result.sizes()) {
            (true, [_, rest @ ..]) => relaid(result, Layout::contiguous(rest)?),
            _ => Ok(result.clone()),
        }
    }
}

/// Sizes with a batch of 1 where there is none.
fn four(tensor: &Tensor) -> [i64; 4] {
    match *tensor.sizes() {
        [batch, head, row, column] => [batch, head, row, column],
        [head, row, column] => [1, head, row, column],
        _ => [0; 4],
    }
}
