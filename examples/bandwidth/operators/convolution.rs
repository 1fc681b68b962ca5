//! Convolutions of images.

use super::noise::Noise;
use super::{Against, Case, Ready, Scale, Sum, Target, Work};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::ops::conv::Convolution;
use aoti_wgpu::runtime::Runtime;

/// A convolution of square kernels.
#[derive(Clone, Copy)]
struct Images {
    /// Images, channels, height, width.
    input: [i64; 4],
    /// Channels of the result.
    outputs: i64,
    kernel: i64,
    stride: i64,
    padding: i64,
    groups: i64,
    transposed: bool,
    dtype: DType,
    channels_last: bool,
}

/// Input, outputs, kernel, stride, padding, groups, transposed.
type Sizes = ([i64; 4], i64, i64, i64, i64, i64, bool);

const SIZES: &[Sizes] = &[
    ([8, 64, 56, 56], 64, 3, 1, 1, 1, false),
    ([8, 128, 28, 28], 128, 3, 1, 1, 1, false),
    ([8, 512, 7, 7], 512, 3, 1, 1, 1, false),
    ([1, 256, 14, 14], 256, 3, 1, 1, 1, false),
    ([8, 128, 56, 56], 128, 3, 2, 1, 1, false),
    ([8, 3, 224, 224], 64, 7, 2, 3, 1, false),
    ([8, 256, 56, 56], 64, 1, 1, 0, 1, false),
    ([8, 256, 56, 56], 256, 3, 1, 1, 256, false),
    ([8, 256, 56, 56], 256, 3, 1, 1, 32, false),
    ([1, 64, 512, 512], 3, 3, 1, 1, 1, false),
    ([8, 128, 28, 28], 64, 2, 2, 0, 1, true),
    ([8, 128, 28, 28], 64, 4, 2, 1, 1, true),
];

pub fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for &(input, outputs, kernel, stride, padding, groups, transposed) in SIZES {
        for (dtype, channels_last) in
            [(DType::F32, false), (DType::F32, true), (DType::BF16, false)]
        {
            let images = Images {
                input: input.map(|size| scale.of(size)),
                outputs: scale.of(outputs),
                kernel,
                stride,
                padding,
                groups: scale.of(groups),
                transposed,
                dtype,
                channels_last,
            };
            // 40% of what PyTorch reaches with cuDNN on the device that the target is for.
            let target = match (cases.is_empty(), dtype) {
                (true, DType::F32) => Target::Rate(13.2),
                _ => Target::Unset,
            };
            cases.push(images.case(target));
        }
    }
    cases
}

impl Images {
    /// As PyTorch has them: the first dimension is of the outputs, or of the inputs of a
    /// transposed one, the second is of a group's.
    fn weight(self) -> [i64; 4] {
        let [_, channels, _, _] = self.input;
        let [first, second] =
            if self.transposed { [channels, self.outputs] } else { [self.outputs, channels] };
        [first, second / self.groups, self.kernel, self.kernel]
    }

    fn output(self) -> [i64; 4] {
        let [count, _, height, width] = self.input;
        let size = |size: i64| match self.transposed {
            true => (size - 1) * self.stride - 2 * self.padding + self.kernel,
            false => (size + 2 * self.padding - self.kernel) / self.stride + 1,
        };
        [count, self.outputs, size(height), size(width)]
    }

    fn case(self, target: Target) -> Case {
        let list = |sizes: [i64; 4]| sizes.map(|size| size.to_string()).join("x");
        let dtype = super::short(self.dtype);
        let mut name = format!("conv {dtype} {} by {}", list(self.input), list(self.weight()));
        for (said, text) in [
            (self.stride > 1, format!(", stride {}", self.stride)),
            (self.groups > 1, format!(", {} groups", self.groups)),
            (self.transposed, ", transposed".into()),
            (self.channels_last, ", channels-last".into()),
        ] {
            if said {
                name += &text;
            }
        }
        let [_, inner, height, width] = self.weight();
        let windows = if self.transposed { self.input } else { self.output() };
        let operations = 2 * windows.iter().product::<i64>() * inner * height * width;
        Case {
            name,
            work: Work::Operations(operations),
            against: Against::Nothing,
            target,
            prepare: Box::new(move |rt| self.ready(rt)),
        }
    }

    /// Strides of (images, channels, height, width).
    fn strides(self, [_, channels, height, width]: [i64; 4]) -> [i64; 4] {
        match self.channels_last {
            true => [channels * height * width, 1, width * channels, channels],
            false => [channels * height * width, height * width, width, 1],
        }
    }

    fn ready(self, rt: &Runtime) -> Result<Ready> {
        let (left, right) = (Noise::new(rt, 1, self.dtype)?, Noise::new(rt, 2, self.dtype)?);
        let input = left.strided(rt, &self.input, &self.strides(self.input))?;
        let weight = right.strided(rt, &self.weight(), &self.strides(self.weight()))?;
        Ok(Ready {
            call: Box::new(move |rt, _| {
                let how = Convolution {
                    stride: &[self.stride],
                    padding: &[self.padding],
                    dilation: &[1],
                    transposed: self.transposed,
                    output_padding: &[0],
                    groups: self.groups,
                };
                rt.convolution(&input, &weight, None, how)
            }),
            expected: Box::new(move |index| self.expected(&left, &right, index)),
        })
    }

    /// The sum that element `index` of the result, row-major, is.
    fn expected(self, input: &Noise, weight: &Noise, index: i64) -> Sum {
        let [_, outputs, out_height, out_width] = self.output();
        let (x, rest) = (index % out_width, index / out_width);
        let (y, rest) = (rest % out_height, rest / out_height);
        let (channel, image) = (rest % outputs, rest / outputs);
        let [_, channels, height, width] = self.input;
        let each = channels / self.groups;
        let group = channel / (outputs / self.groups);
        let place = |of: [i64; 4], strides: [i64; 4]| -> i64 {
            of.iter().zip(strides).map(|(at, stride)| at * stride).sum()
        };
        // The input's place under an element of the kernel, where it is inside.
        let under = |out: i64, element: i64, size: i64| {
            let at = match self.transposed {
                true => {
                    let at = out + self.padding - element;
                    (at % self.stride == 0).then_some(at / self.stride)?
                }
                false => out * self.stride - self.padding + element,
            };
            (0..size).contains(&at).then_some(at)
        };
        let mut terms = Vec::new();
        for ky in 0..self.kernel {
            for kx in 0..self.kernel {
                let (Some(iy), Some(ix)) = (under(y, ky, height), under(x, kx, width)) else {
                    continue;
                };
                for c in 0..each {
                    let from = group * each + c;
                    let at = match self.transposed {
                        true => [from, channel % (outputs / self.groups), ky, kx],
                        false => [channel, c, ky, kx],
                    };
                    let a = input.at(place([image, from, iy, ix], self.strides(self.input)));
                    terms.push(a * weight.at(place(at, self.strides(self.weight()))));
                }
            }
        }
        Sum::of(terms)
    }
}
