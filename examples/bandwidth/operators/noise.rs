//! Operands of random values, known to the host without a copy of them all.

use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::{Error, Result};
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use half::{bf16, f16};

/// Elements of a block: rows of the usual lengths, powers of two, begin in different
/// places of it.
const LEN: usize = 4 * 262_147;

/// A block of random values, which a tensor repeats: floats in -1..1, bytes in 0..256.
pub struct Noise {
    values: Vec<f32>,
    block: Tensor,
}

impl Noise {
    /// The values of another `salt` are others.
    pub fn new(rt: &Runtime, salt: u64, dtype: DType) -> Result<Self> {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut state = salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let words = (0..LEN).map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^ (word >> 31)
        });
        let values: Vec<f32> = match dtype {
            DType::U8 => words.map(|word| (word >> 56) as f32).collect(),
            _ => words
                .map(|word| (word >> 40) as f32 / (1u32 << 23) as f32 - 1.0)
                .map(|value| rounded(value, dtype))
                .collect(),
        };
        let bytes: Vec<u8> = match dtype {
            DType::F32 => bytemuck::cast_slice(&values).to_vec(),
            DType::F16 => values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
            DType::BF16 => values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect(),
            DType::U8 => values.iter().map(|&v| v as u8).collect(),
            _ => return Err(Error::NotSupported(format!("random values of {dtype}"))),
        };
        let block = rt.from_bytes(&bytes, &[LEN as i64], dtype, DeviceType::Mps)?;
        Ok(Noise { values, block })
    }

    /// A tensor of its own, of these sizes and strides without holes.
    pub fn strided(&self, rt: &Runtime, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        let count = sizes.iter().product::<i64>();
        let row = count.min(LEN as i64);
        let rows = [(count + row - 1) / row, row];
        let dtype = self.block.dtype();
        let layout = aoti_wgpu::layout::Layout::contiguous(&rows)?;
        let tensor = rt.empty(layout, dtype, DeviceType::Mps)?;
        rt.copy(&tensor, &rt.view_bytes(&self.block, 0, dtype, &rows, &[0, 1])?, true)?;
        rt.view(&tensor, sizes, strides, 0)
    }

    /// A contiguous tensor of its own.
    pub fn tensor(&self, rt: &Runtime, sizes: &[i64]) -> Result<Tensor> {
        let strides = aoti_wgpu::layout::contiguous_strides(sizes)?;
        self.strided(rt, sizes, &strides)
    }

    /// The element at this place of any of the tensors' memory.
    pub fn at(&self, place: i64) -> f64 {
        f64::from(self.values[place as usize % LEN])
    }
}

fn rounded(value: f32, dtype: DType) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::BF16 => bf16::from_f32(value).to_f32(),
        _ => value,
    }
}

/// Element `index` of a tensor's bytes.
pub fn element(bytes: &[u8], dtype: DType, index: usize) -> Result<f64> {
    let size = dtype.size();
    let bytes = bytes.get(index * size..(index + 1) * size);
    match (dtype, bytes) {
        (DType::F32, Some(&[a, b, c, d])) => Ok(f32::from_le_bytes([a, b, c, d]).into()),
        (DType::F16, Some(&[a, b])) => Ok(f16::from_le_bytes([a, b]).into()),
        (DType::BF16, Some(&[a, b])) => Ok(bf16::from_le_bytes([a, b]).into()),
        _ => Err(Error::NotSupported(format!("element {index} of {dtype} cannot be checked"))),
    }
}
