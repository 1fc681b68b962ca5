//! Convolutions of one and two dimensions, transposed ones too.
//!
//! A kernel of one element is a matrix product as it is. The others are one as well,
//! of the weights and of an input whose elements the kernel gathers (`conv_gather`), or,
//! where a group has few output channels, sums of their own (`conv_direct`).

use super::dense::{countable, float_code, grid, params, relaid, shader, start, word};
use super::matmul::{Gather, Matrices, Product};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const ROWS: (&str, &str) = (
    "conv_rows",
    shader!(
        "half.wgsl",
        "ops/vectors.wgsl",
        "ops/matmul_common.wgsl",
        "ops/matmul_tile.wgsl",
        "ops/conv_window.wgsl",
        "ops/conv_gather.wgsl",
        "ops/conv_rows.wgsl",
    ),
);
const COLUMNS: (&str, &str) = (
    "conv_columns",
    shader!(
        "half.wgsl",
        "ops/vectors.wgsl",
        "ops/matmul_common.wgsl",
        "ops/matmul_tile.wgsl",
        "ops/conv_window.wgsl",
        "ops/conv_gather.wgsl",
        "ops/conv_columns.wgsl",
    ),
);
const DIRECT: (&str, &str) = (
    "conv_direct",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/image_words.wgsl",
        "ops/conv_window.wgsl",
        "ops/conv_direct.wgsl"
    ),
);

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[ROWS, COLUMNS, DIRECT];

const OPERATOR: &str = "convolution";

/// Output channels of a group up to which a tile of them would be mostly empty.
const FEW_CHANNELS: i64 = 8;
/// Input channels of a group from which a kernel of one element is a matrix product.
const DEEP_POINT: i64 = 16;
/// Output places below which a tile holds those of several images.
const FEW_PLACES: i64 = 64;

/// How a kernel goes over its input: lists of one value a spatial dimension, vertical
/// first, or of one for both.
#[derive(Debug, Clone, Copy)]
pub struct Convolution<'a> {
    /// From one output's window to the next; of a transposed convolution, from one
    /// input's to the next.
    pub stride: &'a [i64],
    /// Zeros that are added on each side of the input; of a transposed convolution,
    /// outputs that are left out on each side.
    pub padding: &'a [i64],
    /// From one element of the kernel to the next.
    pub dilation: &'a [i64],
    /// Whether each input is spread over a window of outputs.
    pub transposed: bool,
    /// Outputs that are added at the end; of transposed convolutions alone.
    pub output_padding: &'a [i64],
    /// Parts of the channels that have kernels of their own.
    pub groups: i64,
}

/// What a convolution works on.
#[derive(Debug, Clone, Copy)]
struct Operands<'a> {
    result: &'a Tensor,
    input: &'a Tensor,
    weight: &'a Tensor,
    bias: Option<&'a Tensor>,
}

/// A convolution of images: a vector is an image of one line.
#[derive(Debug, Clone, Copy)]
struct Images {
    count: i64,
    groups: i64,
    /// Input channels of a group.
    channels: i64,
    /// Output channels of a group.
    outputs: i64,
    size: [i64; 2],
    out: [i64; 2],
    kernel: [i64; 2],
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    transposed: bool,
    /// Of the input: image, channel, y, x.
    input: [i64; 4],
    /// Of the weights: group, output channel, input channel, y, x.
    weights: [i64; 5],
    bias: i64,
    channels_last: bool,
}

impl Runtime {
    /// PyTorch's `convolution`. The input is [N, C, L] or [N, C, H, W], N being absent in
    /// both or present; the weights are [O, C / groups, kernel], or [C, O / groups,
    /// kernel] of a transposed convolution, and the bias is `[O]`; all are of one type. The
    /// result is channels-last where the input or the weights are images that are so, and
    /// contiguous otherwise. Without input channels it has no channels either.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes that do not fit each other, and
    /// [`Error::NotSupported`] for other ranks, and for types but f32, f16 and bf16.
    pub fn convolution(
        &self,
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        how: Convolution<'_>,
    ) -> Result<Tensor> {
        let images = Images::new(input, weight, bias, how)?;
        let Images { count, out: [height, width], channels_last, .. } = images;
        let all = if images.channels == 0 { 0 } else { images.groups * images.outputs };
        let result = match channels_last {
            true => self.fresh(&[count, height, width, all], input.dtype)?,
            false => self.fresh(&[count, all, height, width], input.dtype)?,
        };
        if result.numel() > 0 {
            for (name, tensor) in [("input", input), ("weight", weight), ("the result", &result)] {
                countable(OPERATOR, name, tensor)?;
                word(OPERATOR, name, tensor.strided_layout().end())?;
            }
            self.convolve(&images, Operands { result: &result, input, weight, bias })?;
        }
        let layout = match (weight.sizes().len(), input.sizes().len()) {
            (_, 2) => Layout::contiguous(&[all, width])?,
            (3, _) => Layout::contiguous(&[count, all, width])?,
            (_, 3) => Layout::contiguous(&[all, height, width])?,
            _ => {
                let sizes = [count, all, height, width];
                let area = width.saturating_mul(height);
                match channels_last {
                    true => Layout::new(
                        &sizes,
                        &[area.saturating_mul(all), 1, width.saturating_mul(all), all],
                        0,
                    )?,
                    false => Layout::contiguous(&sizes)?,
                }
            }
        };
        relaid(&result, layout)
    }

    fn convolve(&self, images: &Images, on: Operands<'_>) -> Result<()> {
        let places = images.places();
        // With one place an image, channels-last and contiguous are the same.
        let images = &Images { channels_last: images.channels_last || places == 1, ..*images };
        let pixels = images.pointwise();
        if images.outputs <= FEW_CHANNELS && (pixels.is_none() || images.channels < DEEP_POINT) {
            return self.convolve_directly(images, on);
        }
        if !images.channels_last && images.count > 1 && places < FEW_PLACES {
            // By rows, and turned afterwards.
            let last = Images { channels_last: true, ..*images };
            let (count, channels) = (images.count, images.groups * images.outputs);
            let between = self.fresh(&[count, places, channels], on.result.dtype)?;
            self.convolve(&last, Operands { result: &between, ..on })?;
            let strides = [places * channels, 1, channels];
            let turned = Layout::new(&[count, channels, places], &strides, 0)?;
            let to = relaid(on.result, Layout::contiguous(&[count, channels, places])?)?;
            return self.copy(&to, &relaid(&between, turned)?, true);
        }
        if pixels.is_none() {
            return self.convolve_gathered(images, on);
        }
        let [group, output, channel, ..] = images.weights;
        self.multiply(&images.product(on, pixels, [group, output, channel]))
    }

    fn convolve_gathered(&self, images: &Images, on: Operands<'_>) -> Result<()> {
        let Operands { input, weight, .. } = on;
        let Images { groups, channels, outputs, kernel: [kernel_y, kernel_x], .. } = *images;
        let [image, channel, y, x] = images.input;
        let starts = [input.layout.offset(), image, channels, y, x];
        let channels_inner =
            channel == 1 && self.on_device(input) && starts.iter().all(|start| start % 4 == 0);
        let [s_group, s_output, s_channel, s_y, s_x] = images.weights;
        let (sizes, strides) = match channels_inner {
            true => (
                [groups, outputs, kernel_y, kernel_x, channels],
                [s_group, s_output, s_y, s_x, s_channel],
            ),
            false => (
                [groups, outputs, channels, kernel_y, kernel_x],
                [s_group, s_output, s_channel, s_y, s_x],
            ),
        };
        let weights = relaid(weight, Layout::new(&sizes, &strides, weight.layout.offset())?)?;
        let weights = self.dense(&weights, 1)?;
        let depth = images.depth();
        let quads = depth % 4 == 0 && weights.layout.offset() % 4 == 0;
        let number = |value: i64| word(OPERATOR, "a size or stride", value);
        let [height, width] = images.size;
        let constants = images.constants()?;
        let constants: Vec<(&str, u32)> = constants
            .into_iter()
            .chain([
                ("A_DEEP", 1),
                ("B_DEEP", 1),
                ("CHANNELS_INNER", channels_inner.into()),
                ("WEIGHT_QUADS", quads.into()),
            ])
            .collect();
        let gather = Gather {
            shader: if images.channels_last { ROWS } else { COLUMNS },
            constants: &constants,
            of_rows: images.channels_last,
            words: [
                number(images.input_group())?,
                number(image)?,
                number(channel)?,
                number(y)?,
                number(x)?,
                number(height)?,
                number(width)?,
                number(images.out[1])?,
                number(images.places())?,
            ],
        };
        let on = Operands { weight: &weights, ..on };
        let product = images.product(on, None, [outputs * depth, depth, 1]);
        self.multiply_gathered(&product, Some(&gather))
    }

    fn convolve_directly(&self, images: &Images, on: Operands<'_>) -> Result<()> {
        let Operands { result, input, weight, bias } = on;
        let kind = float_code(OPERATOR, "input", input.dtype)?;
        let Images { groups, channels, outputs, size, out, .. } = *images;
        let number = |value: i64| word(OPERATOR, "a size or stride", value);
        let numbers =
            |values: &[i64]| values.iter().map(|&v| number(v)).collect::<Result<Vec<_>>>();
        let counts = numbers(&[result.numel(), groups * outputs, outputs, channels])?;
        let sizes = numbers(&[size, out].concat())?;
        let from = numbers(&images.input)?;
        let by = numbers(&images.weights)?;
        let per_bias = number(images.bias)?;
        let constants: Vec<(&str, u32)> = images
            .constants()?
            .into_iter()
            .chain([
                ("TYPE", kind),
                ("CHANNELS_LAST", images.channels_last.into()),
                ("BIAS", bias.is_some().into()),
            ])
            .collect();
        let element = input.dtype.size() as u32;
        let invocations = (result.numel() as u64).div_ceil(u64::from(4 / element));
        let launch = Launch {
            name: DIRECT.0,
            wgsl: DIRECT.1,
            constants: &constants,
            operands: &[
                Operand::write(result),
                Operand::read(input),
                Operand::read(weight),
                Operand::read(bias.unwrap_or(weight)),
            ],
            groups: grid(OPERATOR, invocations.div_ceil(256))?,
        };
        self.launch(launch, |at| {
            let mut words = [counts, sizes].concat();
            words.push(start(at, 1, element));
            words.extend(from);
            words.push(start(at, 2, element));
            words.extend(by);
            words.extend([start(at, 3, element), per_bias, start(at, 0, 4)]);
            params(&words)
        })
    }
}

impl Images {
    fn new(
        input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        how: Convolution<'_>,
    ) -> Result<Self> {
        let of = |tensor: &Tensor| format!("of sizes {:?} and {}", tensor.sizes(), tensor.dtype);
        float_code(OPERATOR, "input", input.dtype)?;
        let spatial = weight.sizes().len().wrapping_sub(2);
        if !matches!(spatial, 1 | 2) {
            return Err(Error::NotSupported(format!(
                "{OPERATOR}: weight is {}; one or two spatial dimensions are supported",
                of(weight)
            )));
        }
        if ![spatial + 1, spatial + 2].contains(&input.sizes().len()) {
            let reason = format!("{OPERATOR}: weight is {}", of(weight));
            return Err(Error::invalid("input", of(input), reason));
        }
        for (name, tensor) in [("weight", Some(weight)), ("bias", bias)] {
            if let Some(tensor) = tensor.filter(|tensor| tensor.dtype != input.dtype) {
                let reason = format!("{OPERATOR}: input is of {}", input.dtype);
                return Err(Error::invalid(name, of(tensor), reason));
            }
        }
        let groups = how.groups;
        if groups < 1 {
            return Err(Error::invalid("groups", groups, format!("{OPERATOR}: 1 is the least")));
        }
        let stride = per_axis("stride", how.stride, spatial, 1)?;
        let padding = per_axis("padding", how.padding, spatial, 0)?;
        let dilation = per_axis("dilation", how.dilation, spatial, 1)?;
        let extra = match how.transposed {
            true => per_axis("output_padding", how.output_padding, spatial, 0)?,
            false => [0, 0],
        };
        let ([count, all_channels, height, width], from) = as_images(input, spatial);
        let ([outer, inner, kernel_y, kernel_x], by) = as_images(weight, spatial);
        let fits = match how.transposed {
            true => all_channels == outer,
            false => Some(all_channels) == inner.checked_mul(groups),
        };
        if !fits || outer < groups || outer % groups != 0 {
            let reason = format!("{OPERATOR}: input is {}, of {groups} groups", of(input));
            return Err(Error::invalid("weight", of(weight), reason));
        }
        if kernel_y < 1 || kernel_x < 1 {
            let reason = format!("{OPERATOR}: the kernel has no elements");
            return Err(Error::invalid("weight", of(weight), reason));
        }
        let [s_outer, s_inner, s_y, s_x] = by;
        let of_group = outer / groups;
        let s_group = if groups == 1 { 0 } else { of_group.saturating_mul(s_outer) };
        let (channels, outputs, weights) = match how.transposed {
            true => (of_group, inner, [s_group, s_inner, s_outer, s_y, s_x]),
            false => (inner, of_group, [s_group, s_outer, s_inner, s_y, s_x]),
        };
        let mut per_bias = 0;
        if let Some(bias) = bias {
            let expected = outputs.saturating_mul(groups);
            if *bias.sizes() != [expected] {
                let reason = format!("{OPERATOR}: sizes [{expected}] are expected");
                return Err(Error::invalid("bias", of(bias), reason));
            }
            if expected > 1 {
                per_bias = bias.layout.strides().first().copied().unwrap_or(0);
            }
        }
        let along = |size, kernel, d: usize| {
            let at = |values: [i64; 2]| values.get(d).copied().unwrap_or(1);
            let step = [at(stride), at(padding), at(dilation), at(extra)];
            output_length(size, kernel, step, how.transposed)
        };
        Ok(Images {
            count,
            groups,
            channels,
            outputs,
            size: [height, width],
            out: [along(height, kernel_y, 0)?, along(width, kernel_x, 1)?],
            kernel: [kernel_y, kernel_x],
            stride,
            padding,
            dilation,
            transposed: how.transposed,
            input: from,
            weights,
            bias: per_bias,
            channels_last: suggests_channels_last(input) || suggests_channels_last(weight),
        })
    }

    /// Output places of an image.
    fn places(&self) -> i64 {
        self.out.iter().product()
    }

    /// Terms of a sum.
    fn depth(&self) -> i64 {
        self.channels * self.kernel.iter().product::<i64>()
    }

    /// Elements from one group of the input to the next.
    fn input_group(&self) -> i64 {
        let [_, channel, ..] = self.input;
        if self.groups == 1 { 0 } else { self.channels * channel }
    }

    /// Elements from one place of the input to the next, where each output is made of the
    /// place of its own and they lie in one row; from one image to the next, where it is
    /// one place.
    fn pointwise(&self) -> Option<i64> {
        let plain = self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == [0, 0];
        let [image, _, y, x] = self.input;
        match self.size {
            _ if !plain || self.size != self.out => None,
            [1, 1] => Some(image),
            [1, _] => Some(x),
            [_, 1] => Some(y),
            [_, width] => (y == width * x).then_some(x),
        }
    }

    fn constants(&self) -> Result<[(&'static str, u32); 9]> {
        let number = |name: &'static str, value| Ok((name, word(OPERATOR, name, value)?));
        Ok([
            number("KERNEL_HEIGHT", self.kernel[0])?,
            number("KERNEL_WIDTH", self.kernel[1])?,
            number("STRIDE_Y", self.stride[0])?,
            number("STRIDE_X", self.stride[1])?,
            number("PADDING_Y", self.padding[0])?,
            number("PADDING_X", self.padding[1])?,
            number("DILATION_Y", self.dilation[0])?,
            number("DILATION_X", self.dilation[1])?,
            ("TRANSPOSED", self.transposed.into()),
        ])
    }

    /// The product of weights, of these elements from one group, output channel and term to
    /// the next, and input, whose places are so far apart or are gathered. Channels-last,
    /// the output's places are its rows.
    fn product<'a>(
        &self,
        on: Operands<'a>,
        per_place: Option<i64>,
        [per_group, per_output, per_term]: [i64; 3],
    ) -> Product<'a> {
        let Images { count, groups, outputs, .. } = *self;
        let [image, channel, ..] = self.input;
        let (places, all) = (self.places(), groups * outputs);
        let input = |row, column| {
            let strides = [image, self.input_group(), row, column];
            Matrices { tensor: on.input, strides }
        };
        let weights = |row, column| {
            let strides = [0, per_group, row, column];
            Matrices { tensor: on.weight, strides }
        };
        let out = |strides| Matrices { tensor: on.result, strides };
        let addend = |row, column| {
            let strides = [0, outputs * self.bias, row, column];
            on.bias.map(|bias| (Matrices { tensor: bias, strides }, 1.0))
        };
        let place = per_place.unwrap_or(0);
        let by_columns = Product {
            operator: OPERATOR,
            a: weights(per_output, per_term),
            b: input(channel, place),
            b_shared_by: 1,
            addend: addend(self.bias, 0),
            alpha: 1.0,
            out: out([places * all, outputs * places, places, 1]),
            outer: count,
            inner: groups,
            rows: outputs,
            columns: places,
            depth: self.depth(),
        };
        if !self.channels_last {
            return by_columns;
        }
        // The rows of all images follow each other in the output; in the input, if need be.
        let joined = count == 1 || per_place.is_none_or(|place| image == places * place);
        let (outer, rows) = if joined { (1, count * places) } else { (count, places) };
        Product {
            a: input(place, channel),
            b: weights(per_term, per_output),
            addend: addend(0, self.bias),
            out: out([places * all, outputs, all, 1]),
            outer,
            rows,
            columns: outputs,
            ..by_columns
        }
    }
}

/// The sizes and strides of images, of a vector's as of one line's. A dimension of one
/// element has stride 0.
fn as_images(tensor: &Tensor, spatial: usize) -> ([i64; 4], [i64; 4]) {
    let (mut sizes, mut strides) = ([1; 4], [0; 4]);
    let places: &[usize] = if spatial == 1 { &[3, 1, 0] } else { &[3, 2, 1, 0] };
    let layout = &tensor.layout;
    let from_last = layout.sizes().iter().zip(layout.strides()).rev();
    for (&place, (&size, &stride)) in places.iter().zip(from_last) {
        if let (Some(to_size), Some(to_stride)) = (sizes.get_mut(place), strides.get_mut(place)) {
            *to_size = size;
            *to_stride = if size == 1 { 0 } else { stride };
        }
    }
    (sizes, strides)
}

/// One value for all spatial dimensions, or one each; a vector's is the horizontal one.
fn per_axis(name: &'static str, values: &[i64], spatial: usize, least: i64) -> Result<[i64; 2]> {
    let pair = match (values, spatial) {
        (&[x], 1) => [least, x],
        (&[both], _) => [both, both],
        (&[y, x], 2) => [y, x],
        _ => {
            let reason = format!("{OPERATOR}: one value is expected, or {spatial}");
            return Err(Error::invalid(name, format_args!("{values:?}"), reason));
        }
    };
    if pair.iter().any(|&value| value < least || value > i64::from(i32::MAX)) {
        let reason = format!("{OPERATOR}: {least} is the least, 2^31 - 1 the limit");
        return Err(Error::invalid(name, format_args!("{values:?}"), reason));
    }
    Ok(pair)
}

/// Outputs along a dimension; the formulas of PyTorch's documentation of `Conv2d` and
/// `ConvTranspose2d`.
fn output_length(
    size: i64,
    kernel: i64,
    [stride, padding, dilation, extra]: [i64; 4],
    transposed: bool,
) -> Result<i64> {
    let reach = (kernel - 1).saturating_mul(dilation).saturating_add(1);
    let padded = size.saturating_add(2 * padding);
    let length = if transposed {
        if extra >= stride.max(dilation) {
            let reason = format!("{OPERATOR}: less than stride or dilation is expected");
            return Err(Error::invalid("output_padding", extra, reason));
        }
        let spread = (size - 1).saturating_mul(stride).saturating_add(reach + extra);
        spread.saturating_sub(2 * padding)
    } else {
        padded.saturating_sub(reach).div_euclid(stride) + 1
    };
    if length < 1 {
        let reason = format!(
            "{OPERATOR}: with padding {padding}, a kernel of {reach} over {size} elements \
             gives no output"
        );
        return Err(Error::invalid("weight", format_args!("{kernel} elements long"), reason));
    }
    // Places are counted in i32 by the shaders, those beside the input too.
    let farthest = padded.max(length.saturating_add(padding)).saturating_add(reach);
    if farthest > i64::from(i32::MAX) {
        return Err(Error::NotSupported(format!(
            "{OPERATOR}: input of {size} elements with padding {padding} and a kernel of {reach}: \
             2^31 - 1 are the limit"
        )));
    }
    Ok(length)
}

/// PyTorch's `suggest_memory_format`: whether the strides of images grow from the channels
/// over x and y to the image. Where sizes of 1 leave it open, they are not channels-last.
fn suggests_channels_last(tensor: &Tensor) -> bool {
    let (&[n, c, h, w], &[per_n, per_c, per_y, per_x]) =
        (tensor.layout.sizes(), tensor.layout.strides())
    else {
        return false;
    };
    let mut least = 0i64;
    for (size, stride) in [(c, per_c), (w, per_x), (h, per_y)] {
        if size == 0 || stride < least {
            return false;
        }
        least = stride.saturating_mul(size.max(1));
    }
    per_c != 0 && n != 0 && per_n >= least && least != per_c
}
