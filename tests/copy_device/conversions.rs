//! Conversions on the device against those on the host, bit for bit.

use super::Gpu;
use super::layouts::{self, Random};
use aoti_wgpu::copy::convert::{self, ConvertPlan};
use aoti_wgpu::copy::device::{Launches, convert_launches};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use libtest_mimic::Failed;

pub const NUMBERS: &[DType] = &[
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Bit patterns of a type: all of the small ones; else random ones, small and large
/// integers, and floats near what decides: ties, ends of ranges, subnormals.
fn values(dtype: DType, random: &mut Random) -> Vec<u8> {
    match dtype.size() {
        1 => (0..=255).collect(),
        2 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        _ => (0..20_000)
            .flat_map(|i| {
                let bits = random.next();
                let bits = match (i % 4, dtype) {
                    (0, _) => bits,
                    (1, DType::F32) => {
                        (bits as u32 & !0x1fff | random.pick(&[0, 0xfff, 0x1000, 0x1001])).into()
                    }
                    (2, DType::F32) => (random.between(-140, 140) as f32
                        * 2f32.powi(random.between(-30, 66) as i32))
                    .to_bits()
                    .into(),
                    (3, DType::F32) => {
                        u64::from(bits as u32 & 0x80ff_ffff) | random.next() & 0x3f00_0000
                    }
                    (1, DType::F64) => {
                        bits & !0x1fff_ffff
                            | random.pick(&[0, 0xfff_ffff, 0x1000_0000, 0x1000_0001])
                    }
                    (2, DType::F64) => (f64::from(bits as u32 as i32)
                        * 2f64.powi(random.between(-170, 130) as i32))
                    .to_bits(),
                    (3, DType::F64) => f64::from(f32::from_bits(bits as u32)).to_bits(),
                    (1, _) => bits >> random.between(0, 64),
                    (2, _) => (bits >> random.between(0, 64)).wrapping_neg(),
                    // Ties of what a float keeps.
                    _ => (bits | 1 << 63) >> 40 << 40 >> random.between(0, 40),
                };
                bits.to_le_bytes().into_iter().take(dtype.size())
            })
            .collect(),
    }
}

fn check(
    gpu: &Gpu,
    (dst, to): (&Layout, DType),
    (src, from): (&Layout, DType),
    source: &[u8],
    random: &mut Random,
) -> Result<Vec<&'static str>, Failed> {
    let plan = ConvertPlan::new((dst, 0, to), (src, 0, from))?;
    let mut want = random.bytes(plan.dst_end() as usize + 12);
    let (dst_buffer, src_buffer) = (gpu.buffer(want.len() as u64), gpu.buffer(source.len() as u64));
    gpu.upload(&dst_buffer, &want);
    gpu.upload(&src_buffer, source);
    let mut list = Launches::new();
    convert_launches(&plan, dst_buffer.size(), src_buffer.size(), &gpu.limits(), &mut list)?;
    gpu.run(&list, &dst_buffer, &src_buffer, 1);
    let got = gpu.download(&dst_buffer, 0, want.len());
    convert::run_slices(&plan, &mut want, source)?;
    if let Some(at) = got.iter().zip(&want).position(|(a, b)| a != b) {
        let element = at / to.size() * to.size();
        let value = |bytes: &[u8]| format!("{:02x?}", &bytes[element..element + to.size()]);
        return Err(format!(
            "{from} to {to}: byte {at}: {} for {}; {dst:?} <- {src:?} {list:?}",
            value(&got),
            value(&want),
        )
        .into());
    }
    Ok(list.iter().map(|launch| launch.kernel.name).collect())
}

pub fn values_from(gpu: &Gpu, from: DType) -> Result<(), Failed> {
    let mut random = Random(from.code() as u64);
    let source = values(from, &mut random);
    let count = (source.len() / from.size()) as i64;
    let all = Layout::contiguous(&[count])?;
    for &to in NUMBERS.iter().filter(|&&to| to != from) {
        check(gpu, (&all, to), (&all, from), &source, &mut random)?;
    }
    Ok(())
}

pub fn at_any_strides(gpu: &Gpu) -> Result<(), Failed> {
    let mut used = std::collections::BTreeMap::<_, usize>::new();
    let halves = [DType::F32, DType::BF16, DType::F16];
    for seed in 0..300 {
        let mut random = Random(seed);
        let (dst, src) = layouts::pair(&mut random, 10_000);
        let kinds = if random.one_in(2) { NUMBERS } else { &halves };
        let (to, from) = (random.pick(kinds), random.pick(kinds));
        let source = random.bytes(src.end_bytes(from.size())? as usize);
        for name in check(gpu, (&dst, to), (&src, from), &source, &mut random)? {
            *used.entry(name).or_default() += 1;
        }
    }
    // Rows and columns that the fast kernels serve, with and without a rest.
    for (sizes, strides) in
        [([1000i64, 64], [128i64, 1]), ([1, 10_003], [1, 1]), ([7, 20], [20, 1])]
    {
        for (to, from) in [(0, 1), (0, 2), (1, 0), (2, 0)] {
            let mut random = Random(9);
            let src = Layout::new(&sizes, &strides, 8)?;
            let dst = Layout::contiguous(&sizes)?.with_offset(4)?;
            let source = random.bytes(src.end_bytes(4)? as usize);
            for (dst, src) in [(&dst, &src), (&src, &dst)] {
                for name in
                    check(gpu, (dst, halves[to]), (src, halves[from]), &source, &mut random)?
                {
                    *used.entry(name).or_default() += 1;
                }
            }
        }
    }
    println!("{used:?}");
    Ok(())
}
