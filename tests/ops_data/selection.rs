//! Sorting, the largest elements, and sums along a dimension.

use crate::layouts::Random;
use crate::reference::*;
use aoti_wgpu::dtype::DType;
use aoti_wgpu::runtime::Runtime;
use libtest_mimic::Failed;
use std::cmp::Ordering;

const TYPES: [DType; 10] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::Bool,
];

/// Few different values, so that there are ties, and the special ones.
fn value(random: &mut Random, dtype: DType) -> f64 {
    let special = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY];
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 if random.one_in(4) => {
            random.pick(&special)
        }
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 => random.between(-9, 9) as f64 / 4.0,
        DType::I64 => random.between(-3, 3) as f64 * 3e9,
        DType::Bool => random.between(0, 2) as f64,
        DType::U8 => random.between(0, 256) as f64,
        _ => random.between(-100, 100) as f64,
    }
}

fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Values and places of the first `count` along `dim`.
fn sorted(
    values: &[f64],
    sizes: &[i64],
    dim: usize,
    count: usize,
    descending: bool,
) -> (Vec<f64>, Vec<f64>) {
    let [before, size, behind] = around(sizes, dim);
    let (mut found, mut places) = (vec![0.0; before * count * behind], vec![]);
    places.resize(found.len(), 0.0);
    for i in 0..before {
        for j in 0..behind {
            let at = |k: usize| values[(i * size + k) * behind + j];
            let mut row: Vec<usize> = (0..size).collect();
            row.sort_by(|&a, &b| {
                let order = order(at(a), at(b));
                if descending { order.reverse() } else { order }
            });
            for (k, &from) in row.iter().take(count).enumerate() {
                found[(i * count + k) * behind + j] = at(from);
                places[(i * count + k) * behind + j] = from as f64;
            }
        }
    }
    (found, places)
}

pub fn sort(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(11);
    for (sizes, dims) in [
        (vec![3i64, 37], vec![0i64, -1]),
        (vec![2, 5, 4], vec![1]),
        (vec![1], vec![0]),
        (vec![0, 3], vec![0, 1]),
    ] {
        for dtype in TYPES {
            for placing in PLACINGS {
                for &dim in &dims {
                    let (input, own) =
                        tensor(runtime, &sizes, dtype, placing, || value(&mut random, dtype))?;
                    let axis = if dim < 0 { sizes.len() - 1 } else { dim as usize };
                    for descending in [false, true] {
                        let (found, places) = runtime.sort(&input, dim, descending)?;
                        let size = sizes[axis] as usize;
                        let (a, b) = sorted(&own, &sizes, axis, size, descending);
                        let what = format!("{sizes:?} {dim} {dtype} {placing:?} {descending}");
                        assert_eq!(found.sizes(), sizes);
                        assert_eq!(places.dtype(), DType::I64);
                        same(&what, &values(runtime, &found)?, &a)?;
                        same(&what, &values(runtime, &places)?, &b)?;
                    }
                }
            }
        }
    }
    let scalar =
        runtime.from_slice(&[3f32], &[], DType::F32, aoti_wgpu::tensor::DeviceType::Mps)?;
    let (found, places) = runtime.sort(&scalar, 0, true)?;
    assert!(found.sizes().is_empty() && places.sizes().is_empty());
    assert!(runtime.sort(&scalar, 1, true).unwrap_err().to_string().contains("dim is 1"));
    Ok(())
}

/// Rows that one workgroup does not sort alone.
pub fn long_sort(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(12);
    for size in [1024, 1025, 5000, 17000] {
        let sizes = [2, size];
        let make = || random.between(-5000, 5000) as f64;
        let (input, own) = tensor(runtime, &sizes, DType::I32, Placing::Sliced, make)?;
        for descending in [false, true] {
            let (found, places) = runtime.sort(&input, 1, descending)?;
            let (a, b) = sorted(&own, &sizes, 1, size as usize, descending);
            same("values", &values(runtime, &found)?, &a)?;
            same("places", &values(runtime, &places)?, &b)?;
        }
    }
    Ok(())
}

pub fn topk(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(13);
    for (sizes, dim, k) in [
        (vec![4i64, 64], 1usize, 2i64),
        (vec![5, 3], 0, 5),
        (vec![2, 9, 3], 1, 0),
        (vec![3000], 0, 7),
    ] {
        for dtype in TYPES {
            for placing in PLACINGS {
                let (input, own) =
                    tensor(runtime, &sizes, dtype, placing, || value(&mut random, dtype))?;
                for largest in [false, true] {
                    let (found, places) = runtime.topk(&input, k, dim as i64, largest)?;
                    let (a, b) = sorted(&own, &sizes, dim, k as usize, largest);
                    let what = format!("{sizes:?} {dim} {k} {dtype} {placing:?} {largest}");
                    assert!(found.layout().is_contiguous() && places.layout().is_contiguous());
                    same(&what, &values(runtime, &found)?, &a)?;
                    same(&what, &values(runtime, &places)?, &b)?;
                }
            }
        }
    }
    let (input, _) = tensor(runtime, &[3], DType::F32, Placing::Packed, || 0.0)?;
    assert!(runtime.topk(&input, 4, 0, true).unwrap_err().to_string().contains("k is 4"));
    Ok(())
}

pub fn cumsum(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(14);
    for (sizes, dim) in [
        (vec![3i64, 37], 1usize),
        (vec![5, 4, 3], 1),
        (vec![2, 3001], 1),
        (vec![0, 3], 1),
        (vec![70, 3], 0),
    ] {
        for dtype in TYPES.into_iter().filter(|&dtype| dtype != DType::F64) {
            for placing in PLACINGS {
                let float = FLOATS.contains(&dtype);
                let (input, own) = tensor(runtime, &sizes, dtype, placing, || match dtype {
                    _ if float => uniform(&mut random),
                    _ => value(&mut random, dtype),
                })?;
                let out = runtime.cumsum(&input, dim as i64, None)?;
                assert_eq!(out.dtype(), if float { dtype } else { DType::I64 });
                let [before, size, behind] = around(&sizes, dim);
                let mut expected = own.clone();
                let mut bounds = vec![0.0; own.len()];
                for i in 0..before {
                    for j in 0..behind {
                        let mut size_of = 0.0;
                        for k in 0..size {
                            let at = (i * size + k) * behind + j;
                            size_of += own[at].abs();
                            if k > 0 {
                                expected[at] += expected[at - behind];
                            }
                            // Depth: 4 in a lane, 8 in the workgroup, one a block.
                            let depth = (16 + k / 1024) as f64;
                            bounds[at] = depth * 2f64.powi(-24) * size_of
                                + rounding(dtype) * expected[at].abs();
                        }
                    }
                }
                let what = format!("{sizes:?} {dim} {dtype} {placing:?}");
                let found = values(runtime, &out)?;
                match float {
                    true => close(&what, &found, &expected, |i| bounds[i])?,
                    false => same(&what, &found, &expected)?,
                }
            }
        }
    }
    let bytes: Vec<f64> = vec![200.0, 100.0, 7.0];
    let mut at = bytes.iter();
    let (input, _) =
        tensor(runtime, &[3], DType::I64, Placing::Packed, || at.next().copied().unwrap())?;
    let wrapped = runtime.cumsum(&input, 0, Some(DType::U8))?;
    same("uint8", &values(runtime, &wrapped)?, &[200.0, 44.0, 51.0])?;
    let halves = runtime.cumsum(&input, 0, Some(DType::BF16))?;
    same("bfloat16", &values(runtime, &halves)?, &[200.0, 300.0, 308.0])?;
    assert!(runtime.cumsum(&input, 0, Some(DType::Bool)).unwrap_err().to_string().contains("bool"));
    let mut list = [1.0, f64::NAN, 1.0].iter();
    let (nan, _) = tensor(runtime, &[3], DType::F32, Placing::Packed, || *list.next().unwrap())?;
    same("NaN", &values(runtime, &runtime.cumsum(&nan, 0, None)?)?, &[1.0, f64::NAN, f64::NAN])
}
