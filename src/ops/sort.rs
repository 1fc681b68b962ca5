//! `sort` and `topk`: a stable bitonic sort of keys, and the elements gathered by it.
//!
//! NaN is greater than every number and equal to itself, as in PyTorch; so is the one
//! zero. Equal elements keep their order, also where the greatest come first.

use super::dense::{axis, countable, grid, moved_last, params, relaid, shader, start, word};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const KEYS: (&str, &str) = ("sort_keys", shader!("ops/sort_keys.wgsl"));
const LOCAL: (&str, &str) = ("sort_local", shader!("ops/sort_local.wgsl"));
const STEP: (&str, &str) = ("sort_step", shader!("ops/sort_step.wgsl"));
const PLACES: (&str, &str) = ("sort_places", shader!("ops/sort_places.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[KEYS, LOCAL, STEP, PLACES];

/// Places that one workgroup sorts.
const SPAN: u32 = 1024;

impl Runtime {
    /// PyTorch's `sort` along `dim`, stable: values in the order of the input's strides,
    /// and their int64 indices.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dimension that is not there;
    /// [`Error::NotSupported`] for dtypes without an order here, and for more elements
    /// than a kernel counts.
    pub fn sort(&self, input: &Tensor, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
        let axis = axis(dim, input.layout.rank())?;
        let count = input.sizes().get(axis).copied().unwrap_or(1);
        let layout = input.layout.closed()?;
        self.ranked("sort", input, axis, count, descending, layout)
    }

    /// PyTorch's `topk` along `dim`: the `k` largest or smallest elements, always in
    /// order, and their int64 indices; both contiguous. Of equal ones the first come.
    ///
    /// # Errors
    /// As [`Runtime::sort`], and for a `k` that is negative or above the size.
    pub fn topk(
        &self,
        input: &Tensor,
        k: i64,
        dim: i64,
        largest: bool,
    ) -> Result<(Tensor, Tensor)> {
        let axis = axis(dim, input.layout.rank())?;
        let size = input.sizes().get(axis).copied().unwrap_or(1);
        if !(0..=size).contains(&k) {
            let reason = format!("topk: dimension {axis} has {size} elements");
            return Err(Error::invalid("k", k, reason));
        }
        let mut sizes: Dims = input.sizes().into();
        if let Some(size) = sizes.get_mut(axis) {
            *size = k;
        }
        // A scalar's top 0 is an empty vector, its top 1 a scalar.
        if sizes.is_empty() && k == 0 {
            sizes.push(0);
        }
        self.ranked("topk", input, axis, k, largest, Layout::contiguous(&sizes)?)
    }

    /// The first `count` of each sorted row along `axis`, in a layout of their own.
    fn ranked(
        &self,
        operator: &'static str,
        input: &Tensor,
        axis: usize,
        count: i64,
        descending: bool,
        layout: Layout,
    ) -> Result<(Tensor, Tensor)> {
        let kind = key_kind(operator, input.dtype)?;
        let values = self.empty(layout.clone(), input.dtype, crate::tensor::DeviceType::Mps)?;
        let indices = self.empty(layout.clone(), DType::I64, crate::tensor::DeviceType::Mps)?;
        if values.numel() == 0 {
            return Ok((values, indices));
        }
        let rows = relaid(input, moved_last(&input.layout, axis)?)?;
        countable(operator, "self", &rows)?;
        let source = self.dense(&rows, 8)?;
        let length = rows.sizes().last().copied().unwrap_or(1);
        let keys = Keys::of(operator, rows.numel() / length, length)?;
        let planes = self.sorted_keys(operator, &source, kind, descending, &keys)?;

        let last = moved_last(&layout, axis)?;
        let direct = last.is_contiguous();
        let to = |of: &Tensor| match direct {
            true => relaid(of, last.clone()),
            false => self.fresh(last.sizes(), of.dtype),
        };
        let (sorted, order) = (to(&values)?, to(&indices)?);
        let positions = self.fresh(&[sorted.numel()], DType::U32)?;
        let wanted = word(operator, "k", count)?;
        let all = word(operator, "the result", sorted.numel())?;
        self.launch(
            Launch {
                name: PLACES.0,
                wgsl: PLACES.1,
                constants: &[],
                operands: &[
                    Operand::write(&order),
                    Operand::write(&positions),
                    Operand::read(&planes),
                ],
                groups: grid(operator, u64::from(all).div_ceil(256))?,
            },
            |at| {
                let (order, positions) = (start(at, 0, 4), start(at, 1, 4));
                params(&[keys.length, keys.places, keys.total, wanted, all, order, positions])
            },
        )?;
        self.gather_elements(operator, &sorted, &source, &positions)?;
        if !direct {
            self.copy(&relaid(&values, last.clone())?, &sorted, true)?;
            self.copy(&relaid(&indices, last)?, &order, true)?;
        }
        Ok((values, indices))
    }

    fn sorted_keys(
        &self,
        operator: &'static str,
        source: &Tensor,
        kind: u32,
        descending: bool,
        keys: &Keys,
    ) -> Result<Tensor> {
        let planes = self.fresh(&[3, i64::from(keys.total)], DType::U32)?;
        let element = source.dtype.size() as u32;
        self.launch(
            Launch {
                name: KEYS.0,
                wgsl: KEYS.1,
                constants: &[("KIND", kind), ("DESCENDING", descending.into())],
                operands: &[Operand::write(&planes), Operand::read(source)],
                groups: grid(operator, u64::from(keys.total).div_ceil(256))?,
            },
            |at| params(&[keys.length, keys.places, keys.total, start(at, 1, element)]),
        )?;
        let operands = [Operand::write(&planes)];
        let local = |first: u32, last: u32| {
            self.launch(
                Launch {
                    name: LOCAL.0,
                    wgsl: LOCAL.1,
                    constants: &[],
                    operands: &operands,
                    groups: grid(operator, u64::from(keys.total.div_ceil(SPAN)))?,
                },
                |_| params(&[keys.places, keys.total, first, last]),
            )
        };
        local(2, keys.places.min(SPAN))?;
        let mut run = SPAN;
        while run < keys.places {
            run = run.saturating_mul(2);
            let mut distance = run / 2;
            while distance >= SPAN {
                self.launch(
                    Launch {
                        name: STEP.0,
                        wgsl: STEP.1,
                        constants: &[],
                        operands: &operands,
                        groups: grid(operator, u64::from(keys.total / 2).div_ceil(256))?,
                    },
                    |_| params(&[keys.places, keys.total, run, distance]),
                )?;
                distance /= 2;
            }
            local(run, run)?;
        }
        Ok(planes)
    }
}

/// The shape of the keys: rows padded to a power of two.
struct Keys {
    length: u32,
    places: u32,
    total: u32,
}

impl Keys {
    fn of(operator: &'static str, rows: i64, length: i64) -> Result<Self> {
        let places = u64::try_from(length).unwrap_or(0).next_power_of_two();
        let total = places.saturating_mul(u64::try_from(rows).unwrap_or(0));
        // The three planes are counted in 32 bits too.
        if total > u64::from(u32::MAX) / 3 {
            return Err(Error::NotSupported(format!(
                "{operator}: self has {rows} rows of {length} elements; with rows padded to a \
                 power of two, {} are the limit",
                u32::MAX / 3
            )));
        }
        Ok(Keys { length: length as u32, places: places as u32, total: total as u32 })
    }
}

fn key_kind(operator: &str, dtype: DType) -> Result<u32> {
    Ok(match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::BF16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::U8 | DType::Bool => 5,
        DType::I8 => 6,
        DType::I16 => 7,
        DType::F64 => 8,
        _ => {
            return Err(Error::NotSupported(format!(
                "{operator}: self is of {dtype}; floats, signed integers, uint8 and bool are \
                 supported"
            )));
        }
    })
}
