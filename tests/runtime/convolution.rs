//! Convolutions against sums in f64.
//!
//! Bounds: a sum of K terms is kept in f32, so it is off by at most K + 4 rounding steps of
//! the sum of the magnitudes; the result is rounded once to its type.

use crate::copies::Random;
use crate::operators::{noise, precision, tensor, values};
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Error;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::ops::conv::Convolution;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use approx::assert_abs_diff_eq;

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::convolutions_of_images", images),
    ("kernels::convolutions_of_vectors", vectors),
    ("kernels::convolutions_over_strides", strides),
    ("kernels::convolutions_of_large_tiles", large),
    ("kernels::convolutions_with_nan", nan),
    ("kernels::convolutions_of_nothing", nothing),
    ("kernels::convolution_formats", formats),
    ("kernels::convolution_refusals", refusals),
];

/// A convolution of images, [vertical, horizontal].
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Images, channels, height, width.
    input: [i64; 4],
    outputs: i64,
    kernel: [i64; 2],
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    groups: i64,
    /// The output padding of a transposed one.
    transposed: Option<[i64; 2]>,
}

const PLAIN: Case = Case {
    input: [1, 1, 1, 1],
    outputs: 1,
    kernel: [1, 1],
    stride: [1, 1],
    padding: [0, 0],
    dilation: [1, 1],
    groups: 1,
    transposed: None,
};

impl Case {
    fn weight(&self) -> [i64; 4] {
        let [y, x] = self.kernel;
        match self.transposed {
            Some(_) => [self.input[1], self.outputs / self.groups, y, x],
            None => [self.outputs, self.input[1] / self.groups, y, x],
        }
    }

    /// Output elements along dimension d.
    fn length(&self, d: usize) -> i64 {
        let size = self.input[2 + d];
        let reach = self.dilation[d] * (self.kernel[d] - 1) + 1;
        match self.transposed {
            Some(extra) => (size - 1) * self.stride[d] - 2 * self.padding[d] + reach + extra[d],
            None => (size + 2 * self.padding[d] - reach) / self.stride[d] + 1,
        }
    }

    /// The sums and those of the magnitudes, (image, channel, y, x). Each pair of an input
    /// and an element of the kernel adds to the output where they meet.
    fn reference(&self, x: &[f64], w: &[f64], bias: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let [n, c, h, wide] = self.input;
        let (oh, ow, o) = (self.length(0), self.length(1), self.outputs);
        let [kh, kw] = self.kernel;
        let (per_group, out_group) = (c / self.groups, o / self.groups);
        let mut sums = vec![0.0; (n * o * oh * ow) as usize];
        let mut sizes = sums.clone();
        for (i, sum) in sums.iter_mut().enumerate() {
            if !bias.is_empty() {
                *sum = bias[(i as i64 / (oh * ow) % o) as usize];
            }
        }
        let places = |d: usize, at: i64, tap: i64| {
            if self.transposed.is_some() {
                return Some(at * self.stride[d] + tap * self.dilation[d] - self.padding[d]);
            }
            let spread = at + self.padding[d] - tap * self.dilation[d];
            (spread % self.stride[d] == 0).then_some(spread / self.stride[d])
        };
        for at in 0..n * c * h * wide {
            let value = x[at as usize];
            let (ix, iy, channel) = (at % wide, at / wide % h, at / wide / h % c);
            let (image, group) = (at / wide / h / c, channel / per_group);
            for ky in 0..kh {
                let Some(oy) = places(0, iy, ky).filter(|&y| (0..oh).contains(&y)) else {
                    continue;
                };
                for kx in 0..kw {
                    let Some(ox) = places(1, ix, kx).filter(|&x| (0..ow).contains(&x)) else {
                        continue;
                    };
                    for out in 0..out_group {
                        let weight = match self.transposed {
                            Some(_) => (channel * out_group + out) * kh * kw,
                            None => {
                                let row = group * out_group + out;
                                (row * per_group + channel % per_group) * kh * kw
                            }
                        };
                        let term = value * w[(weight + ky * kw + kx) as usize];
                        let to = ((image * o + group * out_group + out) * oh + oy) * ow + ox;
                        sums[to as usize] += term;
                        sizes[to as usize] += term.abs();
                    }
                }
            }
        }
        (sums, sizes)
    }

    fn how<'a>(&'a self) -> Convolution<'a> {
        Convolution {
            stride: &self.stride,
            padding: &self.padding,
            dilation: &self.dilation,
            transposed: self.transposed.is_some(),
            output_padding: self.transposed.as_ref().map_or(&[0, 0], |extra| extra),
            groups: self.groups,
        }
    }

    /// Runs it and holds every element against the reference.
    fn check(&self, world: &World, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let result = world.rt.convolution(x, w, bias, self.how()).unwrap();
        let sizes = [self.input[0], self.outputs, self.length(0), self.length(1)];
        assert_eq!(result.sizes(), sizes, "{self:?}");
        let bias = bias.map_or(Vec::new(), |bias| values(world, bias));
        let (sums, sizes) = self.reference(&values(world, x), &values(world, w), &bias);
        let depth = (self.weight()[1..].iter().product::<i64>() * self.input[1]) as f64;
        let unit = precision(x.dtype());
        let found = values(world, &result);
        assert_eq!(found.len(), sums.len());
        for (i, (&found, (&sum, &size))) in found.iter().zip(sums.iter().zip(&sizes)).enumerate() {
            let bound = 1.01 * unit * sum.abs() + (depth + 4.0) * 2f64.powi(-24) * (size + 1.0);
            assert!(
                approx::abs_diff_eq!(found, sum, epsilon = bound),
                "{self:?}, {}: element {i} is {found}, not {sum}, by more than {bound}",
                x.dtype()
            );
        }
        result
    }
}

/// How an operand of images lies in memory.
#[derive(Clone, Copy, Debug)]
enum Way {
    Dense,
    ChannelsLast,
    /// Width before height.
    Transposed,
    /// Every other channel of longer lines, from the third element on.
    Sliced,
    /// As channels-last, of more channels than are there.
    SlicedLast,
    /// All images are one.
    Expanded,
}

fn operand(world: &World, random: &mut Random, sizes: [i64; 4], dtype: DType, way: Way) -> Tensor {
    let [n, c, h, w] = sizes;
    let (count, strides, offset) = match way {
        Way::Dense => (n * c * h * w, [c * h * w, h * w, w, 1], 0),
        Way::ChannelsLast => (n * c * h * w, [c * h * w, 1, w * c, c], 0),
        Way::Transposed => (n * c * h * w, [c * h * w, h * w, 1, h], 0),
        Way::Sliced => {
            let pitch = w + 3;
            (2 * n * c * h * pitch + 3, [2 * c * h * pitch, 2 * h * pitch, pitch, 1], 3)
        }
        Way::SlicedLast => {
            let pitch = c + 4;
            (n * h * w * pitch + 4, [h * w * pitch, 1, w * pitch, pitch], 4)
        }
        Way::Expanded => (c * h * w, [0, h * w, w, 1], 0),
    };
    let base = tensor(world, &noise(random, count as usize), &[count], dtype);
    world.rt.view(&base, &sizes, &strides, offset).unwrap()
}

fn bias(world: &World, random: &mut Random, case: &Case, dtype: DType) -> Tensor {
    tensor(world, &noise(random, case.outputs as usize), &[case.outputs], dtype)
}

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Cases that between them take every kernel.
fn cases() -> Vec<Case> {
    vec![
        // Tiles, of lines that are and are not whole vectors.
        Case { input: [2, 3, 9, 11], outputs: 10, kernel: [3, 3], padding: [1, 1], ..PLAIN },
        Case { input: [1, 8, 12, 8], outputs: 70, kernel: [3, 3], padding: [1, 1], ..PLAIN },
        Case {
            input: [2, 5, 13, 17],
            outputs: 9,
            kernel: [3, 5],
            stride: [2, 3],
            padding: [2, 0],
            dilation: [1, 2],
            ..PLAIN
        },
        Case { input: [1, 3, 23, 23], outputs: 16, kernel: [7, 7], stride: [2, 2], ..PLAIN },
        // Groups.
        Case {
            input: [2, 24, 7, 8],
            outputs: 36,
            kernel: [3, 2],
            padding: [1, 1],
            groups: 2,
            ..PLAIN
        },
        Case { input: [2, 12, 6, 9], outputs: 12, kernel: [3, 3], groups: 12, ..PLAIN },
        Case {
            input: [1, 6, 8, 7],
            outputs: 18,
            kernel: [3, 3],
            stride: [2, 1],
            padding: [1, 2],
            dilation: [2, 1],
            groups: 6,
            ..PLAIN
        },
        // A depth that is split.
        Case { input: [1, 96, 5, 6], outputs: 20, kernel: [3, 3], padding: [1, 1], ..PLAIN },
        // Kernels of one element: as products, with a stride, in groups.
        Case { input: [3, 20, 5, 7], outputs: 33, ..PLAIN },
        Case { input: [3, 16, 9, 7], outputs: 12, stride: [2, 2], ..PLAIN },
        Case { input: [2, 40, 10, 10], outputs: 6, groups: 2, ..PLAIN },
        Case { input: [70, 32, 1, 1], outputs: 24, ..PLAIN },
        Case { input: [2, 16, 3, 4], outputs: 12, kernel: [3, 4], ..PLAIN },
        // Transposed.
        Case {
            input: [2, 6, 5, 7],
            outputs: 10,
            kernel: [3, 3],
            stride: [2, 2],
            padding: [1, 1],
            transposed: Some([1, 1]),
            ..PLAIN
        },
        Case {
            input: [1, 8, 4, 9],
            outputs: 24,
            kernel: [4, 2],
            stride: [3, 1],
            padding: [2, 0],
            dilation: [1, 3],
            groups: 2,
            transposed: Some([2, 2]),
        },
        Case {
            input: [2, 6, 5, 4],
            outputs: 6,
            kernel: [2, 3],
            stride: [2, 3],
            groups: 6,
            transposed: Some([0, 0]),
            ..PLAIN
        },
        Case { input: [1, 16, 6, 6], outputs: 20, transposed: Some([0, 0]), ..PLAIN },
    ]
}

fn images(world: &World) {
    let mut random = Random(41);
    for (i, case) in cases().into_iter().enumerate() {
        let halves = [TYPES[1 + i % 2], TYPES[2 - i % 2]];
        for (way, dtype, biased) in [
            (Way::Dense, DType::F32, false),
            (Way::ChannelsLast, DType::F32, true),
            (Way::Dense, halves[0], true),
            (Way::ChannelsLast, halves[1], false),
        ] {
            let x = operand(world, &mut random, case.input, dtype, way);
            let w = operand(world, &mut random, case.weight(), dtype, way);
            let b = bias(world, &mut random, &case, dtype);
            case.check(world, &x, &w, biased.then_some(&b));
        }
    }
}

fn strides(world: &World) {
    let mut random = Random(43);
    let ways = [
        (Way::Transposed, Way::Sliced),
        (Way::Sliced, Way::Transposed),
        (Way::SlicedLast, Way::Dense),
        (Way::Expanded, Way::SlicedLast),
        (Way::Dense, Way::ChannelsLast),
        (Way::ChannelsLast, Way::Expanded),
    ];
    for (i, case) in cases().into_iter().enumerate() {
        let dtype = TYPES[i % 3];
        for (of_input, of_weight) in ways.into_iter().skip(i % 2).step_by(2) {
            let x = operand(world, &mut random, case.input, dtype, of_input);
            let w = operand(world, &mut random, case.weight(), dtype, of_weight);
            let two = bias(world, &mut random, &Case { outputs: 2 * case.outputs, ..case }, dtype);
            let every_other = world.rt.view(&two, &[case.outputs], &[2], 0).unwrap();
            case.check(world, &x, &w, Some(&every_other));
        }
    }
}

/// Two results of the same sums, added up in orders of their own.
fn same(world: &World, found: &Tensor, expected: &[f64], depth: f64) {
    let unit = precision(found.dtype());
    let found = values(world, found);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.into_iter().zip(expected) {
        // Factors of at most 1, two roundings to the type.
        let bound = 2.02 * unit * expected.abs() + 2.0 * (depth + 4.0) * 2f64.powi(-24) * depth;
        assert_abs_diff_eq!(found, *expected, epsilon = bound);
    }
}

fn vectors(world: &World) {
    let rt = &world.rt;
    let mut random = Random(47);
    let shapes = [
        (37, 3, 1, 1, 1, 1, None),
        (40, 5, 2, 3, 2, 2, None),
        (29, 1, 1, 0, 1, 1, None),
        (21, 4, 3, 1, 1, 1, Some(2)),
        (21, 9, 1, 4, 1, 20, None),
    ];
    for (i, (length, kernel, stride, padding, dilation, groups, extra)) in
        shapes.into_iter().enumerate()
    {
        let dtype = TYPES[i % 3];
        let case = Case {
            input: [2, 20, 1, length],
            outputs: 20,
            kernel: [1, kernel],
            stride: [1, stride],
            padding: [0, padding],
            dilation: [1, dilation],
            groups,
            transposed: extra.map(|extra| [0, extra]),
        };
        let x = operand(world, &mut random, case.input, dtype, Way::Dense);
        let w = operand(world, &mut random, case.weight(), dtype, Way::Dense);
        let images = case.check(world, &x, &w, None);
        // The same as vectors, whose result is contiguous whatever the input's order.
        let turned = rt.view(&x, &[2, 20, length], &[20 * length, length, 1], 0).unwrap();
        let channels_last = Layout::new(&[2, 20, length], &[20 * length, 1, 20], 0).unwrap();
        let last = rt.empty(channels_last, dtype, DeviceType::Mps).unwrap();
        rt.copy(&last, &turned, false).unwrap();
        let [outer, inner, ..] = case.weight();
        let w = rt.reshape(&w, &[outer, inner, kernel]).unwrap();
        let how = Convolution {
            stride: &[stride],
            padding: &[padding],
            dilation: &[dilation],
            output_padding: &[extra.unwrap_or(0)],
            ..case.how()
        };
        for x in [&turned, &last] {
            let found = rt.convolution(x, &w, None, how).unwrap();
            assert_eq!(found.sizes(), [2, 20, case.length(1)]);
            assert!(found.strided_layout().is_contiguous());
            same(world, &found, &values(world, &images), (20 * kernel / groups) as f64);
        }
        // One vector alone.
        let alone = rt.narrow(&turned, 0, 1, 1).unwrap();
        let alone = rt.squeeze(&alone, 0).unwrap();
        let found = rt.convolution(&alone, &w, None, how).unwrap();
        assert_eq!(found.sizes(), [20, case.length(1)]);
        let half = images.numel() as usize / 2;
        same(world, &found, &values(world, &images)[half..], (20 * kernel / groups) as f64);
    }
}

fn large(world: &World) {
    let mut random = Random(53);
    let shape = Case { outputs: 68, kernel: [3, 3], padding: [1, 1], ..PLAIN };
    for (way, dtype) in [(Way::Dense, DType::F32), (Way::ChannelsLast, DType::BF16)] {
        // Enough tiles of 128 to fill a device.
        let case = Case { input: [17, 12, 33, 31], ..shape };
        let x = operand(world, &mut random, case.input, dtype, way);
        let w = operand(world, &mut random, case.weight(), dtype, way);
        case.check(world, &x, &w, None);
    }
}

fn nan(world: &World) {
    let rt = &world.rt;
    for case in [
        Case { input: [1, 2, 6, 6], outputs: 9, kernel: [3, 3], padding: [1, 1], ..PLAIN },
        Case { input: [1, 2, 6, 6], outputs: 2, kernel: [3, 3], padding: [1, 1], ..PLAIN },
    ] {
        let mut x = vec![1.0; 72];
        x[36 + 2 * 6 + 3] = f64::NAN;
        x[0] = f64::INFINITY;
        let x = tensor(world, &x, &case.input, DType::F32);
        let count = case.weight().iter().product::<i64>() as usize;
        let w = tensor(world, &vec![1.0; count], &case.weight(), DType::F32);
        let found = values(world, &rt.convolution(&x, &w, None, case.how()).unwrap());
        for (i, value) in found.iter().enumerate() {
            let (y, x) = (i / 6 % 6, i % 6);
            let near = (1..=3).contains(&y) && (2..=4).contains(&x);
            assert_eq!(value.is_nan(), near, "element {i} is {value}");
            assert_eq!(value.is_infinite(), y < 2 && x < 2, "element {i} is {value}");
        }
    }
}

fn nothing(world: &World) {
    let rt = &world.rt;
    let empty = |sizes: &[i64]| {
        rt.empty(Layout::contiguous(sizes).unwrap(), DType::F32, DeviceType::Mps).unwrap()
    };
    let case = Case { kernel: [3, 3], ..PLAIN };
    let w = world.iota(&[4, 2, 3, 3]);
    let none = rt.convolution(&empty(&[0, 2, 5, 5]), &w, None, case.how()).unwrap();
    assert_eq!(none.sizes(), [0, 4, 3, 3]);
    // Without channels there are no channels, as in PyTorch.
    let none = rt.convolution(&empty(&[2, 0, 5, 5]), &empty(&[4, 0, 3, 3]), None, case.how());
    assert_eq!(none.unwrap().sizes(), [2, 0, 3, 3]);
    // Of padding alone, the bias is left.
    let padded = Case { padding: [2, 2], ..case };
    let b = rt.from_slice(&[1.5f32, -2.0, 3.0, 4.0], &[4], DType::F32, DeviceType::Mps).unwrap();
    let bias_alone = rt.convolution(&empty(&[1, 2, 0, 1]), &w, Some(&b), padded.how()).unwrap();
    assert_eq!(bias_alone.sizes(), [1, 4, 2, 3]);
    for (i, value) in world.floats(&bias_alone).into_iter().enumerate() {
        assert_abs_diff_eq!(value, [1.5, -2.0, 3.0, 4.0][i / 6], epsilon = 0.0);
    }
    let spread = Convolution { transposed: true, ..case.how() };
    let none = rt.convolution(&empty(&[0, 4, 5, 5]), &w, None, spread).unwrap();
    assert_eq!(none.sizes(), [0, 2, 7, 7]);
}

/// What programs take for granted of the result's strides.
fn formats(world: &World) {
    let rt = &world.rt;
    let mut random = Random(59);
    let mut strides_of = |input, of_input, outputs, of_weight| {
        let case = Case { input, outputs, kernel: [3, 3], padding: [1, 1], ..PLAIN };
        let x = operand(world, &mut random, case.input, DType::F32, of_input);
        let w = operand(world, &mut random, case.weight(), DType::F32, of_weight);
        let result = case.check(world, &x, &w, None);
        assert!(!result.is_packed_view());
        result.strided_layout().strides().to_vec()
    };
    let input = [2, 3, 4, 5];
    assert_eq!(strides_of(input, Way::Dense, 10, Way::Dense), [200, 20, 5, 1]);
    assert_eq!(strides_of(input, Way::ChannelsLast, 10, Way::Dense), [200, 1, 50, 10]);
    assert_eq!(strides_of(input, Way::Dense, 10, Way::ChannelsLast), [200, 1, 50, 10]);
    assert_eq!(strides_of(input, Way::SlicedLast, 2, Way::Dense), [40, 1, 10, 2]);
    assert_eq!(strides_of(input, Way::Transposed, 2, Way::Dense), [40, 20, 5, 1]);
    // Of one channel the strides of the others decide, and all are in row-major order.
    assert_eq!(strides_of([2, 1, 4, 5], Way::Dense, 3, Way::Dense), [60, 20, 5, 1]);
    assert_eq!(strides_of([2, 1, 4, 5], Way::ChannelsLast, 3, Way::Dense), [60, 1, 15, 3]);
    // One place an image is contiguous in both; unbatched images have no format.
    let image = rt.view(&world.iota(&[120]), &[3, 5, 8], &[1, 24, 3], 0).unwrap();
    let case = Case { input: [1, 3, 5, 8], outputs: 4, kernel: [3, 3], ..PLAIN };
    let w = world.iota(&[4, 3, 3, 3]);
    let alone = rt.convolution(&image, &w, None, case.how()).unwrap();
    assert_eq!(alone.sizes(), [4, 3, 6]);
    assert!(alone.strided_layout().is_contiguous());
    let batch = rt.reshape(&image, &[1, 3, 5, 8]).unwrap();
    let batch = rt.convolution(&batch, &w, None, case.how()).unwrap();
    assert_eq!(values(world, &alone), values(world, &batch));
}

fn refusals(world: &World) {
    let rt = &world.rt;
    let plain = PLAIN.how();
    let text = |x: &[i64], w: &[i64], how: Convolution<'_>| {
        rt.convolution(&world.iota(x), &world.iota(w), None, how).unwrap_err().to_string()
    };
    let refused = rt
        .convolution(&world.iota(&[1, 2, 3, 3, 3]), &world.iota(&[2, 2, 1, 1, 1]), None, plain)
        .unwrap_err();
    assert!(matches!(refused, Error::NotSupported(_)), "{refused}");
    assert!(refused.to_string().contains("convolution: weight"), "{refused}");
    assert!(text(&[1, 2, 3, 3], &[2, 3, 1, 1], plain).contains("[2, 3, 1, 1]"));
    assert!(text(&[2, 3], &[2, 3, 1, 1], plain).contains("[2, 3]"));
    assert!(text(&[1, 2, 3, 3], &[2, 2, 5, 1], plain).contains("gives no output"));
    assert!(text(&[1, 2, 3, 3], &[2, 2, 0, 1], plain).contains("no elements"));
    let grouped = |groups| Convolution { groups, ..plain };
    assert!(text(&[1, 2, 3, 3], &[2, 2, 1, 1], grouped(0)).contains("groups"));
    assert!(text(&[1, 4, 3, 3], &[3, 2, 1, 1], grouped(2)).contains("2 groups"));
    assert!(
        text(&[1, 2, 3, 3], &[2, 2, 1, 1], Convolution { stride: &[0], ..plain })
            .contains("stride")
    );
    assert!(
        text(&[1, 2, 3, 3], &[2, 2, 1, 1], Convolution { padding: &[1, -1], ..plain })
            .contains("[1, -1]")
    );
    let three = Convolution { dilation: &[1, 1, 1], ..plain };
    assert!(text(&[1, 2, 3, 3], &[2, 2, 1, 1], three).contains("dilation"));
    let extra = Convolution { transposed: true, output_padding: &[1], ..plain };
    assert!(text(&[1, 2, 3, 3], &[2, 2, 1, 1], extra).contains("output_padding"));
    let ints = rt.from_bytes(&[0; 16], &[1, 1, 2, 2], DType::I32, DeviceType::Mps).unwrap();
    let refused = rt.convolution(&ints, &ints, None, plain).unwrap_err();
    assert!(matches!(refused, Error::NotSupported(_)), "{refused}");
    assert!(refused.to_string().contains("convolution: input"), "{refused}");
    let half = rt.from_bytes(&[0; 8], &[1, 1, 2, 2], DType::F16, DeviceType::Mps).unwrap();
    let mixed = rt.convolution(&world.iota(&[1, 1, 2, 2]), &half, None, plain).unwrap_err();
    assert!(mixed.to_string().contains("weight"), "{mixed}");
    let bias = world.iota(&[3]);
    let (x, w) = (world.iota(&[1, 2, 3, 3]), world.iota(&[2, 2, 1, 1]));
    let refused = rt.convolution(&x, &w, Some(&bias), plain).unwrap_err().to_string();
    assert!(refused.contains("bias") && refused.contains("[2]"), "{refused}");
}
