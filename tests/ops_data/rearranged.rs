//! Elements by index tensors, pooling, views and `cat`.

use crate::layouts::Random;
use crate::reference::*;
use aoti_wgpu::dtype::DType;
use aoti_wgpu::ops::index::Reduce;
use aoti_wgpu::ops::pool::Window;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use libtest_mimic::Failed;

const TYPES: [DType; 8] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::U8,
    DType::Bool,
];

fn number(random: &mut Random, dtype: DType) -> f64 {
    match dtype {
        DType::Bool => random.between(0, 2) as f64,
        DType::U8 => random.between(0, 12) as f64,
        DType::I64 => random.between(-9, 9) as f64 * 1e9,
        _ => random.between(-12, 12) as f64,
    }
}

/// An index tensor for a dimension of `size`, with negative entries, and the places.
fn index_of(
    runtime: &Runtime,
    random: &mut Random,
    sizes: &[i64],
    size: i64,
    placing: Placing,
) -> Result<(Tensor, Vec<usize>), Failed> {
    let dtype = if random.one_in(2) { DType::I64 } else { DType::I32 };
    let make = || random.between(-size, size) as f64;
    let (tensor, values) = tensor(runtime, sizes, dtype, placing, make)?;
    let place = |&v: &f64| if v < 0.0 { v as i64 + size } else { v as i64 } as usize;
    Ok((tensor, values.iter().map(place).collect()))
}

pub fn index(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(21);
    for dtype in TYPES {
        for placing in PLACINGS {
            let sizes = [4i64, 5, 3];
            let (input, own) =
                tensor(runtime, &sizes, dtype, placing, || number(&mut random, dtype))?;
            let (rows, row) = index_of(runtime, &mut random, &[7], 4, placing)?;
            let (columns, column) = index_of(runtime, &mut random, &[2, 1], 5, placing)?;
            let (ends, end) = index_of(runtime, &mut random, &[2, 7], 3, placing)?;
            let what = format!("{dtype} {placing:?}");
            let at = |i: usize, j: usize, k: usize| own[(i * 5 + j) * 3 + k];

            let (middles, middle) = index_of(runtime, &mut random, &[7], 5, placing)?;
            let one = runtime.index(&input, &[None, Some(&middles)])?;
            assert_eq!(one.sizes(), [4, 7, 3]);
            let mut expected = Vec::new();
            for i in 0..4 {
                for &j in &middle {
                    expected.extend((0..3).map(|k| at(i, j, k)));
                }
            }
            same(&what, &values(runtime, &one)?, &expected)?;

            // Neighbours keep their place, others go to the front.
            let two = runtime.index(&input, &[None, Some(&columns), Some(&ends)])?;
            assert_eq!(two.sizes(), [4, 2, 7]);
            let apart = runtime.index(&input, &[Some(&rows), None, Some(&ends)])?;
            assert_eq!(apart.sizes(), [2, 7, 5]);
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for i in 0..4 {
                for b in 0..14 {
                    first.push(at(i, column[b / 7], end[b]));
                }
            }
            for b in 0..14 {
                second.extend((0..5).map(|j| at(row[b % 7], j, end[b])));
            }
            same(&what, &values(runtime, &two)?, &first)?;
            same(&what, &values(runtime, &apart)?, &second)?;
        }
    }
    let (input, _) = tensor(runtime, &[2, 3], DType::F32, Placing::Packed, || 5.0)?;
    let far = runtime.from_slice(&[2i64, 1, -3], &[3], DType::I64, DeviceType::Mps)?;
    let found = values(runtime, &runtime.index(&input, &[Some(&far)])?)?;
    same("out of range", &found, &[0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 0.0, 0.0, 0.0])?;
    let none = runtime.from_slice::<i64>(&[], &[0], DType::I64, DeviceType::Mps)?;
    assert_eq!(runtime.index(&input, &[Some(&none)])?.sizes(), [0, 3]);
    let mask = runtime.from_slice(&[1u8, 0], &[2], DType::Bool, DeviceType::Mps)?;
    assert!(runtime.index(&input, &[Some(&mask)]).unwrap_err().to_string().contains("bool"));
    Ok(())
}

pub fn index_put(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(22);
    for dtype in TYPES {
        for placing in PLACINGS {
            let (input, own) =
                tensor(runtime, &[6, 5], dtype, placing, || number(&mut random, dtype))?;
            let (rows, row) = index_of(runtime, &mut random, &[8], 6, Placing::Sliced)?;
            let make = || number(&mut random, dtype);
            let (added, more) = tensor(runtime, &[8, 5], dtype, placing, make)?;
            let found = runtime.index_put(&input, &[Some(&rows)], &added, true)?;
            let mut expected = own.clone();
            for (b, &i) in row.iter().enumerate() {
                for j in 0..5 {
                    expected[i * 5 + j] += more[b * 5 + j];
                }
            }
            if dtype == DType::Bool {
                expected.iter_mut().for_each(|v| *v = v.min(1.0));
            }
            let what = format!("{dtype} {placing:?}");
            // Sums of small integers are exact in all types.
            same(&what, &values(runtime, &found)?, &expected)?;
            same("self", &values(runtime, &input)?, &own)?;

            // One value everywhere: duplicates do not matter.
            let one = runtime.view(&added, &[1], &[1], 0)?;
            let found = runtime.index_put(&input, &[Some(&rows)], &one, false)?;
            let mut expected = own.clone();
            let value = values(runtime, &one)?[0];
            for &i in &row {
                expected[i * 5..][..5].fill(value);
            }
            same(&what, &values(runtime, &found)?, &expected)?;
        }
    }
    Ok(())
}

pub fn scatter_reduce(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(23);
    let names = ["sum", "prod", "mean", "amax", "amin"];
    for dtype in [DType::F32, DType::BF16, DType::I32, DType::U8, DType::I64] {
        for placing in PLACINGS {
            for name in names {
                for include in [false, true] {
                    let reduce = Reduce::from_name(name)?;
                    let mut make = |sizes: &[i64], placing| {
                        tensor(runtime, sizes, dtype, placing, || match dtype {
                            DType::U8 => random.between(0, 3) as f64,
                            _ => random.between(-2, 3) as f64,
                        })
                    };
                    let (input, own) = make(&[4, 3], placing)?;
                    let (src, from) = make(&[6, 3], placing)?;
                    let plain =
                        if placing == Placing::Expanded { Placing::Packed } else { placing };
                    let (out, _) = make(&[4, 3], plain)?;
                    let make = || random.between(0, 3) as f64;
                    let (index, places) = tensor(runtime, &[5, 2], DType::I64, placing, make)?;
                    let done =
                        runtime.scatter_reduce_out(&out, &input, 0, &index, &src, reduce, include);
                    if dtype == DType::I64 && name != "sum" {
                        assert!(done.unwrap_err().to_string().contains("int64"));
                        continue;
                    }
                    done?;
                    let mut expected = own.clone();
                    for i in 0..4 {
                        for j in 0..3 {
                            let hits: Vec<f64> = (0..5)
                                .filter(|b| j < 2 && places[b * 2 + j] as usize == i)
                                .map(|b| from[b * 3 + j])
                                .collect();
                            if hits.is_empty() {
                                continue;
                            }
                            let before = include.then_some(own[i * 3 + j]);
                            let all: Vec<f64> = before.into_iter().chain(hits).collect();
                            let fold = |f: fn(f64, f64) -> f64| all.iter().copied().reduce(f);
                            let mean = fold(|a, b| a + b).unwrap() / all.len() as f64;
                            expected[i * 3 + j] = match name {
                                "sum" => mean * all.len() as f64,
                                "prod" => fold(|a, b| a * b).unwrap(),
                                "amax" => fold(f64::max).unwrap(),
                                "amin" => fold(f64::min).unwrap(),
                                _ if dtype == DType::I32 || dtype == DType::U8 => {
                                    (mean + 1e-9).floor()
                                }
                                _ => mean,
                            };
                        }
                    }
                    let what = format!("{name} {include} {dtype} {placing:?}");
                    let bound = |i: usize| rounding(dtype) * expected[i].abs() + 1e-6;
                    close(&what, &values(runtime, &out)?, &expected, bound)?;
                }
            }
        }
    }
    let mut list = [1.0, f64::NAN, 5.0].iter();
    let (src, _) = tensor(runtime, &[3], DType::F32, Placing::Packed, || *list.next().unwrap())?;
    let (input, _) = tensor(runtime, &[2], DType::F32, Placing::Packed, || 3.0)?;
    let index = runtime.from_slice(&[1i64, 0, 1], &[3], DType::I64, DeviceType::Mps)?;
    for (reduce, other) in [(Reduce::Largest, 5.0), (Reduce::Smallest, 1.0)] {
        runtime.scatter_reduce_out(&input, &input, 0, &index, &src, reduce, true)?;
        same("NaN", &values(runtime, &input)?, &[f64::NAN, other])?;
    }
    Ok(())
}

pub fn cat(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(24);
    for dtype in TYPES {
        for placing in PLACINGS {
            for dim in [0usize, 1, 2] {
                let mut parts = Vec::new();
                for size in [3i64, 0, 1, 5] {
                    let mut sizes = [2i64, 3, 5];
                    sizes[dim] = size;
                    let make = || number(&mut random, dtype);
                    parts.push((tensor(runtime, &sizes, dtype, placing, make)?, size as usize));
                }
                let list: Vec<&Tensor> = parts.iter().map(|((tensor, _), _)| tensor).collect();
                let out = runtime.cat(&list, dim as i64 - 3)?;
                let mut sizes = [2i64, 3, 5];
                sizes[dim] = 9;
                assert_eq!(out.sizes(), sizes);
                let [before, _, behind] = around(&sizes, dim);
                let mut expected = Vec::new();
                for i in 0..before {
                    for ((_, own), size) in &parts {
                        expected.extend(&own[i * size * behind..][..size * behind]);
                    }
                }
                same(&format!("{dtype} {placing:?} {dim}"), &values(runtime, &out)?, &expected)?;
            }
        }
    }
    let (a, _) = tensor(runtime, &[2], DType::I64, Placing::Packed, || 3.0)?;
    let (b, _) = tensor(runtime, &[1], DType::BF16, Placing::Packed, || 0.5)?;
    let empty = runtime.from_slice::<f32>(&[], &[0], DType::F32, DeviceType::Mps)?;
    let out = runtime.cat(&[&a, &b], 0)?;
    assert_eq!(out.dtype(), DType::BF16);
    same("promoted", &values(runtime, &out)?, &[3.0, 3.0, 0.5])?;
    assert_eq!(runtime.cat(&[&b, &empty], 0)?.dtype(), DType::F32);
    assert!(runtime.cat(&[], 0).is_err());
    let (square, _) = tensor(runtime, &[2, 2], DType::I64, Placing::Packed, || 3.0)?;
    assert!(runtime.cat(&[&square, &a], 0).is_err());
    Ok(())
}

pub fn views(runtime: &Runtime) -> Result<(), Failed> {
    let check = |what: &str, view: &Tensor, sizes: &[i64], of: &[f64]| {
        assert_eq!(view.sizes(), sizes, "{what}");
        same(what, &values(runtime, view)?, of)
    };
    for dtype in TYPES {
        if dtype == DType::Bool {
            continue;
        }
        for placing in PLACINGS {
            let mut next = 0.0;
            let make = || {
                next += 1.0;
                next
            };
            let (t, own) = tensor(runtime, &[4, 6], dtype, placing, make)?;
            let pick = |list: &[(usize, usize)]| -> Vec<f64> {
                list.iter().map(|&(i, j)| own[i * 6 + j]).collect()
            };
            let all = |rows: &[usize], columns: &[usize]| {
                let list: Vec<_> =
                    rows.iter().flat_map(|&i| columns.iter().map(move |&j| (i, j))).collect();
                pick(&list)
            };
            let rows = [0, 1, 2, 3];
            check("narrow", &runtime.narrow(&t, 1, -4, 3)?, &[4, 3], &all(&rows, &[2, 3, 4]))?;
            check("empty", &runtime.narrow(&t, 0, 4, 0)?, &[0, 6], &[])?;
            let slice = runtime.slice(&t, -1, Some(1), Some(100), 2)?;
            check("slice", &slice, &[4, 3], &all(&rows, &[1, 3, 5]))?;
            let slice = runtime.slice(&t, 0, None, Some(-3), 1)?;
            check("slice", &slice, &[1, 6], &own[..6])?;
            check("squeeze", &runtime.squeeze(&slice, 0)?, &[6], &own[..6])?;
            check("kept", &runtime.squeeze(&t, 0)?, &[4, 6], &own)?;
            let permuted = runtime.permute(&t, &[-1, 0])?;
            let list: Vec<_> = (0..6).flat_map(|j| (0..4).map(move |i| (i, j))).collect();
            check("permute", &permuted, &[6, 4], &pick(&list))?;
            for shape in [&[2i64, 2, 3, -1][..], &[24], &[3, 8], &[1, 4, 1, 6], &[8, 3, 1]] {
                let sizes: Vec<i64> = shape.iter().map(|&s| if s < 0 { 2 } else { s }).collect();
                check("reshape", &runtime.reshape(&t, shape)?, &sizes, &own)?;
                check("reshape", &runtime.reshape(&permuted, shape)?, &sizes, &pick(&list))?;
            }
        }
    }
    let (t, _) = tensor(runtime, &[2, 4], DType::F32, Placing::Packed, || 1.0)?;
    let bits = runtime.view_dtype(&t, DType::I32)?;
    check("bits", &bits, &[2, 4], &[f64::from(1f32.to_bits()); 8])?;
    assert_eq!(runtime.view_dtype(&t, DType::U8)?.sizes(), [2, 16]);
    assert_eq!(runtime.view_dtype(&t, DType::I64)?.sizes(), [2, 2]);
    assert!(runtime.view_dtype(&runtime.permute(&t, &[1, 0])?, DType::U8).is_err());
    runtime.fill_scalar(&runtime.narrow(&t, 1, 1, 2)?, 2.5)?;
    check("fill", &t, &[2, 4], &[1.0, 2.5, 2.5, 1.0, 1.0, 2.5, 2.5, 1.0])?;
    for (error, text) in [
        (runtime.narrow(&t, 0, 1, 2).err(), "length is 2"),
        (runtime.narrow(&t, 2, 0, 0).err(), "dim is 2"),
        (runtime.slice(&t, 0, None, None, 0).err(), "step is 0"),
        (runtime.permute(&t, &[0, 0]).err(), "dims is [0, 0]"),
        (runtime.reshape(&t, &[3, -1]).err(), "shape is [3, -1]"),
    ] {
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(text), "{error}");
    }
    Ok(())
}

pub fn pools(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(25);
    #[allow(clippy::type_complexity, reason = "a table")]
    let windows: [([i64; 2], [i64; 2], [i64; 2], [i64; 2], bool); 5] = [
        ([2, 2], [2, 2], [0, 0], [1, 1], false),
        ([3, 2], [2, 1], [1, 1], [1, 1], false),
        ([3, 3], [2, 2], [1, 1], [1, 1], true),
        ([2, 3], [3, 2], [0, 1], [2, 1], true),
        ([5, 7], [1, 1], [2, 3], [1, 1], false),
    ];
    for dtype in FLOATS {
        for sizes in [[2i64, 3, 7, 9], [1, 2, 5, 7], [0, 2, 7, 7]] {
            for channels_last in [false, true] {
                for (kernel, stride, padding, dilation, ceil_mode) in windows {
                    let [n, c, h, w] = sizes;
                    let make = || match random.one_in(20) {
                        true => random.pick(&[f64::NAN, f64::NEG_INFINITY]),
                        false => random.between(-40, 40) as f64 / 4.0,
                    };
                    let (x, own) = if channels_last {
                        let (x, _) = tensor(runtime, &[n, h, w, c], dtype, Placing::Sliced, make)?;
                        let x = runtime.permute(&x, &[0, 3, 1, 2])?;
                        let dense = runtime.clone_tensor(&x, false)?;
                        let last = [h * w * c, 1, w * c, c];
                        let whole = runtime.empty(
                            aoti_wgpu::layout::Layout::new(&sizes, &last, 0)?,
                            dtype,
                            DeviceType::Mps,
                        )?;
                        runtime.copy(&whole, &dense, true)?;
                        let own = values(runtime, &whole)?;
                        (whole, own)
                    } else {
                        tensor(runtime, &sizes, dtype, Placing::Sliced, make)?
                    };
                    let window = Window {
                        kernel_size: &kernel,
                        stride: &stride,
                        padding: &padding,
                        dilation: &dilation,
                        ceil_mode,
                    };
                    let (largest, places) = runtime.max_pool2d(&x, window)?;
                    let [_, _, oh, ow] = *largest.sizes() else { return Err("rank".into()) };
                    if channels_last && largest.numel() > 0 {
                        assert_eq!(largest.strided_layout().strides()[1], 1);
                    }
                    let size = [n, c, oh, ow].map(|n| n as usize);
                    let (h, w) = (h as usize, w as usize);
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    let windows = |dilation: [i64; 2]| {
                        let own = &own;
                        let planes = size[0] * size[1];
                        (0..planes * size[2] * size[3]).map(move |at| {
                            let plane = at / (size[2] * size[3]);
                            let start = [at / size[3] % size[2], at % size[3]];
                            let start = [0, 1].map(|d| start[d] as i64 * stride[d] - padding[d]);
                            let mut list = Vec::new();
                            for i in 0..kernel[0] {
                                for j in 0..kernel[1] {
                                    let y = start[0] + i * dilation[0];
                                    let x = start[1] + j * dilation[1];
                                    if (0..h as i64).contains(&y) && (0..w as i64).contains(&x) {
                                        let place = y as usize * w + x as usize;
                                        list.push((place, own[plane * h * w + place]));
                                    }
                                }
                            }
                            (start, list)
                        })
                    };
                    for (_, list) in windows(dilation) {
                        let mut best = list[0];
                        for &one in &list[1..] {
                            if one.1 > best.1 || one.1.is_nan() {
                                best = one;
                            }
                        }
                        a.push(best.1);
                        b.push(best.0 as f64);
                    }
                    let what = format!("{dtype} {sizes:?} {channels_last} {kernel:?} {ceil_mode}");
                    same(&what, &values(runtime, &largest)?, &a)?;
                    same(&what, &values(runtime, &places)?, &b)?;
                    if dilation != [1, 1] {
                        continue;
                    }
                    for (include, divisor) in [(false, None), (true, None), (true, Some(-3))] {
                        let mean = runtime.avg_pool2d(&x, window, include, divisor)?;
                        let expected: Vec<f64> = windows([1, 1])
                            .map(|(start, list)| {
                                let area: i64 = [0, 1]
                                    .map(|d| {
                                        let end = [h, w][d] as i64 + padding[d];
                                        (start[d] + kernel[d]).min(end) - start[d]
                                    })
                                    .iter()
                                    .product();
                                let count = if include { area } else { list.len() as i64 };
                                let sum: f64 = list.iter().map(|&(_, value)| value).sum();
                                sum / divisor.unwrap_or(count) as f64
                            })
                            .collect();
                        let found = values(runtime, &mean)?;
                        for (i, (&a, &b)) in found.iter().zip(&expected).enumerate() {
                            let bound = 1e-5 + rounding(dtype) * b.abs();
                            let equal = a == b || (a.is_nan() && b.is_nan());
                            if !equal && approx::abs_diff_ne!(a, b, epsilon = bound) {
                                return Err(format!("{what} {include}: at {i} {a} for {b}").into());
                            }
                        }
                        assert_eq!(found.len(), expected.len());
                    }
                }
            }
        }
    }
    let (x, _) = tensor(runtime, &[1, 3, 3], DType::F32, Placing::Packed, || 1.0)?;
    let window =
        Window { kernel_size: &[2], stride: &[], padding: &[], dilation: &[], ceil_mode: false };
    same("plain", &values(runtime, &runtime.max_pool2d(&x, window)?.0)?, &integers([1]))?;
    let wide = Window { padding: &[2], ..window };
    assert!(runtime.max_pool2d(&x, wide).unwrap_err().to_string().contains("padding is 2"));
    let large = Window { kernel_size: &[4], ..window };
    assert!(runtime.max_pool2d(&x, large).unwrap_err().to_string().contains("kernel_size is 4"));
    Ok(())
}
