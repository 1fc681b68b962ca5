//! What is measured: views of one kind each, scaled to an output of the size asked for.

use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::layout::Layout;

/// A copy from one layout to another.
pub struct Case {
    pub name: &'static str,
    pub dst: Layout,
    pub src: Layout,
    pub dst_dtype: DType,
    pub src_dtype: DType,
    /// The least ratio to the contiguous compute copy that is aimed at.
    pub target: f64,
}

/// A dense output of `sizes`, read by `strides` and `offset`.
fn pack(
    name: &'static str,
    dtype: DType,
    sizes: &[i64],
    strides: &[i64],
    offset: i64,
    target: f64,
) -> Result<Case> {
    Ok(Case {
        name,
        dst: Layout::contiguous(sizes)?,
        src: Layout::new(sizes, strides, offset)?,
        dst_dtype: dtype,
        src_dtype: dtype,
        target,
    })
}

/// The same the other way round: a dense source, written by strides.
fn scatter(
    name: &'static str,
    dtype: DType,
    sizes: &[i64],
    strides: &[i64],
    offset: i64,
    target: f64,
) -> Result<Case> {
    let case = pack(name, dtype, sizes, strides, offset, target)?;
    Ok(Case { dst: case.src, src: case.dst, ..case })
}

fn convert(name: &'static str, from: DType, to: DType, bytes: i64) -> Result<Case> {
    // Bytes read and written together are twice the size.
    let count = 2 * bytes / (from.size() + to.size()) as i64;
    let layout = Layout::contiguous(&[count / 1024, 1024])?;
    Ok(Case {
        name,
        dst: layout.clone(),
        src: layout,
        dst_dtype: to,
        src_dtype: from,
        target: 0.85,
    })
}

/// All cases for an output of about `bytes`.
pub fn all(bytes: i64) -> Result<Vec<Case>> {
    use DType::{BF16, F16, F32, I64, U8};
    // Rows of `width` elements of a type.
    let rows = |dtype: DType, width: i64| (bytes / dtype.size() as i64 / width).max(2);
    let n = |dtype: DType| bytes / dtype.size() as i64;
    let side = |dtype: DType, step: i64| {
        let side = (n(dtype) as f64).sqrt() as i64;
        (side / step * step).max(step)
    };
    let (f, h, l) = (side(F32, 64), side(BF16, 64), side(I64, 64));
    let odd = side(F32, 64) - 27;
    let batch = 16;
    let plane = ((n(F32) / batch) as f64).sqrt() as i64 / 4 * 4;
    let deep = (n(F32) as f64).cbrt() as i64 / 4 * 4;
    let images = (n(F32) / (64 * 56 * 56)).max(1);
    let tokens = (n(F32) / (32 * 128)).max(2);
    Ok(vec![
        pack("contiguous", F32, &[rows(F32, 1024), 1024], &[1024, 1], 0, 1.0)?,
        pack("f32 half of the last dim", F32, &[rows(F32, 64), 64], &[128, 1], 0, 0.95)?,
        pack("f32 every second", F32, &[rows(F32, 1024), 1024], &[2048, 2], 0, 0.62)?,
        pack(
            "f32 transpose of a column slice",
            F32,
            &[2048, rows(F32, 2048)],
            &[1, 4096],
            0,
            0.85,
        )?,
        pack(
            "f32 (b,s,h,d) to (b,h,s,d), half of s",
            F32,
            &[2, 32, tokens / 2, 128],
            &[tokens * 32 * 128, 128, 32 * 128, 1],
            0,
            0.97,
        )?,
        pack("f32 one row expanded", F32, &[rows(F32, 4096), 4096], &[0, 1], 0, 1.8)?,
        pack("bf16 half of the last dim", BF16, &[rows(BF16, 64), 64], &[128, 1], 0, 0.95)?,
        pack("bf16 every second", BF16, &[rows(BF16, 1024), 1024], &[2048, 2], 0, 0.55)?,
        pack("bf16 63 of 128 from an odd offset", BF16, &[rows(BF16, 63), 63], &[128, 1], 1, 0.70)?,
        pack("u8 half of the last dim", U8, &[rows(U8, 64), 64], &[128, 1], 0, 0.95)?,
        pack("u8 37 of 128 from offset 3", U8, &[rows(U8, 37), 37], &[128, 1], 3, 0.45)?,
        pack("i64 half of the last dim", I64, &[rows(I64, 64), 64], &[128, 1], 0, 0.95)?,
        pack("f32 transpose", F32, &[f, f], &[1, f], 0, 0.85)?,
        pack("f32 transpose, odd sizes", F32, &[odd, odd + 2], &[1, odd], 0, 0.85)?,
        pack("bf16 transpose", BF16, &[h, h], &[1, h], 0, 0.85)?,
        pack("bf16 transpose, odd sizes", BF16, &[h - 27, h - 25], &[1, h - 27], 0, 0.85)?,
        pack("i64 transpose", I64, &[l, l], &[1, l], 0, 0.85)?,
        pack("f32 0,2,1", F32, &[batch, plane, plane], &[plane * plane, 1, plane], 0, 0.85)?,
        pack("f32 2,1,0", F32, &[deep, deep, deep], &[1, deep, deep * deep], 0, 0.85)?,
        pack("f32 1,2,0", F32, &[deep, deep, deep], &[deep, 1, deep * deep], 0, 0.85)?,
        pack(
            "f32 NCHW to NHWC",
            F32,
            &[images, 56, 56, 64],
            &[64 * 56 * 56, 56, 1, 56 * 56],
            0,
            0.85,
        )?,
        pack(
            "f32 NHWC to NCHW",
            F32,
            &[images, 64, 56, 56],
            &[64 * 56 * 56, 1, 56 * 64, 64],
            0,
            0.85,
        )?,
        scatter("f32 into half of the last dim", F32, &[rows(F32, 64), 64], &[128, 1], 0, 0.80)?,
        scatter("bf16 into half of the last dim", BF16, &[rows(BF16, 64), 64], &[128, 1], 0, 0.80)?,
        scatter("bf16 into 63 of 128", BF16, &[rows(BF16, 63), 63], &[128, 1], 1, 0.59)?,
        scatter("f32 into every second", F32, &[rows(F32, 1024), 1024], &[2048, 2], 0, 0.40)?,
        convert("f32 to bf16", F32, BF16, bytes)?,
        convert("bf16 to f32", BF16, F32, bytes)?,
        convert("f32 to f16", F32, F16, bytes)?,
        convert("f16 to f32", F16, F32, bytes)?,
    ])
}
