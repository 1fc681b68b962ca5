//! Elements by index tensors: `index`, `index_put`, `scatter_reduce`.
//!
//! All go in two steps: index tensors to positions in a dense tensor, 32 bits each, and
//! elements from or to these positions. An index that is out of range is the caller's
//! error, which a device cannot report: it reads zero and writes nothing.

use super::dense::relaid;
use super::dense::{axis, countable, grid, params, shader, start, word};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, contiguous_strides};
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const POSITIONS: (&str, &str) = ("index_positions", shader!("ops/index_positions.wgsl"));
const GATHER: (&str, &str) = ("index_gather", shader!("ops/index_gather.wgsl"));
const SCATTER: (&str, &str) = ("index_scatter", shader!("ops/index_scatter.wgsl"));
const DIVIDE: (&str, &str) = ("index_divide", shader!("ops/index_divide.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[POSITIONS, GATHER, SCATTER, DIVIDE];

/// The dimensions that a kernel takes apart.
const RANK: usize = 8;

/// How values that meet at one element are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// Their mean; of integers rounded down.
    Mean,
    /// The largest; NaN is larger than all.
    Largest,
    /// The smallest; NaN is smaller than all.
    Smallest,
}

impl Reduce {
    /// PyTorch's name of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for any other text.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "sum" => Reduce::Sum,
            "prod" => Reduce::Product,
            "mean" => Reduce::Mean,
            "amax" => Reduce::Largest,
            "amin" => Reduce::Smallest,
            _ => {
                let reason = "sum, prod, mean, amax and amin are what there is";
                return Err(Error::invalid("reduce", name, reason));
            }
        })
    }

    /// What changes no value.
    fn identity(self, dtype: DType) -> f64 {
        match (self, dtype) {
            (Reduce::Sum | Reduce::Mean, _) => 0.0,
            (Reduce::Product, _) => 1.0,
            (Reduce::Largest, DType::I32) => f64::from(i32::MIN),
            (Reduce::Largest, _) => f64::NEG_INFINITY,
            (Reduce::Smallest, DType::I32) => f64::from(i32::MAX),
            (Reduce::Smallest, _) => f64::INFINITY,
        }
    }

    fn mode(self) -> u32 {
        match self {
            Reduce::Sum | Reduce::Mean => 1,
            Reduce::Product => 2,
            Reduce::Largest => 3,
            Reduce::Smallest => 4,
        }
    }
}

/// An index tensor over a result's dimensions.
struct Index<'a> {
    tensor: &'a Tensor,
    /// Elements from one result coordinate to the next.
    strides: Dims,
    /// The dimension of the source that it indexes, and its stride.
    size: i64,
    stride: i64,
}

/// What indexing a tensor by others gives.
struct Plan {
    sizes: Dims,
    /// Source strides by the result's coordinates.
    strides: Dims,
    /// A dense index tensor, its strides by the result's coordinates, and its dimension.
    indices: Vec<(Tensor, Dims, usize)>,
}

impl Runtime {
    /// PyTorch's `self[indices]`: index i, where there is one, is for dimension i. Index
    /// tensors are int64 or int32, broadcast, and count from the end where negative. The
    /// broadcast sizes stand where the indexed dimensions were if these are neighbours,
    /// and in front otherwise. The result is contiguous.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more indices than dimensions, or sizes that do not
    /// broadcast; [`Error::NotSupported`] for masks and other dtypes of indices.
    pub fn index(&self, input: &Tensor, indices: &[Option<&Tensor>]) -> Result<Tensor> {
        const OPERATOR: &str = "index.Tensor";
        let plan = self.index_plan(OPERATOR, input, indices)?;
        let out = self.fresh(&plan.sizes, input.dtype)?;
        if out.numel() == 0 {
            return Ok(out);
        }
        if plan.indices.is_empty() {
            self.copy(&out, input, true)?;
            return Ok(out);
        }
        let positions = self.planned_positions(OPERATOR, input.sizes(), &plan)?;
        let source = self.dense(input, 4)?;
        self.gather_elements(OPERATOR, &out, &source, &positions)?;
        Ok(out)
    }

    /// PyTorch's `self.index_put(indices, values)`: a copy of the input with `values`,
    /// broadcast, at the indices, or added there. Of several values for one element any
    /// may stay; sums are added in any order, 16-bit ones in f32.
    ///
    /// # Errors
    /// As [`Runtime::index`]; [`Error::NotSupported`] for values of another dtype, and
    /// for dtypes that the kernels cannot add.
    pub fn index_put(
        &self,
        input: &Tensor,
        indices: &[Option<&Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        const OPERATOR: &str = "index_put";
        let plan = self.index_plan(OPERATOR, input, indices)?;
        if values.dtype != input.dtype {
            return Err(Error::NotSupported(format!(
                "{OPERATOR}: values is of {}, self of {}",
                values.dtype, input.dtype
            )));
        }
        let layout = values.layout.broadcast_to(&plan.sizes).map_err(|_| {
            Error::invalid(
                "values",
                format_args!("of sizes {:?}", values.sizes()),
                format!("{OPERATOR}: it does not broadcast to {:?}", plan.sizes.as_slice()),
            )
        })?;
        let values = relaid(values, layout)?;
        if plan.indices.is_empty() && !accumulate {
            let out = self.clone_tensor(input, false)?;
            self.copy(&out, &values, true)?;
            return Ok(out);
        }
        if plan.indices.is_empty() {
            return Err(Error::NotSupported(format!("{OPERATOR}: indices names no dimension")));
        }
        let mode = u32::from(accumulate);
        let (work, kind) = work_type(OPERATOR, input.dtype, mode)?;
        if values.numel() == 0 {
            return self.clone_tensor(input, false);
        }
        let positions = self.planned_positions(OPERATOR, input.sizes(), &plan)?;
        let result = self.dense_as(input, work)?;
        let values = self.dense_as(&values, work)?;
        self.scatter_elements(OPERATOR, &result, &positions, &values, mode, kind)?;
        let layout = input.layout.closed()?;
        if work == input.dtype && layout.is_contiguous() {
            return Ok(result);
        }
        let out = self.empty(layout, input.dtype, crate::tensor::DeviceType::Mps)?;
        self.copy(&out, &result, true)?;
        Ok(out)
    }

    /// PyTorch's `scatter_reduce`: each element of `src` within the sizes of `index` goes
    /// to where `index` says along `dim`. Without `include_self`, an element that some
    /// value reaches is made of these alone.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes that do not fit; [`Error::NotSupported`] for
    /// int64 but sums, and for dtypes that are not numbers of up to 32 bits.
    #[allow(clippy::too_many_arguments)] // The operator's own.
    pub fn scatter_reduce_out(
        &self,
        out: &Tensor,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        const OPERATOR: &str = "scatter_reduce.two_out";
        let axis = axis(dim, input.layout.rank())?;
        check_scatter(OPERATOR, out, input, index, src, axis)?;
        let (work, kind) = work_type(OPERATOR, input.dtype, reduce.mode())?;
        if kind == 2 && reduce == Reduce::Mean {
            return Err(Error::NotSupported(format!("{OPERATOR}: a mean of int64")));
        }
        let result = self.dense_as(input, work)?;
        if index.numel() > 0 {
            let index_layout = Layout::contiguous(index.sizes())?;
            let mut strides = contiguous_strides(input.sizes())?;
            let stride = strides.get_mut(axis).map_or(1, std::mem::take);
            let positions = self.positions(
                OPERATOR,
                index.sizes(),
                &strides,
                &[Index {
                    tensor: &self.dense_index(OPERATOR, "index", index)?,
                    strides: index_layout.strides().into(),
                    size: input.sizes().get(axis).copied().unwrap_or(1),
                    stride,
                }],
            )?;
            let part = Layout::new(index.sizes(), src.layout.strides(), src.layout.offset())?;
            let values = self.dense_as(&relaid(src, part)?, work)?;
            let scatter = |result: &Tensor, values: &Tensor, mode, kind| {
                self.scatter_elements(OPERATOR, result, &positions, values, mode, kind)
            };
            if !include_self {
                let identity = self.fresh(index.sizes(), work)?;
                self.fill_scalar(&identity, reduce.identity(work))?;
                scatter(&result, &identity, 0, kind)?;
            }
            scatter(&result, &values, reduce.mode(), kind)?;
            if reduce == Reduce::Mean {
                let counts = self.fresh(input.sizes(), DType::I32)?;
                self.fill_scalar(&counts, f64::from(u8::from(include_self)))?;
                let ones = self.fresh(index.sizes(), DType::I32)?;
                self.fill_scalar(&ones, 1.0)?;
                scatter(&counts, &ones, 1, 1)?;
                self.divide(OPERATOR, &result, &counts, kind)?;
            }
        }
        self.copy(out, &result, true)
    }

    /// Sets every element to a number, converted to the tensor's type.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a dtype that is no number.
    pub fn fill_scalar(&self, tensor: &Tensor, value: f64) -> Result<()> {
        let bytes = value.to_ne_bytes();
        let number = self.from_bytes(&bytes, &[], DType::F64, crate::tensor::DeviceType::Cpu)?;
        let one = self.empty(Layout::contiguous(&[])?, tensor.dtype, tensor.device())?;
        self.copy(&one, &number, true)?;
        self.copy(tensor, &one, true)
    }

    /// Elements of a dense source at `positions` to a contiguous `out`.
    pub(super) fn gather_elements(
        &self,
        operator: &'static str,
        out: &Tensor,
        source: &Tensor,
        positions: &Tensor,
    ) -> Result<()> {
        let size = out.dtype.size() as i64;
        countable(operator, "self", source)?;
        let elements = word(operator, "the result", out.numel())?;
        let words =
            word(operator, "the result", out.numel().saturating_mul(size).saturating_add(3) / 4)?;
        word(operator, "self", source.numel().saturating_mul(size) / 4)?;
        let limit = word(operator, "self", source.numel())?;
        self.launch(
            Launch {
                name: GATHER.0,
                wgsl: GATHER.1,
                constants: &[("SIZE", size as u32)],
                operands: &[Operand::write(out), Operand::read(positions), Operand::read(source)],
                groups: grid(operator, u64::from(words).div_ceil(256))?,
            },
            |at| {
                let [out, positions, source] = [0, 1, 2].map(|i| start(at, i, 4));
                params(&[words, elements, limit, out, positions, source])
            },
        )
    }

    fn scatter_elements(
        &self,
        operator: &'static str,
        result: &Tensor,
        positions: &Tensor,
        values: &Tensor,
        mode: u32,
        kind: u32,
    ) -> Result<()> {
        let count = word(operator, "values", values.numel())?;
        let limit = word(operator, "self", result.numel())?;
        self.launch(
            Launch {
                name: SCATTER.0,
                wgsl: SCATTER.1,
                constants: &[("MODE", mode), ("KIND", kind)],
                operands: &[
                    Operand::write(result),
                    Operand::read(positions),
                    Operand::read(values),
                ],
                groups: grid(operator, u64::from(count).div_ceil(256))?,
            },
            |at| {
                let [result, positions, values] = [0, 1, 2].map(|i| start(at, i, 4));
                params(&[count, limit, result, positions, values])
            },
        )
    }

    fn divide(
        &self,
        operator: &'static str,
        sums: &Tensor,
        counts: &Tensor,
        kind: u32,
    ) -> Result<()> {
        let count = word(operator, "self", sums.numel())?;
        self.launch(
            Launch {
                name: DIVIDE.0,
                wgsl: DIVIDE.1,
                constants: &[("KIND", kind)],
                operands: &[Operand::write(sums), Operand::read(counts)],
                groups: grid(operator, u64::from(count).div_ceil(256))?,
            },
            |at| params(&[count, start(at, 0, 4), start(at, 1, 4)]),
        )
    }

    fn dense_index(
        &self,
        operator: &str,
        argument: &'static str,
        index: &Tensor,
    ) -> Result<Tensor> {
        if !matches!(index.dtype, DType::I64 | DType::I32) {
            return Err(Error::NotSupported(format!(
                "{operator}: {argument} is of {}; int64 and int32 are supported",
                index.dtype
            )));
        }
        self.dense(index, 8)
    }

    fn index_plan(
        &self,
        operator: &'static str,
        input: &Tensor,
        indices: &[Option<&Tensor>],
    ) -> Result<Plan> {
        let rank = input.layout.rank();
        if indices.len() > rank {
            let found = format!("{} tensors", indices.len());
            return Err(Error::invalid("indices", found, format!("self has {rank} dimensions")));
        }
        let mut shape = Dims::new();
        for index in indices.iter().flatten() {
            shape = broadcast(&shape, index.sizes())?;
        }
        let indexed: Vec<usize> =
            (0..indices.len()).filter(|&d| matches!(indices.get(d), Some(Some(_)))).collect();
        let neighbours = indexed.windows(2).all(|pair| matches!(pair, &[a, b] if b == a + 1));
        let front = match indexed.first() {
            Some(&first) if neighbours => first,
            _ => 0,
        };
        let own = contiguous_strides(input.sizes())?;
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        let kept: Vec<usize> = (0..rank).filter(|d| !indexed.contains(d)).collect();
        let place = |dims: &[usize], sizes: &mut Dims, strides: &mut Dims| {
            for &d in dims {
                sizes.extend(input.sizes().get(d).copied());
                strides.extend(own.get(d).copied());
            }
        };
        let (before, behind) = kept.split_at(front.min(kept.len()));
        place(before, &mut sizes, &mut strides);
        let at = sizes.len();
        sizes.extend(shape.iter().copied());
        strides.extend(shape.iter().map(|_| 0));
        place(behind, &mut sizes, &mut strides);
        let mut list = Vec::new();
        for (d, index) in indices.iter().enumerate() {
            let Some(index) = index else { continue };
            let dense = self.dense_index(operator, "indices", index)?;
            let spread = dense.layout.broadcast_to(&shape)?;
            let mut over = Dims::from_elem(0, sizes.len());
            for (to, &stride) in over.iter_mut().skip(at).zip(spread.strides()) {
                *to = stride;
            }
            list.push((dense, over, d));
        }
        Ok(Plan { sizes, strides, indices: list })
    }

    fn planned_positions(
        &self,
        operator: &'static str,
        source: &[i64],
        plan: &Plan,
    ) -> Result<Tensor> {
        let own = contiguous_strides(source)?;
        let indices: Vec<Index<'_>> = plan
            .indices
            .iter()
            .map(|(tensor, strides, d)| Index {
                tensor,
                strides: strides.clone(),
                size: source.get(*d).copied().unwrap_or(1),
                stride: own.get(*d).copied().unwrap_or(1),
            })
            .collect();
        self.positions(operator, &plan.sizes, &plan.strides, &indices)
    }

    /// Positions for a result of `sizes`, at least one of which is not empty.
    fn positions(
        &self,
        operator: &'static str,
        sizes: &[i64],
        strides: &[i64],
        indices: &[Index<'_>],
    ) -> Result<Tensor> {
        if sizes.len() > RANK {
            return Err(Error::NotSupported(format!(
                "{operator}: a result of {} dimensions; {RANK} are the limit",
                sizes.len()
            )));
        }
        let numel = Layout::contiguous(sizes)?.numel();
        let count = word(operator, "the result", numel)?;
        let positions = self.fresh(&[numel], DType::U32)?;
        let spread = |values: &[i64], rest: u32| -> Result<[u32; RANK]> {
            let mut words = [rest; RANK];
            let lead = RANK - values.len();
            for (to, &value) in words.iter_mut().skip(lead).zip(values) {
                *to = word(operator, "a size or stride", value)?;
            }
            Ok(words)
        };
        let sizes = spread(sizes, 1)?;
        for (i, index) in indices.iter().enumerate() {
            let source = if i == 0 { spread(strides, 0)? } else { [0; RANK] };
            let own = spread(&index.strides, 0)?;
            let size = word(operator, "self", index.size)?;
            let stride = word(operator, "self", index.stride)?;
            let element = index.tensor.dtype.size() as u32;
            self.launch(
                Launch {
                    name: POSITIONS.0,
                    wgsl: POSITIONS.1,
                    constants: &[("LONG", u32::from(element == 8))],
                    operands: &[Operand::write(&positions), Operand::read(index.tensor)],
                    groups: grid(operator, u64::from(count).div_ceil(256))?,
                },
                |at| {
                    let mut words = params(&[]);
                    words.clear();
                    words.extend_from_slice(&sizes);
                    words.extend_from_slice(&own);
                    words.extend_from_slice(&source);
                    words.extend_from_slice(&[
                        count,
                        start(at, 0, 4),
                        start(at, 1, element),
                        size,
                        stride,
                        u32::from(i > 0),
                    ]);
                    params(&words)
                },
            )?;
        }
        Ok(positions)
    }
}

/// The type in which values are put together, and the kernel's kind of it.
fn work_type(operator: &str, dtype: DType, mode: u32) -> Result<(DType, u32)> {
    Ok(match dtype {
        DType::F32 | DType::F16 | DType::BF16 => (DType::F32, 0),
        DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => (DType::I32, 1),
        DType::I64 if mode <= 1 => (DType::I64, 2),
        DType::F64 | DType::U64 | DType::C64 if mode == 0 => (dtype, 3),
        _ => {
            return Err(Error::NotSupported(format!(
                "{operator}: self is of {dtype}, for which this reduction does not exist"
            )));
        }
    })
}

fn broadcast(a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let at = |sizes: &[i64], d: usize| {
        (d + sizes.len()).checked_sub(rank).and_then(|d| sizes.get(d)).copied().unwrap_or(1)
    };
    (0..rank)
        .map(|d| match (at(a, d), at(b, d)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::invalid(
                "indices",
                format_args!("of sizes {a:?} and {b:?}"),
                "they do not broadcast",
            )),
        })
        .collect()
}

fn check_scatter(
    operator: &str,
    out: &Tensor,
    input: &Tensor,
    index: &Tensor,
    src: &Tensor,
    axis: usize,
) -> Result<()> {
    let refuse = |name, tensor: &Tensor, reason: &str| {
        let found = format!("of sizes {:?}", tensor.sizes());
        Err(Error::invalid(name, found, format!("{operator}: {reason}")))
    };
    if out.sizes() != input.sizes() {
        return refuse("out", out, "self's are expected");
    }
    for (name, tensor) in [("out", out), ("src", src)] {
        if tensor.dtype != input.dtype {
            return Err(Error::NotSupported(format!(
                "{operator}: {name} is of {}, self of {}",
                tensor.dtype, input.dtype
            )));
        }
    }
    if index.numel() == 0 {
        return Ok(());
    }
    let rank = input.layout.rank();
    if index.layout.rank() != rank || src.layout.rank() != rank {
        return refuse("index", index, "self, index and src have one number of dimensions");
    }
    for (d, ((&size, &of_src), &own)) in
        index.sizes().iter().zip(src.sizes()).zip(input.sizes()).enumerate()
    {
        if size > of_src {
            return refuse("index", index, "it is larger than src");
        }
        if d != axis && size > own {
            return refuse("index", index, "it is larger than self");
        }
    }
    Ok(())
}
