//! `cumsum`: sums of all elements up to each one.

use super::dense::{axis, countable, grid, moved_last, params, relaid, shader, start, word};
use crate::dtype::{DType, NumberKind};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::{DeviceType, Tensor};

const FLOAT: (&str, &str) = ("scan_float", shader!("ops/scan_float.wgsl", "ops/scan.wgsl"));
const LONG: (&str, &str) = ("scan_long", shader!("ops/scan_long.wgsl", "ops/scan.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[FLOAT, LONG];

impl Runtime {
    /// PyTorch's `cumsum` along `dim`, contiguous. Without `dtype`, floats keep theirs and
    /// everything else becomes int64. Floats are added in f32 and rounded once an element;
    /// integers wrap.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dimension that is not there;
    /// [`Error::NotSupported`] for a result of bool or float64, or of no number.
    pub fn cumsum(&self, input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        const OPERATOR: &str = "cumsum";
        let axis = axis(dim, input.layout.rank())?;
        let dtype = dtype.unwrap_or(match input.dtype.number_kind() {
            Some(NumberKind::Bool | NumberKind::Integer { .. }) => DType::I64,
            _ => input.dtype,
        });
        let ((name, wgsl), sums) = match dtype.number_kind() {
            Some(NumberKind::Float) if dtype != DType::F64 => (FLOAT, DType::F32),
            Some(NumberKind::Integer { .. }) => (LONG, DType::I64),
            _ => {
                return Err(Error::NotSupported(format!(
                    "{OPERATOR}: dtype is {dtype}; integers, float32, float16 and bfloat16 are \
                     supported"
                )));
            }
        };
        let layout = Layout::contiguous(input.sizes())?;
        let out = self.empty(layout.clone(), dtype, DeviceType::Mps)?;
        if out.numel() == 0 {
            return Ok(out);
        }
        countable(OPERATOR, "self", input)?;
        let rows = relaid(input, moved_last(&input.layout, axis)?)?;
        let source = if input.dtype == sums {
            self.dense(&rows, 8)?
        } else if input.dtype == dtype {
            self.dense_as(&rows, sums)?
        } else {
            // What is added are values of the result's type.
            self.dense_as(&self.dense_as(&rows, dtype)?, sums)?
        };
        let last = moved_last(&layout, axis)?;
        let direct = last.is_contiguous() && dtype == sums;
        let result = match direct {
            true => relaid(&out, last.clone())?,
            false => self.fresh(last.sizes(), sums)?,
        };
        let length = rows.sizes().last().copied().unwrap_or(1);
        let count = word(OPERATOR, "self", rows.numel() / length)?;
        let length = word(OPERATOR, "self", length)?;
        self.launch(
            Launch {
                name,
                wgsl,
                constants: &[],
                operands: &[Operand::write(&result), Operand::read(&source)],
                groups: grid(OPERATOR, u64::from(count))?,
            },
            |at| params(&[count, length, start(at, 0, 4), start(at, 1, 4)]),
        )?;
        if !direct {
            self.copy(&relaid(&out, last)?, &result, true)?;
        }
        Ok(out)
    }
}
