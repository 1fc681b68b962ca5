//! Tensors with their values beside them, at the strides that tests go through.

use crate::layouts::Random;
use aoti_wgpu::dtype::DType;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use libtest_mimic::Failed;

pub const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// How a tensor's elements lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Placing {
    Packed,
    /// The last two dimensions swapped in memory.
    Transposed,
    /// From the second index on of larger dimensions, at an odd offset.
    Sliced,
    /// One row for all of the first dimension.
    Expanded,
}

pub const PLACINGS: [Placing; 4] =
    [Placing::Packed, Placing::Transposed, Placing::Sliced, Placing::Expanded];

/// The element's bytes, of the value rounded to the type.
pub fn encode(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (value as f32).to_ne_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(value).to_ne_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(value).to_ne_bytes().to_vec(),
        DType::I64 => (value as i64).to_ne_bytes().to_vec(),
        DType::I32 => (value as i32).to_ne_bytes().to_vec(),
        DType::I16 => (value as i16).to_ne_bytes().to_vec(),
        DType::I8 => (value as i8).to_ne_bytes().to_vec(),
        DType::U8 | DType::Bool => vec![value as u8],
        DType::F64 => value.to_ne_bytes().to_vec(),
        _ => panic!("{dtype}"),
    }
}

pub fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let one = |b: &[u8]| -> f64 {
        match dtype {
            DType::F32 => f32::from_ne_bytes(b.try_into().unwrap()).into(),
            DType::F16 => half::f16::from_ne_bytes(b.try_into().unwrap()).into(),
            DType::BF16 => half::bf16::from_ne_bytes(b.try_into().unwrap()).into(),
            DType::I64 => i64::from_ne_bytes(b.try_into().unwrap()) as f64,
            DType::I32 => i32::from_ne_bytes(b.try_into().unwrap()).into(),
            DType::I16 => i16::from_ne_bytes(b.try_into().unwrap()).into(),
            DType::I8 => (b[0] as i8).into(),
            DType::U8 | DType::Bool => b[0].into(),
            DType::F64 => f64::from_ne_bytes(b.try_into().unwrap()),
            _ => panic!("{dtype}"),
        }
    };
    bytes.chunks(dtype.size()).map(one).collect()
}

/// Half a unit in the last place, relative; f32's own where it is accumulated in.
pub fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        _ => 2f64.powi(-23),
    }
}

/// A tensor of these sizes with values from `make`, and the values, row-major.
pub fn tensor(
    runtime: &Runtime,
    sizes: &[i64],
    dtype: DType,
    placing: Placing,
    mut make: impl FnMut() -> f64,
) -> Result<(Tensor, Vec<f64>), Failed> {
    let rank = sizes.len();
    let mut base: Vec<i64> = sizes.to_vec();
    let mut order: Vec<usize> = (0..rank).collect();
    let mut at = 0;
    match placing {
        Placing::Transposed if rank > 1 => {
            order.swap(rank - 1, rank - 2);
            base.swap(rank - 1, rank - 2);
        }
        Placing::Sliced if rank > 0 => {
            base.iter_mut().for_each(|size| *size += 2);
            at = 1;
        }
        Placing::Expanded if rank > 1 => base[0] = base[0].min(1),
        _ => {}
    }
    let count: i64 = base.iter().product();
    let bytes: Vec<u8> = (0..count).flat_map(|_| encode(dtype, make())).collect();
    let whole = runtime.from_bytes(&bytes, &base, dtype, DeviceType::Mps)?;
    let dense = whole.layout().strides().to_vec();
    let mut strides: Vec<i64> = order.iter().map(|&d| dense[d]).collect();
    if placing == Placing::Expanded && rank > 1 {
        strides[0] = 0;
    }
    let offset = dense.iter().sum::<i64>() * at;
    let tensor = runtime.view(&whole, sizes, &strides, offset)?;
    let values = decode(dtype, &runtime.to_vec(&tensor)?);
    Ok((tensor, values))
}

/// From -1 to 1.
pub fn uniform(random: &mut Random) -> f64 {
    random.between(-1 << 20, (1 << 20) + 1) as f64 / f64::from(1 << 20)
}

pub fn values(runtime: &Runtime, tensor: &Tensor) -> Result<Vec<f64>, Failed> {
    Ok(decode(tensor.dtype(), &runtime.to_vec(tensor)?))
}

/// Elements before, of and behind a dimension.
pub fn around(sizes: &[i64], dim: usize) -> [usize; 3] {
    let product = |of: &[i64]| of.iter().product::<i64>() as usize;
    [product(&sizes[..dim]), sizes[dim] as usize, product(&sizes[dim + 1..])]
}

pub fn integers(values: impl IntoIterator<Item = i64>) -> Vec<f64> {
    values.into_iter().map(|value| value as f64).collect()
}

/// Bit for bit but for NaN, which is equal to NaN.
pub fn same(what: &str, found: &[f64], expected: &[f64]) -> Result<(), Failed> {
    let equal = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    match found.iter().zip(expected).position(|pair| !equal(pair)) {
        None if found.len() == expected.len() => Ok(()),
        at => Err(format!(
            "{what}: {} for {} elements, at {at:?}: {:?} for {:?}",
            found.len(),
            expected.len(),
            at.map(|at| found[at]),
            at.map(|at| expected[at]),
        )
        .into()),
    }
}

/// Within `bound` of each element, which is absolute.
pub fn close(
    what: &str,
    found: &[f64],
    expected: &[f64],
    bound: impl Fn(usize) -> f64,
) -> Result<(), Failed> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} for {} elements", found.len(), expected.len()).into());
    }
    for (i, (&a, &b)) in found.iter().zip(expected).enumerate() {
        if !(a.is_nan() && b.is_nan()) && approx::abs_diff_ne!(a, b, epsilon = bound(i)) {
            return Err(format!("{what}: at {i} {a} for {b}, the bound is {}", bound(i)).into());
        }
    }
    Ok(())
}
