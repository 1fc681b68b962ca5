//! What the operators that work on dense buffers share: operands made dense, grids,
//! parameters.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::runtime::Runtime;
use crate::tensor::{DeviceType, Tensor};
use smallvec::SmallVec;

/// The text of a kernel: files of `shaders/`, one after another.
macro_rules! shader {
    ($($file:literal),* $(,)?) => {
        concat!($(include_str!(concat!("../../shaders/", $file))),*)
    };
}
pub(super) use shader;

/// Workgroups a row of the grid, where there are more than one row; as in the shaders.
const FOLD: u64 = 32768;

/// The grid of this many workgroups.
///
/// # Errors
/// [`Error::NotSupported`] for more than a grid has.
pub(super) fn grid(operator: &str, groups: u64) -> Result<[u32; 3]> {
    match u32::try_from(groups.div_ceil(FOLD)) {
        Ok(rows) if rows <= 65535 => Ok([groups.min(FOLD) as u32, rows, 1]),
        _ => Err(Error::NotSupported(format!("{operator}: {groups} workgroups"))),
    }
}

/// What the shaders call an element type.
///
/// # Errors
/// [`Error::NotSupported`] for any but f32, f16 and bf16.
pub(super) fn float_code(operator: &str, argument: &str, dtype: DType) -> Result<u32> {
    match dtype {
        DType::F32 => Ok(0),
        DType::F16 => Ok(1),
        DType::BF16 => Ok(2),
        _ => Err(Error::NotSupported(format!(
            "{operator}: {argument} is of {dtype}; float32, float16 and bfloat16 are supported"
        ))),
    }
}

/// A number as the shaders' parameters hold it.
///
/// # Errors
/// [`Error::NotSupported`] outside 32 bits.
pub(super) fn word(operator: &str, argument: &str, value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        Error::NotSupported(format!("{operator}: {argument} is {value}, 32 bits are the limit"))
    })
}

/// Refuses tensors whose elements a kernel cannot count in 32 bits.
pub(super) fn countable(operator: &str, argument: &str, tensor: &Tensor) -> Result<()> {
    word(operator, argument, tensor.numel()).map(drop)
}

/// The words, and zeros up to what the kernels declare.
pub(super) fn params(words: &[u32]) -> SmallVec<[u32; 32]> {
    let mut params = SmallVec::from_slice(words);
    params.resize(32, 0);
    params
}

/// `offsets[i]` in units of `bytes`: where an operand starts in its binding.
pub(super) fn start(offsets: &[u32], i: usize, bytes: u32) -> u32 {
    offsets.get(i).copied().unwrap_or(0) / bytes
}

/// The same storage through another layout, never a packed view.
pub(super) fn relaid(tensor: &Tensor, layout: Layout) -> Result<Tensor> {
    Tensor::new(tensor.storage.clone(), layout, tensor.dtype)
}

/// A dimension that counts from the end where it is negative. A tensor without
/// dimensions has one, 0, here.
///
/// # Errors
/// [`Error::InvalidArgument`] where there is no such dimension.
pub(super) fn axis(dim: i64, rank: usize) -> Result<usize> {
    let rank = rank.max(1) as i64;
    let at = if dim < 0 { dim.saturating_add(rank) } else { dim };
    match usize::try_from(at) {
        Ok(axis) if at < rank => Ok(axis),
        _ => Err(Error::invalid(
            "dim",
            dim,
            format!("of {rank} dimensions, {} to {} are meant", -rank, rank - 1),
        )),
    }
}

/// A layout with its dimension `axis` moved to the end; a scalar becomes one element.
pub(super) fn moved_last(layout: &Layout, axis: usize) -> Result<Layout> {
    let move_last = |values: &[i64], default: i64| {
        let mut moved: Dims = values.into();
        match moved.is_empty() {
            true => moved.push(default),
            false => {
                let value = moved.remove(axis);
                moved.push(value);
            }
        }
        moved
    };
    Layout::new(&move_last(layout.sizes(), 1), &move_last(layout.strides(), 1), layout.offset())
}

impl Runtime {
    /// The tensor itself where it is contiguous in a device buffer and starts at a
    /// multiple of `align` bytes, and otherwise a copy that is so.
    pub(super) fn dense(&self, tensor: &Tensor, align: i64) -> Result<Tensor> {
        let size = tensor.dtype.size() as i64;
        let starts = tensor.layout.offset().saturating_mul(size);
        if tensor.layout.is_contiguous() && starts % align == 0 && self.on_device(tensor) {
            return relaid(
                tensor,
                Layout::contiguous(tensor.sizes())?.with_offset(tensor.layout.offset())?,
            );
        }
        self.dense_as(tensor, tensor.dtype)
    }

    /// A contiguous copy of its own on the device, of elements of `dtype`.
    pub(super) fn dense_as(&self, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
        let layout = Layout::contiguous(tensor.sizes())?;
        let dense = self.empty(layout, dtype, DeviceType::Mps)?;
        self.copy(&dense, tensor, true)?;
        Ok(dense)
    }

    /// Whether a kernel reads the tensor where it is: not host memory, which is mirrored
    /// from wherever it starts.
    pub(super) fn on_device(&self, tensor: &Tensor) -> bool {
        tensor.storage.buffer().is_some() || tensor.numel() == 0
    }

    /// An uninitialized contiguous tensor on the device.
    pub(super) fn fresh(&self, sizes: &[i64], dtype: DType) -> Result<Tensor> {
        self.empty(Layout::contiguous(sizes)?, dtype, DeviceType::Mps)
    }

    /// A tensor of these sizes for a kernel that stores whole words of a row: the second
    /// value is the elements from one row to the next, where 16-bit rows of odd length
    /// are a word's rest apart.
    pub(super) fn fresh_rows(&self, sizes: &[i64], dtype: DType) -> Result<(Tensor, i64)> {
        let dense = Layout::contiguous(sizes)?;
        let Some((&last, rows)) = sizes.split_last() else {
            return Ok((self.empty(dense, dtype, DeviceType::Mps)?, 1));
        };
        let one_row = rows.iter().all(|&size| size <= 1);
        if dtype.size() != 2 || last % 2 == 0 || one_row {
            return Ok((self.empty(dense, dtype, DeviceType::Mps)?, last));
        }
        let mut padded: Dims = sizes.into();
        if let Some(size) = padded.last_mut() {
            *size += 1;
        }
        let padded = Layout::contiguous(&padded)?;
        let layout = Layout::new(sizes, padded.strides(), 0)?;
        // One element more than the layout's extent: the last word's other half.
        let whole = self.empty(padded, dtype, DeviceType::Mps)?;
        Ok((relaid(&whole, layout)?, last + 1))
    }

    /// A result without gaps.
    pub(super) fn without_gaps(&self, result: Tensor) -> Result<Tensor> {
        if result.layout.is_contiguous() {
            Ok(result)
        } else {
            self.dense_as(&result, result.dtype)
        }
    }
}
