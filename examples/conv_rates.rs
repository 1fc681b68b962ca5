//! How fast convolutions run on the first adapter: the time of one in a row of many, and
//! TFLOP/s, counting a multiplication and an addition as two.
//!
//! `conv_rates [CASE]`: only cases whose name holds CASE.

use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::ops::conv::Convolution;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use std::error::Error;
use std::time::Instant;

/// Name, (images, channels, height, width), output channels, kernel, stride, padding,
/// groups, transposed.
type Case = (&'static str, [i64; 4], i64, i64, i64, i64, i64, bool);

const CASES: &[Case] = &[
    ("3x3 64 to 64 channels", [8, 64, 56, 56], 64, 3, 1, 1, 1, false),
    ("3x3 128 to 128", [8, 128, 28, 28], 128, 3, 1, 1, 1, false),
    ("3x3 512 to 512, small", [8, 512, 7, 7], 512, 3, 1, 1, 1, false),
    ("3x3 256 to 256, one image", [1, 256, 14, 14], 256, 3, 1, 1, 1, false),
    ("3x3 stride 2", [8, 128, 56, 56], 128, 3, 2, 1, 1, false),
    ("7x7 of 3 channels", [8, 3, 224, 224], 64, 7, 2, 3, 1, false),
    ("1x1 256 to 64", [8, 256, 56, 56], 64, 1, 1, 0, 1, false),
    ("3x3 depthwise", [8, 256, 56, 56], 256, 3, 1, 1, 256, false),
    ("3x3 in 32 groups", [8, 256, 56, 56], 256, 3, 1, 1, 32, false),
    ("3x3 64 to 3", [1, 64, 512, 512], 3, 3, 1, 1, 1, false),
    ("2x2 transposed", [8, 128, 28, 28], 64, 2, 2, 0, 1, true),
    ("4x4 transposed", [8, 128, 28, 28], 64, 4, 2, 1, 1, true),
];

/// Zeros of no particular value; channels-last where that is asked for.
fn operand(
    runtime: &Runtime,
    sizes: [i64; 4],
    dtype: DType,
    last: bool,
) -> Result<Tensor, Box<dyn Error>> {
    let [n, c, h, w] = sizes;
    let layout = match last {
        true => Layout::new(&sizes, &[c * h * w, 1, w * c, c], 0)?,
        false => Layout::new(&sizes, &[c * h * w, h * w, w, 1], 0)?,
    };
    let tensor = runtime.empty(layout, dtype, DeviceType::Mps)?;
    let values: Vec<f32> = (0..n * c * h * w).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    let source = runtime.from_slice(&values, &sizes, DType::F32, DeviceType::Mps)?;
    runtime.copy(&tensor, &source, true)?;
    Ok(tensor)
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let runtime = Runtime::global();
    println!("{:?}", runtime.adapter_info()?);
    for &(name, input, outputs, kernel, stride, padding, groups, transposed) in CASES {
        if !name.contains(&wanted) {
            continue;
        }
        for (dtype, last) in [(DType::F32, false), (DType::F32, true), (DType::BF16, false)] {
            let weight = match transposed {
                true => [input[1], outputs / groups, kernel, kernel],
                false => [outputs, input[1] / groups, kernel, kernel],
            };
            let x = operand(runtime, input, dtype, last)?;
            let w = operand(runtime, weight, dtype, last)?;
            let how = Convolution {
                stride: &[stride],
                padding: &[padding],
                dilation: &[1],
                transposed,
                output_padding: &[0],
                groups,
            };
            let flops = match transposed {
                true => 2 * input.iter().product::<i64>() * weight[1..].iter().product::<i64>(),
                false => {
                    let result = runtime.convolution(&x, &w, None, how)?;
                    2 * result.numel() * weight[1..].iter().product::<i64>()
                }
            };
            let mut best = f64::MAX;
            for repeat in [2, 50, 50, 50] {
                let start = Instant::now();
                for _ in 0..repeat {
                    runtime.convolution(&x, &w, None, how)?;
                }
                runtime.synchronize()?;
                if repeat > 2 {
                    best = best.min(start.elapsed().as_secs_f64() / f64::from(repeat));
                }
            }
            let format = if last { "channels-last" } else { "" };
            let dtype = dtype.to_string();
            println!(
                "{name:28} {dtype:9} {format:14} {:8.1} us {:7.2} TFLOP/s",
                best * 1e6,
                flops as f64 / best / 1e12
            );
        }
    }
    Ok(())
}
