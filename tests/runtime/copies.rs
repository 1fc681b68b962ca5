//! `copy` between every pair of places, layouts and types.

use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{Config, Runtime};
use aoti_wgpu::tensor::{DeviceType, Tensor};

pub const TESTS: &[(&str, Test)] = &[
    ("copies::between_all_places", between_all_places),
    ("copies::overlap_reads_first", overlap_reads_first),
    ("copies::broadcast_and_convert", broadcast_and_convert),
    ("copies::refusals", refusals),
    ("copies::of_nothing", of_nothing),
    ("copies::non_blocking_takes_the_source", non_blocking_takes_the_source),
    ("copies::larger_than_a_staging_buffer", larger_than_a_staging_buffer),
    ("copies::zero_and_item", zero_and_item),
    ("copies::random", random),
];

fn between_all_places(world: &World) {
    let rt = &world.rt;
    for from in [DeviceType::Cpu, DeviceType::Mps] {
        for to in [DeviceType::Cpu, DeviceType::Mps] {
            let values: Vec<u16> = (0..7 * 9).collect();
            let src = rt.from_slice(&values, &[7, 9], DType::BF16, from).unwrap();
            // Transposed into the middle of a larger tensor.
            let base = rt.empty(Layout::contiguous(&[11, 8]).unwrap(), DType::BF16, to).unwrap();
            rt.zero(&base).unwrap();
            let dst = rt.view(&base, &[7, 9], &[1, 8], 9).unwrap();
            rt.copy(&dst, &src, false).unwrap();
            let found = rt.to_vec(&base).unwrap();
            let mut expected = vec![0u16; 88];
            for i in 0..7 {
                for j in 0..9 {
                    expected[9 + i + 8 * j] = values[9 * i + j];
                }
            }
            assert_eq!(found, bytemuck::cast_slice::<u16, u8>(&expected), "{from:?} to {to:?}");
        }
    }
}

fn overlap_reads_first(world: &World) {
    let base = world.iota(&[64]);
    let view = |offset| world.rt.view(&base, &[40], &[1], offset).unwrap();
    world.rt.copy(&view(3), &view(0), false).unwrap();
    let found = world.floats(&base);
    for (i, &v) in found.iter().enumerate() {
        let expected = if (3..43).contains(&i) { i - 3 } else { i };
        assert_eq!(v, expected as f32, "place {i}");
    }
    // A transpose onto itself.
    let square = world.iota(&[17, 17]);
    let transposed = world.rt.view(&square, &[17, 17], &[1, 17], 0).unwrap();
    world.rt.copy(&square, &transposed, false).unwrap();
    let found = world.floats(&square);
    for i in 0..17 {
        for j in 0..17 {
            assert_eq!(found[17 * i + j], (17 * j + i) as f32);
        }
    }
}

fn broadcast_and_convert(world: &World) {
    let rt = &world.rt;
    let row = rt.from_slice(&[1.5f32, -2.5, f32::NAN], &[3], DType::F32, DeviceType::Mps).unwrap();
    let out =
        |dtype| rt.empty(Layout::contiguous(&[2, 3]).unwrap(), dtype, DeviceType::Mps).unwrap();
    let ints = out(DType::I64);
    rt.copy(&ints, &row, false).unwrap();
    let found: Vec<i64> = rt
        .to_vec(&ints)
        .unwrap()
        .chunks_exact(8)
        .map(|c| i64::from_ne_bytes(c.try_into().unwrap()))
        .collect();
    assert_eq!(&found[..2], [1, -2]);
    assert_eq!(&found[3..5], [1, -2]);
    let flags = out(DType::Bool);
    rt.copy(&flags, &row, false).unwrap();
    assert_eq!(rt.to_vec(&flags).unwrap(), [1; 6], "NaN is not zero");
    let halves = out(DType::BF16);
    rt.copy(&halves, &row, false).unwrap();
    let bits: Vec<u16> = rt
        .to_vec(&halves)
        .unwrap()
        .chunks_exact(2)
        .map(|c| u16::from_ne_bytes(c.try_into().unwrap()))
        .collect();
    assert_eq!(&bits[..2], [0x3FC0, 0xC020]);
    assert!(half::bf16::from_bits(bits[2]).is_nan());
}

fn refusals(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[6]);
    let refused = |dst: &Tensor, src: &Tensor| rt.copy(dst, src, false).unwrap_err().to_string();
    let expanded = rt.view(&base, &[2, 3], &[0, 1], 0).unwrap();
    assert!(refused(&expanded, &world.iota(&[2, 3])).contains("share a place"));
    assert!(refused(&world.iota(&[2, 3]), &base).contains("broadcast"));
    let complex = rt.from_bytes(&[0; 48], &[6], DType::C64, DeviceType::Mps).unwrap();
    assert!(refused(&base, &complex).contains("complex64"));
    // Nothing was lost by it.
    assert_eq!(world.floats(&base), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

fn of_nothing(world: &World) {
    let rt = &world.rt;
    for device in [DeviceType::Cpu, DeviceType::Mps] {
        let before = rt.stats();
        let a = rt.empty(Layout::contiguous(&[0, 5]).unwrap(), DType::F32, device).unwrap();
        let b = rt.empty(Layout::contiguous(&[3, 0, 5]).unwrap(), DType::F16, device).unwrap();
        rt.copy(&b, &a, false).unwrap();
        let view = rt.view(&a, &[5, 0], &[7, 2], 0).unwrap();
        assert!(!view.is_packed_view());
        assert!(rt.to_vec(&view).unwrap().is_empty());
        assert!(rt.data_ptr(&a).unwrap().is_null());
        rt.clone_tensor(&a, true).unwrap();
        let after = rt.stats();
        assert_eq!(after.live_device_bytes, before.live_device_bytes);
        assert_eq!(after.dispatches, before.dispatches);
    }
}

fn non_blocking_takes_the_source(world: &World) {
    let rt = &world.rt;
    let dst = world.iota(&[1000]);
    let mut host: Vec<f32> = (0..1000).map(|i| -(i as f32)).collect();
    rt.write_bytes(&dst, bytemuck::cast_slice(&host)).unwrap();
    host.fill(7.0);
    drop(host);
    assert!(world.floats(&dst).iter().enumerate().all(|(i, &v)| v == -(i as f32)));
}

fn larger_than_a_staging_buffer(world: &World) {
    let rt = &world.rt;
    let (rows, columns) = (300usize, 70_000usize);
    let values: Vec<u32> =
        (0..rows * columns).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
    let t = rt
        .from_slice(&values, &[rows as i64, columns as i64], DType::U32, DeviceType::Mps)
        .unwrap();
    let v = rt.view(&t, &[columns as i64, rows as i64], &[1, columns as i64], 0).unwrap();
    let found = rt.to_vec(&v).unwrap();
    for (k, c) in found.chunks_exact(4).enumerate() {
        let (j, i) = (k / rows, k % rows);
        let expected = values[i * columns + j];
        assert!(u32::from_ne_bytes(c.try_into().unwrap()) == expected, "({i}, {j})");
    }
}

fn zero_and_item(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[5, 5]);
    let column = rt.view(&base, &[5], &[5], 2).unwrap();
    rt.zero(&column).unwrap();
    let found = world.floats(&base);
    assert!((0..25).all(|i| found[i] == if i % 5 == 2 { 0.0 } else { i as f32 }));
    let one = rt.view(&base, &[], &[], 7 + 1).unwrap();
    assert_eq!(rt.item(&one).unwrap()[..4], 8.0f32.to_ne_bytes());
    assert!(rt.item(&column).unwrap_err().to_string().contains("one element"));
}

/// A small generator, so that a failure names its seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Random views of random tensors, packed and written through, against an index walk.
fn random(world: &World) {
    let rt = &world.rt;
    for seed in 1..150u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let dtype =
            [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128][random.below(5) as usize];
        let n = dtype.size();
        let rank = random.below(5) as usize;
        let mut sizes: Vec<i64> = (0..rank).map(|_| 1 + random.below(9) as i64).collect();
        let mut strides: Vec<i64> = vec![0; rank];
        let mut order: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let mut next = 1;
        for &d in &order {
            strides[d] = next + random.below(3) as i64;
            next = strides[d] * sizes[d];
        }
        if rank > 0 && random.below(4) == 0 {
            let d = random.below(rank as u64) as usize;
            strides[d] = 0;
            sizes[d] = 1 + random.below(4) as i64;
        }
        let offset = random.below(5) as i64;
        let layout = Layout::new(&sizes, &strides, offset).unwrap();
        let total = layout.end() + random.below(4) as i64;
        let storage: Vec<u8> = (0..total as usize * n).map(|_| random.below(256) as u8).collect();
        let base = rt.from_bytes(&storage, &[total], dtype, DeviceType::Mps).unwrap();
        let v = rt.view(&base, &sizes, &strides, offset).unwrap();
        let mut offsets = vec![offset as usize];
        for (&size, &stride) in sizes.iter().zip(&strides) {
            offsets = offsets
                .iter()
                .flat_map(|&o| (0..size as usize).map(move |i| o + i * stride as usize))
                .collect();
        }
        let expected: Vec<u8> =
            offsets.iter().flat_map(|&o| storage[o * n..(o + 1) * n].iter().copied()).collect();
        assert_eq!(rt.to_vec(&world.over_pointer(&v)).unwrap(), expected, "seed {seed} {layout:?}");
        let clone = rt.clone_tensor(&v, random.below(2) == 0).unwrap();
        assert_eq!(rt.to_vec(&clone).unwrap(), expected, "seed {seed} cloned");
        if layout.overlaps() {
            continue;
        }
        let values: Vec<u8> = expected.iter().map(|b| b ^ 0xA5).collect();
        let source = rt.from_bytes(&values, &sizes, dtype, DeviceType::Mps).unwrap();
        rt.copy(&v, &source, false).unwrap();
        let mut written = storage;
        for (chunk, &o) in values.chunks_exact(n).zip(&offsets) {
            written[o * n..(o + 1) * n].copy_from_slice(chunk);
        }
        assert_eq!(rt.to_vec(&base).unwrap(), written, "seed {seed} written");
    }
}

/// A runtime with another configuration of the same kind.
pub fn again(world: &World, change: impl FnOnce(&mut Config)) -> Runtime {
    let mut config = World::config(world.memory);
    change(&mut config);
    Runtime::new(config)
}
