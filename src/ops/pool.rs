//! 2-D pooling of [C, H, W] or [N, C, H, W], channels-last where the input is.

use super::dense::{countable, float_code, grid, params, relaid, shader, start, word};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;

const POOL: (&str, &str) =
    ("pool", shader!("half.wgsl", "ops/elements.wgsl", "ops/image_words.wgsl", "ops/pool.wgsl"));

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[POOL];

/// The window of a pooling: lists of one value for both directions or of two, vertical
/// first. An empty stride is the kernel's size.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// Elements of the window.
    pub kernel_size: &'a [i64],
    /// From one window to the next.
    pub stride: &'a [i64],
    /// Elements that are added around the input.
    pub padding: &'a [i64],
    /// From one element of a window to the next.
    pub dilation: &'a [i64],
    /// Whether windows that reach over the end count.
    pub ceil_mode: bool,
}

/// What makes a pooling an average, and how.
struct Average {
    count_include_pad: bool,
    divisor: Option<i64>,
}

impl Runtime {
    /// PyTorch's `max_pool2d_with_indices`: the largest element of each window, NaN before
    /// all, and its int64 place in its plane.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a window that does not fit; [`Error::NotSupported`]
    /// for dtypes but f32, f16 and bf16.
    pub fn max_pool2d(&self, input: &Tensor, window: Window<'_>) -> Result<(Tensor, Tensor)> {
        self.pool("max_pool2d_with_indices", input, window, None)
    }

    /// PyTorch's `avg_pool2d`: the mean of each window, over what lies in the input, or
    /// with its padding, or by a divisor of the caller's.
    ///
    /// # Errors
    /// As [`Runtime::max_pool2d`].
    pub fn avg_pool2d(
        &self,
        input: &Tensor,
        window: Window<'_>,
        count_include_pad: bool,
        divisor: Option<i64>,
    ) -> Result<Tensor> {
        if divisor == Some(0) {
            return Err(Error::invalid("divisor_override", 0, "it divides"));
        }
        let average = Average { count_include_pad, divisor };
        Ok(self.pool("avg_pool2d", input, window, Some(average))?.0)
    }

    fn pool(
        &self,
        operator: &'static str,
        input: &Tensor,
        window: Window<'_>,
        average: Option<Average>,
    ) -> Result<(Tensor, Tensor)> {
        let kind = float_code(operator, "self", input.dtype)?;
        let [n, c, h, w] = match *input.sizes() {
            [c, h, w] => [1, c, h, w],
            [n, c, h, w] => [n, c, h, w],
            _ => {
                let found = format!("of sizes {:?}", input.sizes());
                let reason = format!("{operator}: [C, H, W] or [N, C, H, W] is expected");
                return Err(Error::invalid("self", found, reason));
            }
        };
        let kernel = two("kernel_size", window.kernel_size, None, 1)?;
        let stride = two("stride", window.stride, Some(kernel), 1)?;
        let padding = two("padding", window.padding, Some([0, 0]), 0)?;
        let dilation = two("dilation", window.dilation, Some([1, 1]), 1)?;
        let length = |size: i64, d: usize| {
            let at = |values: [i64; 2]| values.get(d).copied().unwrap_or(1);
            output_length(
                operator,
                size,
                [at(kernel), at(stride), at(padding), at(dilation)],
                window.ceil_mode,
            )
        };
        let (oh, ow) = (length(h, 0)?, length(w, 1)?);
        let mut nhwc = None;
        if let &[a, b, y, x] = input.layout.strides()
            && input.layout.rank() == 4
        {
            let last = Layout::new(&[n, h, w, c], &[a, y, x, b], input.layout.offset())?;
            if last.is_contiguous() && !input.layout.is_contiguous() {
                nhwc = Some(last);
            }
        }
        let channels_last = nhwc.is_some();
        let source = match nhwc {
            Some(layout) => self.dense(&relaid(input, layout)?, 4)?,
            None => self.dense(input, 4)?,
        };
        let shape = if channels_last { [n, oh, ow, c] } else { [n, c, oh, ow] };
        let values = self.fresh(&shape, input.dtype)?;
        let places = if average.is_some() { 1 } else { values.numel() };
        let indices = self.fresh(&[places], DType::I64)?;
        if values.numel() > 0 {
            countable(operator, "self", &source)?;
            let number = |value: i64| word(operator, "a size", value);
            let mut words = vec![number(values.numel())?];
            for value in [c, h, w, oh, ow].into_iter().chain(kernel).chain(stride).chain(padding) {
                words.push(number(value)?);
            }
            for value in dilation {
                words.push(number(value)?);
            }
            let (include, divisor) = match &average {
                Some(average) => (average.count_include_pad, average.divisor.unwrap_or(0)),
                None => (false, 0),
            };
            words.push(include.into());
            let divisor = i32::try_from(divisor).map_err(|_| {
                Error::NotSupported(format!("{operator}: divisor_override is {divisor}"))
            })?;
            words.push(divisor as u32);
            let element = input.dtype.size() as u32;
            let invocations = (values.numel() as u64).div_ceil(u64::from(4 / element));
            self.launch(
                Launch {
                    name: POOL.0,
                    wgsl: POOL.1,
                    constants: &[
                        ("TYPE", kind),
                        ("AVERAGE", average.is_some().into()),
                        ("CHANNELS_LAST", channels_last.into()),
                    ],
                    operands: &[
                        Operand::write(&values),
                        Operand::read(&source),
                        Operand::write(&indices),
                    ],
                    groups: grid(operator, invocations.div_ceil(256))?,
                },
                |at| {
                    words.extend([start(at, 0, 4), start(at, 2, 4), start(at, 1, element)]);
                    params(&words)
                },
            )?;
        }
        let layout = match (channels_last, input.layout.rank()) {
            (true, _) => Layout::new(&[n, c, oh, ow], &[oh * ow * c, 1, ow * c, c], 0)?,
            (false, 3) => Layout::contiguous(&[c, oh, ow])?,
            _ => Layout::contiguous(&[n, c, oh, ow])?,
        };
        let indices = match average {
            Some(_) => indices,
            None => relaid(&indices, layout.clone())?,
        };
        Ok((relaid(&values, layout)?, indices))
    }
}

/// One value for both directions, or two.
fn two(
    name: &'static str,
    values: &[i64],
    absent: Option<[i64; 2]>,
    least: i64,
) -> Result<[i64; 2]> {
    let pair = match (values, absent) {
        (&[both], _) => [both, both],
        (&[vertical, horizontal], _) => [vertical, horizontal],
        (&[], Some(absent)) => absent,
        _ => {
            let found = format!("{values:?}");
            return Err(Error::invalid(name, found, "one or two values are expected"));
        }
    };
    if pair.iter().any(|&value| value < least || value > i64::from(i32::MAX)) {
        let reason = format!("{least} is the least that makes sense, 2^31 - 1 the limit");
        return Err(Error::invalid(name, format_args!("{values:?}"), reason));
    }
    Ok(pair)
}

/// PyTorch's `pooling_output_shape`: the last window starts within the input or its
/// padding before it.
fn output_length(
    operator: &str,
    size: i64,
    [kernel, stride, padding, dilation]: [i64; 4],
    ceil: bool,
) -> Result<i64> {
    let reach = (kernel - 1).saturating_mul(dilation).saturating_add(1);
    if padding > reach / 2 {
        let reason = format!("{operator}: at most half of a window's {reach} is expected");
        return Err(Error::invalid("padding", padding, reason));
    }
    let room = size.saturating_add(2 * padding).saturating_sub(reach);
    let more = if ceil { stride - 1 } else { 0 };
    let mut length = room.saturating_add(more).div_euclid(stride) + 1;
    if ceil && (length - 1).saturating_mul(stride) >= size.saturating_add(padding) {
        length -= 1;
    }
    if length < 1 {
        let reason = format!("{operator}: a window of {reach} does not fit into {size} elements");
        return Err(Error::invalid("kernel_size", kernel, reason));
    }
    Ok(length)
}
