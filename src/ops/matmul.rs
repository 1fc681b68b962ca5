//! Matrix products: `mm`, `bmm`, `addmm`, `baddbmm`, and what convolution and attention
//! make of them.
//!
//! Operands are read where they lie, by a row and a column stride. Of the kernels,
//! `matvec_*` read a matrix once for up to four rows, and `matmul_tile` is for the rest;
//! a grid that would leave the device idle is split along the depth, and
//! `matmul_finish` adds the parts up, always in one order.

use super::dense::{float_code, grid, shader, word};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::{DeviceType, Tensor};
use smallvec::SmallVec;

const TILE: (&str, &str) = (
    "matmul_tile",
    shader!(
        "half.wgsl",
        "ops/vectors.wgsl",
        "ops/matmul_common.wgsl",
        "ops/matmul_tile.wgsl",
        "ops/matmul_operands.wgsl"
    ),
);
const FINISH: (&str, &str) = (
    "matmul_finish",
    shader!("half.wgsl", "ops/vectors.wgsl", "ops/matmul_common.wgsl", "ops/matmul_finish.wgsl"),
);
const WIDE: (&str, &str) = (
    "matvec_wide",
    shader!(
        "half.wgsl",
        "ops/vectors.wgsl",
        "ops/matmul_common.wgsl",
        "ops/matvec_common.wgsl",
        "ops/matvec_wide.wgsl"
    ),
);
const DEEP: (&str, &str) = (
    "matvec_deep",
    shader!(
        "half.wgsl",
        "ops/vectors.wgsl",
        "ops/matmul_common.wgsl",
        "ops/matvec_common.wgsl",
        "ops/matvec_deep.wgsl"
    ),
);

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[TILE, FINISH, WIDE, DEEP];

/// Matrices in a tensor's storage: where element (outer, inner, row, column) lies, the
/// first two counting a batch. Strides in elements, from the tensor's own offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrices<'a> {
    pub tensor: &'a Tensor,
    pub strides: [i64; 4],
}

impl<'a> Matrices<'a> {
    /// The last four dimensions of a tensor; those that it lacks have one index.
    pub fn of(tensor: &'a Tensor) -> Self {
        let mut strides = [0; 4];
        let own = tensor.strided_layout();
        for ((to, &size), &from) in
            strides.iter_mut().rev().zip(own.sizes().iter().rev()).zip(own.strides().iter().rev())
        {
            *to = if size == 1 { 0 } else { from };
        }
        Matrices { tensor, strides }
    }

    fn transposed(self) -> Self {
        let [outer, inner, row, column] = self.strides;
        Matrices { strides: [outer, inner, column, row], ..self }
    }

    /// Whether every matrix and row starts at a multiple of `unit` elements.
    fn aligned(&self, unit: i64, along_rows: bool) -> bool {
        let [outer, inner, row, column] = self.strides;
        let other = if along_rows { row } else { column };
        // Host memory is mirrored from wherever it starts.
        self.tensor.storage.buffer().is_some()
            && [self.tensor.strided_layout().offset(), outer, inner, other]
                .iter()
                .all(|n| n % unit == 0)
    }
}

/// `out = alpha a b + beta addend`, for every matrix of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<'a> {
    /// The operator's name, for messages.
    pub operator: &'static str,
    /// Of rows by depth.
    pub a: Matrices<'a>,
    /// Of depth by columns.
    pub b: Matrices<'a>,
    /// How many inner indices share a matrix of b.
    pub b_shared_by: i64,
    /// Of rows by columns, and beta.
    pub addend: Option<(Matrices<'a>, f32)>,
    pub alpha: f32,
    /// Of rows by columns.
    pub out: Matrices<'a>,
    pub outer: i64,
    pub inner: i64,
    pub rows: i64,
    pub columns: i64,
    pub depth: i64,
}

/// One operand of a tiled product is not in memory as a matrix: the shader makes its
/// elements from a tensor's. The other one is dense along the depth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gather<'a> {
    /// Instead of `matmul_tile`.
    pub shader: (&'static str, &'static str),
    /// The shader's own.
    pub constants: &'a [(&'static str, u32)],
    /// Whether a is made, rather than b.
    pub of_rows: bool,
    /// What the shader says of them.
    pub words: [u32; 9],
}

/// Workgroups that fill a large device once or twice.
const FULL: i64 = 264;
/// Workgroups that fill it for work bound by memory.
const FULL_OF_LOADS: i64 = 1024;
/// Rows that the matrix-vector kernels take.
const FEW: i64 = 4;
/// The most bytes of partial products.
const PARTIAL_BYTES: i64 = 64 << 20;

impl Runtime {
    /// `out = a b`: out of sizes (m, n), a of (m, k), b of (k, n), all of one type.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other sizes, [`Error::NotSupported`] for other types
    /// than f32, f16 and bf16.
    pub fn mm_out(&self, out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
        self.product("mm_out", 2, out, None, [("self", a), ("mat2", b)], 1.0)
    }

    /// As [`Runtime::mm_out`], matrix by matrix: every tensor has the batch's size before.
    ///
    /// # Errors
    /// As [`Runtime::mm_out`].
    pub fn bmm_out(&self, out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
        self.product("bmm_out", 3, out, None, [("self", a), ("mat2", b)], 1.0)
    }

    /// `out = beta addend + alpha a b`, the addend broadcast to out's sizes, and not read
    /// where beta is 0.
    ///
    /// # Errors
    /// As [`Runtime::mm_out`].
    pub fn addmm_out(
        &self,
        out: &Tensor,
        addend: &Tensor,
        a: &Tensor,
        b: &Tensor,
        beta: f64,
        alpha: f64,
    ) -> Result<()> {
        let addend = Some((addend, beta));
        self.product("addmm_out", 2, out, addend, [("mat1", a), ("mat2", b)], alpha)
    }

    /// As [`Runtime::addmm_out`], matrix by matrix.
    ///
    /// # Errors
    /// As [`Runtime::mm_out`].
    pub fn baddbmm_out(
        &self,
        out: &Tensor,
        addend: &Tensor,
        a: &Tensor,
        b: &Tensor,
        beta: f64,
        alpha: f64,
    ) -> Result<()> {
        let addend = Some((addend, beta));
        self.product("baddbmm_out", 3, out, addend, [("batch1", a), ("batch2", b)], alpha)
    }

    fn product(
        &self,
        operator: &'static str,
        rank: usize,
        out: &Tensor,
        addend: Option<(&Tensor, f64)>,
        [(a_name, a), (b_name, b)]: [(&'static str, &Tensor); 2],
        alpha: f64,
    ) -> Result<()> {
        let refuse = |argument, tensor: &Tensor, expected: String| {
            Error::invalid(
                argument,
                format_args!("of sizes {:?} and {}", tensor.sizes(), tensor.dtype()),
                format!("{operator} expects {expected}"),
            )
        };
        float_code(operator, a_name, a.dtype())?;
        let (&[.., rows, depth], true) = (a.sizes(), a.sizes().len() == rank) else {
            return Err(refuse(a_name, a, format!("{rank} dimensions")));
        };
        let batch = if rank == 3 { a.sizes().first().copied().unwrap_or(1) } else { 1 };
        let lead = if rank == 3 { &[batch][..] } else { &[] };
        let columns = b.sizes().last().copied().unwrap_or(0);
        let sizes =
            |of: [i64; 2]| -> SmallVec<[i64; 3]> { lead.iter().copied().chain(of).collect() };
        for (name, tensor, wanted) in
            [(b_name, b, sizes([depth, columns])), ("out", out, sizes([rows, columns]))]
        {
            if tensor.sizes() != wanted.as_slice() || tensor.dtype() != a.dtype() {
                return Err(refuse(name, tensor, format!("sizes {wanted:?} and {}", a.dtype())));
            }
        }
        let broadcast;
        let addend = match addend {
            None | Some((_, 0.0)) => None,
            Some((tensor, beta)) => {
                if tensor.dtype() != a.dtype() {
                    return Err(refuse("self", tensor, format!("{}", a.dtype())));
                }
                let layout = tensor.strided_layout().broadcast_to(out.sizes()).map_err(|_| {
                    refuse("self", tensor, format!("sizes that broadcast to {:?}", out.sizes()))
                })?;
                broadcast = Tensor::new(tensor.storage.clone(), layout, tensor.dtype())?;
                Some((Matrices::of(&broadcast), beta as f32))
            }
        };
        self.multiply(&Product {
            operator,
            a: Matrices::of(a),
            b: Matrices::of(b),
            b_shared_by: 1,
            addend,
            alpha: alpha as f32,
            out: Matrices::of(out),
            outer: 1,
            inner: batch,
            rows,
            columns,
            depth,
        })
    }

    /// Any product: out may be of any strides and share memory with the operands.
    pub(crate) fn multiply(&self, product: &Product<'_>) -> Result<()> {
        self.multiply_gathered(product, None)
    }

    /// As [`Runtime::multiply`]; the strides of an operand that is made are not looked at.
    pub(crate) fn multiply_gathered(
        &self,
        product: &Product<'_>,
        gather: Option<&Gather<'_>>,
    ) -> Result<()> {
        let p = product;
        if [p.outer, p.inner, p.rows, p.columns].contains(&0) {
            return Ok(());
        }
        let few = p.columns <= FEW && p.rows > FEW;
        let turned = few && p.b_shared_by == 1 && gather.is_none();
        let turned = Product {
            a: if turned { p.b.transposed() } else { p.a },
            b: if turned { p.a.transposed() } else { p.b },
            addend: p.addend.map(|(m, beta)| (if turned { m.transposed() } else { m }, beta)),
            out: if turned { p.out.transposed() } else { p.out },
            rows: if turned { p.columns } else { p.rows },
            columns: if turned { p.rows } else { p.columns },
            ..*p
        };
        let p = &turned;
        let reads = [Some(p.a), Some(p.b), p.addend.map(|(m, _)| m)];
        let out = p.out;
        let row_dense = out.strides[3] == 1 || p.columns == 1;
        let quads = row_dense && out.aligned(4, true) && p.columns % 4 == 0;
        let direct = row_dense
            && (quads || out.tensor.dtype() == DType::F32)
            && !out.tensor.strided_layout().overlaps()
            && !reads.iter().flatten().any(|m| share_memory(m.tensor, out.tensor));
        if direct {
            return self.multiply_into(p, gather, quads);
        }
        let pitch = p.columns.div_euclid(4) * 4 + if p.columns % 4 == 0 { 0 } else { 4 };
        let sizes = [p.outer, p.inner, p.rows, p.columns];
        let dense = strides_of([p.outer, p.inner, p.rows, pitch]);
        let whole = Layout::contiguous(&[p.outer, p.inner, p.rows, pitch])?;
        let between = self.empty(whole, out.tensor.dtype(), DeviceType::Mps)?;
        self.multiply_into(
            &Product { out: Matrices { tensor: &between, strides: dense }, ..*p },
            gather,
            true,
        )?;
        let from = Layout::new(&sizes, &dense, 0)?;
        let to = Layout::new(&sizes, &out.strides, out.tensor.strided_layout().offset())?;
        let to = Tensor::new(out.tensor.storage.clone(), to, out.tensor.dtype())?;
        let from = Tensor::new(between.storage.clone(), from, between.dtype())?;
        self.copy(&to, &from, true)
    }

    /// A product into memory of its own, whose columns follow each other; `quads` as
    /// `OUT_QUADS` in the shaders.
    fn multiply_into(
        &self,
        p: &Product<'_>,
        gather: Option<&Gather<'_>>,
        quads: bool,
    ) -> Result<()> {
        let invocations = self.gpu()?.map_or(256, |gpu| gpu.max_invocations());
        let plan = Plan::new(p, gather, invocations)?;
        if plan.splits == 1 {
            return self.run_product(p, gather, &plan, quads);
        }
        let pitch = (p.columns + 3) / 4 * 4;
        let batch = p.outer * p.inner;
        let layout = Layout::contiguous(&[plan.splits, batch, p.rows, pitch])?;
        let parts = self.empty(layout, DType::F32, DeviceType::Mps)?;
        let strides = strides_of([p.outer, p.inner, p.rows, pitch]);
        let parts = Matrices { tensor: &parts, strides };
        let part = Product { addend: None, alpha: 1.0, out: parts, ..*p };
        self.run_product(&part, gather, &plan, true)?;
        let finish = Product { a: parts, b: parts, ..*p };
        let items = batch * p.rows * (pitch / 4);
        let plan = Plan {
            shader: FINISH,
            constants: SmallVec::new(),
            groups: (items as u64).div_ceil(256),
            used: items,
            ..plan
        };
        self.run_product(&finish, None, &plan, quads)
    }

    fn run_product(
        &self,
        p: &Product<'_>,
        gather: Option<&Gather<'_>>,
        plan: &Plan,
        quads: bool,
    ) -> Result<()> {
        let op = p.operator;
        let mut constants = plan.constants.clone();
        constants.push(("A_TYPE", float_code(op, "self", p.a.tensor.dtype())?));
        constants.push(("B_TYPE", float_code(op, "mat2", p.b.tensor.dtype())?));
        constants.push(("OUT_TYPE", float_code(op, "out", p.out.tensor.dtype())?));
        let addend_code = match p.addend {
            Some((m, _)) => float_code(op, "self", m.tensor.dtype())?,
            None => 3,
        };
        constants.push(("ADDEND_TYPE", addend_code));
        constants.push(("OUT_QUADS", u32::from(quads)));
        let (addend, beta) = p.addend.unwrap_or((p.a, 0.0));
        let operands = [p.out, p.a, p.b, addend];
        let mut strides = [[0u32; 4]; 4];
        for (to, matrices) in strides.iter_mut().zip(&operands) {
            word(op, "an operand's end", matrices.tensor.strided_layout().end())?;
            for (to, &stride) in to.iter_mut().zip(&matrices.strides) {
                *to = word(op, "a stride", stride)?;
            }
        }
        let pitch = (p.columns + 3) / 4 * 4;
        let split_stride = p.outer * p.inner * p.rows * pitch;
        let sizes = [p.rows, p.columns, p.depth, p.inner, p.b_shared_by];
        let mut numbers = [0u32; 5];
        for (to, &size) in numbers.iter_mut().zip(&sizes) {
            *to = word(op, "a size", size)?;
        }
        let [rows, columns, depth, inner, shared_by] = numbers;
        let split_depth = word(op, "a size", plan.split_depth)?;
        let splits = word(op, "splits", plan.splits)?;
        let split_stride =
            if plan.splits > 1 { word(op, "the partial products' size", split_stride)? } else { 0 };
        let used = word(op, "the number of workgroups", plan.used)?;
        let (name, wgsl) = plan.shader;
        let launch = Launch {
            name,
            wgsl,
            constants: &constants,
            operands: &[
                Operand::write(p.out.tensor),
                Operand::read(p.a.tensor),
                Operand::read(p.b.tensor),
                Operand::read(addend.tensor),
            ],
            groups: grid(op, plan.groups)?,
        };
        self.launch(launch, |offsets| {
            let mut at = [0u32; 4];
            for ((to, &bytes), matrices) in at.iter_mut().zip(offsets).zip(&operands) {
                *to = bytes / matrices.tensor.dtype().size() as u32;
            }
            let [o, a, b, s] = strides;
            let mut params: SmallVec<[u32; 32]> = SmallVec::new();
            params.extend_from_slice(&[rows, columns, depth, inner]);
            if let Some(gather) = gather {
                let [dense, made] = if gather.of_rows { [at[2], at[1]] } else { [at[1], at[2]] };
                let per_inner = if gather.of_rows { b[1] } else { a[1] };
                params.extend_from_slice(&[dense, per_inner, made]);
                params.extend_from_slice(&gather.words);
            } else {
                params.extend_from_slice(&[at[1], a[0], a[1], a[2]]);
                params.extend_from_slice(&[a[3], at[2], b[0], b[1]]);
                params.extend_from_slice(&[b[2], b[3], shared_by, 0]);
            }
            params.extend_from_slice(&[at[3], s[0], s[1], s[2]]);
            params.extend_from_slice(&[s[3], at[0], o[0], o[1]]);
            params.extend_from_slice(&[o[2], p.alpha.to_bits(), beta.to_bits(), split_depth]);
            params.extend_from_slice(&[splits, split_stride, used, 0]);
            params
        })
    }
}

/// Row-major strides of four sizes.
fn strides_of([_, inner, rows, columns]: [i64; 4]) -> [i64; 4] {
    [inner * rows * columns, rows * columns, columns, 1]
}

/// Whether writing one could change the other: their extents meet.
fn share_memory(one: &Tensor, other: &Tensor) -> bool {
    let range = |t: &Tensor| {
        let layout = t.strided_layout();
        let start = t.plain_address() as u64;
        (start, start.saturating_add((layout.extent() as u64) * t.dtype().size() as u64))
    };
    let ((a_start, a_end), (b_start, b_end)) = (range(one), range(other));
    a_start < b_end && b_start < a_end
}

/// Which kernel makes a product, and how it is cut up.
struct Plan {
    shader: (&'static str, &'static str),
    constants: SmallVec<[(&'static str, u32); 12]>,
    groups: u64,
    /// What the shader counts: workgroups, or items.
    used: i64,
    splits: i64,
    split_depth: i64,
}

impl Plan {
    fn new(p: &Product<'_>, gather: Option<&Gather<'_>>, invocations: u32) -> Result<Self> {
        if let Some(gather) = gather {
            let (side, blocks) = tile_side(p);
            let mut plan = Self::cut(p, gather.shader, gather.constants, blocks, FULL, 256);
            plan.constants.push(("TILE", side as u32));
            return Ok(plan);
        }
        let wide = p.b.strides[3] == 1 || p.columns == 1;
        let deep = (p.b.strides[2] == 1 || p.depth == 1)
            && p.a.tensor.dtype() == p.b.tensor.dtype()
            && !(p.columns > 1 && p.b.strides[3] == 1);
        match p.rows {
            ..=FEW if deep => Self::deep(p),
            ..=FEW if wide => Self::wide(p, invocations),
            _ => Self::tile(p),
        }
    }

    fn cut(
        p: &Product<'_>,
        shader: (&'static str, &'static str),
        constants: &[(&'static str, u32)],
        blocks: i64,
        full: i64,
        least_depth: i64,
    ) -> Self {
        let batch = p.outer * p.inner;
        let bytes = (batch * p.rows).saturating_mul((p.columns + 3) / 4 * 16);
        let most = (p.depth / least_depth).min(PARTIAL_BYTES / bytes.max(1)).min(32);
        let wanted = (full / (blocks * batch).max(1)).min(most).max(1);
        // Every part but the last one is of whole steps of every kernel.
        let split_depth = (p.depth.max(1) + wanted - 1) / wanted;
        let split_depth = (split_depth + 15) / 16 * 16;
        let splits = ((p.depth + split_depth - 1) / split_depth).max(1);
        let used = blocks * batch * splits;
        Plan { shader, constants: constants.into(), groups: used as u64, used, splits, split_depth }
    }

    fn wide(p: &Product<'_>, invocations: u32) -> Result<Self> {
        let unit = unit_of(p.b.tensor.dtype());
        let units = p.b.strides[3] == 1 && p.columns % unit == 0 && p.b.aligned(unit, true);
        // Wide rows of 16-bit elements have half as many workgroups; larger ones do without
        // a second pass over parts of the depth.
        let (threads, across, full) = match (unit, invocations) {
            (8, 512..) => (512, 8, FULL),
            (8, _) => (256, 4, FULL_OF_LOADS / 2),
            _ => (256, 8, FULL_OF_LOADS),
        };
        let constants = [
            ("ROWS", p.rows as u32),
            ("UNITS", u32::from(units)),
            ("THREADS", threads),
            ("ACROSS", across as u32),
        ];
        let blocks = (p.columns + across * unit - 1) / (across * unit);
        Ok(Self::cut(p, WIDE, &constants, blocks, full, 512))
    }

    fn deep(p: &Product<'_>) -> Result<Self> {
        let unit = unit_of(p.b.tensor.dtype());
        let units = p.b.strides[2] == 1
            && (p.a.strides[3] == 1 || p.depth == 1)
            && p.depth % unit == 0
            && p.b.aligned(unit, false)
            && p.a.aligned(unit, true);
        let constants = [("ROWS", p.rows as u32), ("UNITS", u32::from(units))];
        Ok(Self::cut(p, DEEP, &constants, (p.columns + 15) / 16, FULL / 2, 1024))
    }

    fn tile(p: &Product<'_>) -> Result<Self> {
        let (side, blocks) = tile_side(p);
        let [_, _, a_row, a_column] = p.a.strides;
        let [_, _, b_row, b_column] = p.b.strides;
        let a_deep = a_row != 1 || a_column == 1;
        let b_deep = b_column != 1 && b_row == 1;
        let a_quads = match a_deep {
            true => a_column == 1 && p.depth % 4 == 0 && p.a.aligned(4, true),
            false => p.rows % 4 == 0 && p.a.aligned(4, false),
        };
        let b_quads = match b_deep {
            true => p.depth % 4 == 0 && p.b.aligned(4, false),
            false => b_column == 1 && p.columns % 4 == 0 && p.b.aligned(4, true),
        };
        let constants = [
            ("TILE", side as u32),
            ("A_DEEP", u32::from(a_deep)),
            ("B_DEEP", u32::from(b_deep)),
            ("A_QUADS", u32::from(a_quads)),
            ("B_QUADS", u32::from(b_quads)),
        ];
        Ok(Self::cut(p, TILE, &constants, blocks, FULL, 256))
    }
}

/// Elements in 16 bytes.
fn unit_of(dtype: DType) -> i64 {
    if dtype == DType::F32 { 4 } else { 8 }
}

/// The tiles' side, and how many there are of a matrix: large ones where they, with the
/// depth split, still fill the device.
pub(crate) fn tile_side(p: &Product<'_>) -> (i64, i64) {
    let tiles = |side: i64| ((p.rows + side - 1) / side) * ((p.columns + side - 1) / side);
    let batch = p.outer * p.inner;
    let large = tiles(128) * batch * (p.depth / 256).clamp(1, 32);
    if p.rows > 64 && p.columns > 64 && large >= FULL / 2 {
        (128, tiles(128))
    } else {
        (64, tiles(64))
    }
}
