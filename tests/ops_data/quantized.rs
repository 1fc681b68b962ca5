//! 4-bit products and the gated delta rule.

use crate::layouts::Random;
use crate::reference::*;
use aoti_wgpu::dtype::DType;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use libtest_mimic::Failed;

/// Weights with their scales and offsets, and what they are worth.
struct Weights {
    tensors: [Tensor; 3],
    values: Vec<f64>,
    /// |nibble scale| + |offset|.
    sizes: Vec<f64>,
}

fn weights(
    runtime: &Runtime,
    random: &mut Random,
    lead: &[i64],
    k: i64,
    group: i64,
    dtype: DType,
    placing: Placing,
) -> Result<Weights, Failed> {
    let with = |last: i64| [lead, &[last]].concat();
    let (w, bytes) =
        tensor(runtime, &with(k / 2), DType::U8, placing, || random.between(0, 256) as f64)?;
    let (s, scales) = tensor(runtime, &with(k / group), dtype, placing, || uniform(random))?;
    let (z, offsets) = tensor(runtime, &with(k / group), dtype, placing, || uniform(random))?;
    let rows = lead.iter().product::<i64>();
    let (mut values, mut sizes) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for at in 0..k {
            let byte = bytes[(row * k / 2 + at / 2) as usize] as u8;
            let nibble = f64::from((byte >> (4 * (at % 2))) & 15);
            let part = (row * (k / group) + at / group) as usize;
            values.push(nibble * scales[part] + offsets[part]);
            sizes.push((nibble * scales[part]).abs() + offsets[part].abs());
        }
    }
    Ok(Weights { tensors: [w, s, z], values, sizes })
}

/// Sums of `depth` products in f32 by lanes, and one rounding of the result.
fn bound(dtype: DType, depth: usize, size: f64, value: f64) -> f64 {
    (depth as f64 / 8.0 + 16.0) * 2f64.powi(-24) * size + rounding(dtype) * value.abs() + 1e-7
}

fn dots(
    x: &[f64],
    weights: &Weights,
    dtype: DType,
    [m, n, k]: [usize; 3],
    matrix: impl Fn(usize) -> usize,
) -> (Vec<f64>, Vec<f64>) {
    let (mut expected, mut bounds) = (Vec::new(), Vec::new());
    for i in 0..m {
        for j in 0..n {
            let row = (matrix(i) * n + j) * k;
            let (mut sum, mut size) = (0.0, 0.0);
            for at in 0..k {
                sum += x[i * k + at] * weights.values[row + at];
                size += x[i * k + at].abs() * weights.sizes[row + at];
            }
            expected.push(sum);
            bounds.push(bound(dtype, k, size, sum));
        }
    }
    (expected, bounds)
}

pub fn linear(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(1);
    let cases = [
        (1, 10, 32, 32),
        (1, 3, 64, 64),
        (3, 7, 1184, 32),
        (8, 65, 256, 128),
        (9, 33, 96, 32),
        (127, 66, 512, 256),
        // Enough weights to go by digits, where the device has what that needs: even and
        // odd numbers of groups, lanes without a chunk, and more chunks than lanes.
        (1, 1031, 2048, 64),
        (2, 515, 4640, 32),
        (0, 4, 32, 32),
        (2, 0, 32, 32),
        (2, 5, 0, 32),
    ];
    for (m, n, k, group) in cases {
        for dtype in FLOATS {
            for placing in PLACINGS {
                let (x, x_values) =
                    tensor(runtime, &[m, k], dtype, placing, || uniform(&mut random))?;
                let w = weights(runtime, &mut random, &[n], k, group, dtype, placing)?;
                let [b, s, z] = &w.tensors;
                let out = runtime.linear_4bit(&x, b, group, s, z)?;
                assert_eq!(out.sizes(), [m, n]);
                assert!(out.layout().is_contiguous());
                let shape = [m as usize, n as usize, k as usize];
                let (expected, bounds) = dots(&x_values, &w, dtype, shape, |_| 0);
                let what = format!("{m} {n} {k} {group} {dtype} {placing:?}");
                close(&what, &values(runtime, &out)?, &expected, |i| bounds[i])?;
            }
        }
    }
    // NaN and infinity reach the rows that they are in, and no others.
    for (rows, n, k) in [(4, 6, 64), (12, 6, 64), (4, 513, 1088)] {
        let (columns, depth) = (n as usize, k as usize);
        let mut x: Vec<f32> = (0..rows * k).map(|i| (i % 768) as f32 / 100.0).collect();
        x[3] = f32::NAN;
        x[2 * depth + 5] = f32::INFINITY;
        let x = runtime.from_slice(&x, &[rows, k], DType::F32, DeviceType::Mps)?;
        let w = weights(runtime, &mut random, &[n], k, 64, DType::F32, Placing::Packed)?;
        let [b, s, z] = &w.tensors;
        let out = values(runtime, &runtime.linear_4bit(&x, b, 64, s, z)?)?;
        for (i, row) in out.chunks(columns).enumerate() {
            let fits = match i {
                0 => row.iter().all(|v| v.is_nan()),
                2 => row.iter().all(|v| !v.is_finite()),
                _ => row.iter().all(|v| v.is_finite()),
            };
            assert!(fits, "row {i} of {rows} x {n} x {k}: {row:?}");
        }
    }
    Ok(())
}

pub fn gather(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(2);
    for (p, e, n, k, group) in [
        (4, 4, 64, 128, 32),
        (3, 6, 24, 512, 64),
        (5, 2, 7, 1152, 128),
        (0, 2, 4, 32, 32),
        (3, 2, 701, 1056, 32),
    ] {
        for dtype in FLOATS {
            for placing in PLACINGS {
                let (x, x_values) =
                    tensor(runtime, &[p, k], dtype, placing, || uniform(&mut random))?;
                let w = weights(runtime, &mut random, &[e, n], k, group, dtype, placing)?;
                let (chosen, experts) =
                    tensor(runtime, &[p], DType::I32, placing, || random.between(0, e) as f64)?;
                let [b, s, z] = &w.tensors;
                let out = runtime.gather_qmv(&x, b, s, z, &chosen, group)?;
                assert_eq!(out.sizes(), [p, n]);
                let shape = [p as usize, n as usize, k as usize];
                let (expected, bounds) = dots(&x_values, &w, dtype, shape, |i| experts[i] as usize);
                let what = format!("{p} {e} {n} {k} {dtype} {placing:?}");
                close(&what, &values(runtime, &out)?, &expected, |i| bounds[i])?;
            }
        }
    }
    let (x, _) = tensor(runtime, &[3, 32], DType::F32, Placing::Packed, || 1.0)?;
    let w = weights(runtime, &mut random, &[2, 4], 32, 32, DType::F32, Placing::Packed)?;
    let experts = runtime.from_slice(&[-1i32, 1, 2], &[3], DType::I32, DeviceType::Mps)?;
    let [b, s, z] = &w.tensors;
    let out = values(runtime, &runtime.gather_qmv(&x, b, s, z, &experts, 32)?)?;
    assert!(out[..4].iter().chain(&out[8..]).all(|v| v.is_nan()), "{out:?}");
    assert!(out[4..8].iter().all(|v| v.is_finite()), "{out:?}");
    Ok(())
}

pub fn delta_rule(runtime: &Runtime) -> Result<(), Failed> {
    let mut random = Random(3);
    let cases = [
        [2, 5, 2, 4, 64, 32],
        [1, 2, 4, 4, 64, 64],
        [1, 3, 1, 3, 256, 5],
        [1, 2, 1, 2, 288, 3],
        [1, 1, 1, 1, 2, 1],
        [2, 0, 1, 2, 32, 4],
        [0, 3, 1, 1, 32, 4],
    ];
    for [b, l, hk, hv, dk, dv] in cases {
        for dtype in FLOATS {
            for placing in PLACINGS {
                let (key, value) = ([b, l, hk, dk], [b, l, hv, dv]);
                let mut make = |sizes: &[i64], factor: f64| {
                    tensor(runtime, sizes, dtype, placing, || uniform(&mut random) * factor)
                };
                let norm = (dk as f64).sqrt().recip();
                let (q, q_values) = make(&key, norm)?;
                let (k, k_values) = make(&key, norm)?;
                let (v, v_values) = make(&value, 1.0)?;
                let (g, g_values) = make(&[b, l, hv], 1.0)?;
                let (beta, betas) = make(&[b, l, hv], 1.0)?;
                // One that is written has no elements in one place.
                let placing = if placing == Placing::Expanded { Placing::Sliced } else { placing };
                let (state, mut s) =
                    tensor(runtime, &[b, hv, dv, dk], dtype, placing, || uniform(&mut random))?;
                let y = runtime.gated_delta_rule(&q, &k, &v, &g, &beta, &state)?;
                assert_eq!(y.sizes(), value);
                let mut expected = vec![0.0; (b * l * hv * dv) as usize];
                let [b, l, hk, hv, dk, dv] = [b, l, hk, hv, dk, dv].map(|n| n as usize);
                for (batch, head, i) in (0..b)
                    .flat_map(|batch| (0..hv).map(move |head| (batch, head)))
                    .flat_map(|(batch, head)| (0..dv).map(move |i| (batch, head, i)))
                {
                    let row = &mut s[((batch * hv + head) * dv + i) * dk..][..dk];
                    for t in 0..l {
                        let at = (batch * l + t) * hv + head;
                        let key = ((batch * l + t) * hk + head / (hv / hk)) * dk;
                        let (q, k) = (&q_values[key..][..dk], &k_values[key..][..dk]);
                        row.iter_mut().for_each(|s| *s *= g_values[at]);
                        let sk: f64 = row.iter().zip(k).map(|(s, k)| s * k).sum();
                        let d = betas[at] * (v_values[at * dv + i] - sk);
                        row.iter_mut().zip(k).for_each(|(s, k)| *s += d * k);
                        expected[at * dv + i] = row.iter().zip(q).map(|(s, q)| s * q).sum();
                    }
                }
                let what = format!("{b} {l} {hk} {hv} {dk} {dv} {dtype} {placing:?}");
                // f32 through all steps: each adds a few roundings of values below 4.
                let own = |value: f64| 1e-5 + rounding(dtype) * value.abs();
                close(&what, &values(runtime, &y)?, &expected, |i| own(expected[i]))?;
                let what = format!("state of {what}");
                close(&what, &values(runtime, &state)?, &s, |i| own(s[i]))?;
            }
        }
    }
    Ok(())
}

pub fn refusals(runtime: &Runtime) -> Result<(), Failed> {
    let make = |sizes: &[i64], dtype| {
        runtime.from_bytes(
            &vec![0; sizes.iter().product::<i64>() as usize * dtype_size(dtype)],
            sizes,
            dtype,
            DeviceType::Mps,
        )
    };
    let (x, w) = (make(&[2, 64], DType::F32)?, make(&[4, 32], DType::U8)?);
    let s = make(&[4, 2], DType::F32)?;
    let text = |result: aoti_wgpu::error::Result<Tensor>| result.unwrap_err().to_string();
    assert!(text(runtime.linear_4bit(&x, &w, 48, &s, &s)).contains("group_size is 48"));
    assert!(text(runtime.linear_4bit(&x, &w, 64, &s, &s)).contains("S is of sizes [4, 2]"));
    assert!(text(runtime.linear_4bit(&w, &w, 32, &s, &s)).contains("A is of uint8"));
    assert!(text(runtime.linear_4bit(&x, &x, 32, &s, &s)).contains("B is of float32"));
    Ok(())
}

fn dtype_size(dtype: DType) -> usize {
    dtype.size()
}
