//! Matrix products, 4-bit products and the gated delta rule against sums in f64.
//!
//! Bounds: each sum is kept in f32, so it is off by at most some rounding steps of the sum
//! of the magnitudes; the result is rounded once to its type.

use crate::copies::Random;
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use approx::assert_abs_diff_eq;
use half::{bf16, f16};

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::matrix_products", matrix_products),
    ("kernels::products_with_an_addend", products_with_an_addend),
    ("kernels::products_of_nothing", products_of_nothing),
    ("kernels::product_refusals", product_refusals),
    ("kernels::four_bit_products", four_bit_products),
    ("kernels::gated_delta_rule", gated_delta_rule),
];

/// Relative precision of a type: half a unit in the last place of 1.
pub fn precision(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 2f64.powi(-24),
        DType::F16 => 2f64.powi(-11),
        _ => 2f64.powi(-8),
    }
}

fn encode(values: &[f64], dtype: DType) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&v| match dtype {
            DType::F32 => (v as f32).to_ne_bytes().to_vec(),
            DType::F16 => f16::from_f64(v).to_ne_bytes().to_vec(),
            _ => bf16::from_f64(v).to_ne_bytes().to_vec(),
        })
        .collect()
}

fn decode(bytes: &[u8], dtype: DType) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes
            .chunks_exact(4)
            .map(|c| f64::from(f32::from_ne_bytes(c.try_into().unwrap())))
            .collect(),
        DType::F16 => bytes
            .chunks_exact(2)
            .map(|c| f16::from_ne_bytes(c.try_into().unwrap()).to_f64())
            .collect(),
        _ => bytes
            .chunks_exact(2)
            .map(|c| bf16::from_ne_bytes(c.try_into().unwrap()).to_f64())
            .collect(),
    }
}

pub fn noise(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| random.below(2001) as f64 / 1000.0 - 1.0).collect()
}

pub fn tensor(world: &World, values: &[f64], sizes: &[i64], dtype: DType) -> Tensor {
    world.rt.from_bytes(&encode(values, dtype), sizes, dtype, DeviceType::Mps).unwrap()
}

pub fn values(world: &World, tensor: &Tensor) -> Vec<f64> {
    decode(&world.rt.to_vec(tensor).unwrap(), tensor.dtype())
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug)]
enum Way {
    Dense,
    Transposed,
    Sliced,
}

/// A matrix of `sizes` (batch, rows, columns) that lies in memory in a certain way.
fn matrix(world: &World, random: &mut Random, sizes: [i64; 3], dtype: DType, way: Way) -> Tensor {
    let [batch, rows, columns] = sizes;
    let rt = &world.rt;
    let base = |count: i64, random: &mut Random| {
        tensor(world, &noise(random, count as usize), &[count], dtype)
    };
    match way {
        Way::Dense => {
            let of = base(batch * rows * columns, random);
            rt.view(&of, &sizes, &[rows * columns, columns, 1], 0).unwrap()
        }
        Way::Transposed => {
            let of = base(batch * rows * columns, random);
            rt.view(&of, &sizes, &[rows * columns, 1, rows], 0).unwrap()
        }
        Way::Sliced => {
            let pitch = columns + 5;
            let of = base(batch * rows * pitch + 3, random);
            rt.view(&of, &sizes, &[rows * pitch, pitch, 1], 3).unwrap()
        }
    }
}

/// Checks out = beta addend + alpha a b.
fn check_product(
    world: &World,
    out: &Tensor,
    a: &[f64],
    b: &[f64],
    k: usize,
    scale: (f64, &[f64]),
) {
    let (beta, addend) = scale;
    let [batch, m, n] = <[i64; 3]>::try_from(out.sizes()).unwrap().map(|s| s as usize);
    let found = values(world, out);
    let unit = precision(out.dtype());
    for at in 0..batch * m * n {
        let (j, i, p) = (at % n, at / n % m, at / n / m);
        let (mut sum, mut size) = (0.0, 0.0);
        for l in 0..k {
            let term = a[(p * m + i) * k + l] * b[(p * k + l) * n + j];
            sum += term;
            size += term.abs();
        }
        if beta != 0.0 {
            sum += beta * addend[at % addend.len()];
        }
        let bound = 2.0 * unit * sum.abs() + (k as f64 + 4.0) * 2f64.powi(-24) * (size + 1.0);
        assert_abs_diff_eq!(found[at], sum, epsilon = bound);
    }
}

fn matrix_products(world: &World) {
    let rt = &world.rt;
    let mut random = Random(7);
    let shapes = [
        (1, 1, 1, 1),
        (1, 33, 65, 17),
        (2, 5, 70, 130),
        (1, 1, 300, 257),
        (3, 64, 64, 64),
        (1, 130, 9, 3),
    ];
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for (batch, m, k, n) in shapes {
            for (left, right) in [
                (Way::Dense, Way::Dense),
                (Way::Dense, Way::Transposed),
                (Way::Transposed, Way::Sliced),
                (Way::Sliced, Way::Dense),
            ] {
                let a = matrix(world, &mut random, [batch, m, k], dtype, left);
                let b = matrix(world, &mut random, [batch, k, n], dtype, right);
                let dense = matrix(world, &mut random, [batch, m, n], dtype, Way::Dense);
                let holes = matrix(world, &mut random, [batch, m, n], dtype, Way::Sliced);
                for out in [&dense, &holes] {
                    rt.bmm_out(out, &a, &b).unwrap();
                    check_product(
                        world,
                        out,
                        &values(world, &a),
                        &values(world, &b),
                        k as usize,
                        (0.0, &[]),
                    );
                }
            }
        }
    }
}

fn products_with_an_addend(world: &World) {
    let rt = &world.rt;
    let mut random = Random(11);
    for dtype in [DType::F32, DType::BF16] {
        let (m, k, n) = (19i64, 40i64, 23i64);
        let a = matrix(world, &mut random, [1, m, k], dtype, Way::Dense);
        let b = matrix(world, &mut random, [1, k, n], dtype, Way::Transposed);
        let out = matrix(world, &mut random, [1, m, n], dtype, Way::Dense);
        let row = tensor(world, &noise(&mut random, n as usize), &[n], dtype);
        rt.baddbmm_out(&out, &row, &a, &b, 0.5, 2.0).unwrap();
        let doubled: Vec<f64> = values(world, &a).iter().map(|v| 2.0 * v).collect();
        let addend = values(world, &row);
        check_product(world, &out, &doubled, &values(world, &b), k as usize, (0.5, &addend));
        // A beta of 0 does not read the addend.
        let nan = tensor(world, &vec![f64::NAN; n as usize], &[n], dtype);
        rt.baddbmm_out(&out, &nan, &a, &b, 0.0, 2.0).unwrap();
        check_product(world, &out, &doubled, &values(world, &b), k as usize, (0.0, &[]));
        // NaN in a factor reaches its row and no other.
        let mut with_nan = values(world, &a);
        with_nan[3 * k as usize + 1] = f64::NAN;
        let poisoned = tensor(world, &with_nan, &[1, m, k], dtype);
        rt.bmm_out(&out, &poisoned, &b).unwrap();
        let found = values(world, &out);
        for (at, v) in found.iter().enumerate() {
            assert_eq!(v.is_nan(), at / n as usize == 3, "element {at}");
        }
        // In place: the output is a factor as well.
        let square = matrix(world, &mut random, [1, 20, 20], dtype, Way::Dense);
        let before = values(world, &square);
        rt.bmm_out(&square, &square, &square).unwrap();
        check_product(world, &square, &before, &before, 20, (0.0, &[]));
    }
}

fn products_of_nothing(world: &World) {
    let rt = &world.rt;
    let out = world.iota(&[3, 4]);
    let empty = |sizes: &[i64]| {
        rt.empty(Layout::contiguous(sizes).unwrap(), DType::F32, DeviceType::Mps).unwrap()
    };
    rt.mm_out(&out, &empty(&[3, 0]), &empty(&[0, 4])).unwrap();
    assert_eq!(world.floats(&out), [0.0; 12], "a sum of nothing is 0");
    rt.mm_out(&empty(&[0, 4]), &empty(&[0, 5]), &empty(&[5, 4])).unwrap();
}

fn product_refusals(world: &World) {
    let rt = &world.rt;
    let text = |out: &[i64], a: &[i64], b: &[i64]| {
        rt.mm_out(&world.iota(out), &world.iota(a), &world.iota(b)).unwrap_err().to_string()
    };
    assert!(text(&[2, 2], &[2, 3], &[4, 2]).contains("[4, 2]"));
    assert!(text(&[2, 3], &[2, 3], &[3, 2]).contains("[2, 3]"));
    let ints = rt.from_bytes(&[0; 16], &[2, 2], DType::I32, DeviceType::Mps).unwrap();
    let refused = rt.mm_out(&ints, &ints, &ints).unwrap_err().to_string();
    assert!(refused.contains("mm_out") && refused.contains("int32"), "{refused}");
}

fn four_bit_products(world: &World) {
    let rt = &world.rt;
    let mut random = Random(23);
    for dtype in [DType::F32, DType::BF16] {
        for (m, k, n, group) in [(1, 64, 10, 32), (1, 256, 37, 64), (19, 128, 36, 32)] {
            let x = noise(&mut random, m * k);
            let a = tensor(world, &x, &[m as i64, k as i64], dtype);
            let nibbles: Vec<u8> = (0..n * k / 2).map(|_| random.below(256) as u8).collect();
            let w = rt
                .from_bytes(&nibbles, &[n as i64, k as i64 / 2], DType::U8, DeviceType::Mps)
                .unwrap();
            let groups = [n as i64, (k / group) as i64];
            let scale = tensor(world, &noise(&mut random, n * k / group), &groups, dtype);
            let offset = tensor(world, &noise(&mut random, n * k / group), &groups, dtype);
            let out = rt.linear_4bit(&a, &w, group as i64, &scale, &offset).unwrap();
            assert_eq!(out.sizes(), [m as i64, n as i64]);
            let (x, scale, offset) =
                (values(world, &a), values(world, &scale), values(world, &offset));
            for (at, found) in values(world, &out).into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let (mut sum, mut size) = (0.0, 0.0);
                for l in 0..k {
                    let byte = nibbles[j * (k / 2) + l / 2];
                    let nibble = f64::from(if l % 2 == 0 { byte & 15 } else { byte >> 4 });
                    let of = j * (k / group) + l / group;
                    let term = x[i * k + l] * (nibble * scale[of] + offset[of]);
                    sum += term;
                    size += x[i * k + l].abs() * (nibble * scale[of].abs() + offset[of].abs());
                }
                // Rounding each weight to the activations' type is within the contract.
                let bound = (2.0 * precision(dtype) + 1e-6) * size;
                assert_abs_diff_eq!(found, sum, epsilon = bound);
            }
        }
    }
    // An expert a row, chosen on the device.
    let (p, e, n, k, group) = (5usize, 3usize, 12usize, 64usize, 32usize);
    let x = tensor(world, &noise(&mut random, p * k), &[p as i64, k as i64], DType::F32);
    let nibbles: Vec<u8> = (0..e * n * k / 2).map(|_| random.below(256) as u8).collect();
    let w = rt
        .from_bytes(&nibbles, &[e as i64, n as i64, k as i64 / 2], DType::U8, DeviceType::Mps)
        .unwrap();
    let groups = [e as i64, n as i64, (k / group) as i64];
    let scale = tensor(world, &noise(&mut random, e * n * k / group), &groups, DType::F32);
    let offset = tensor(world, &noise(&mut random, e * n * k / group), &groups, DType::F32);
    let chosen = [2i32, 0, 1, 1, 2];
    let experts = rt.from_slice(&chosen, &[p as i64], DType::I32, DeviceType::Mps).unwrap();
    let out = rt.gather_qmv(&x, &w, &scale, &offset, &experts, group as i64).unwrap();
    let (x, scale, offset) = (values(world, &x), values(world, &scale), values(world, &offset));
    for (at, found) in values(world, &out).into_iter().enumerate() {
        let (i, row) = (at / n, chosen[at / n] as usize * n + at % n);
        let sum: f64 = (0..k)
            .map(|l| {
                let byte = nibbles[row * (k / 2) + l / 2];
                let nibble = f64::from(if l % 2 == 0 { byte & 15 } else { byte >> 4 });
                let of = row * (k / group) + l / group;
                x[i * k + l] * (nibble * scale[of] + offset[of])
            })
            .sum();
        assert_abs_diff_eq!(found, sum, epsilon = 1e-6 * 16.0 * k as f64);
    }
}

fn gated_delta_rule(world: &World) {
    let rt = &world.rt;
    let mut random = Random(31);
    let (b, l, hk, hv, dk, dv) = (2usize, 3usize, 2usize, 4usize, 64usize, 32usize);
    let make = |random: &mut Random, sizes: &[usize], scale: f64| {
        let count = sizes.iter().product();
        let values: Vec<f64> = noise(random, count).iter().map(|v| v * scale).collect();
        let sizes: Vec<i64> = sizes.iter().map(|&s| s as i64).collect();
        tensor(world, &values, &sizes, DType::F32)
    };
    let q = make(&mut random, &[b, l, hk, dk], 0.3);
    let k = make(&mut random, &[b, l, hk, dk], 0.3);
    let v = make(&mut random, &[b, l, hv, dv], 1.0);
    let g = make(&mut random, &[b, l, hv], 0.9);
    let beta = make(&mut random, &[b, l, hv], 1.0);
    let state = make(&mut random, &[b, hv, dv, dk], 1.0);
    let mut s = values(world, &state);
    let out = rt.gated_delta_rule(&q, &k, &v, &g, &beta, &state).unwrap();
    let read = |t: &Tensor| values(world, t);
    let (q, k, v, g, beta) = (read(&q), read(&k), read(&v), read(&g), read(&beta));
    let found = read(&out);
    for batch in 0..b {
        for head in 0..hv {
            let matrix = &mut s[(batch * hv + head) * dv * dk..][..dv * dk];
            for t in 0..l {
                let gate = (batch * l + t) * hv + head;
                let key = ((batch * l + t) * hk + head / (hv / hk)) * dk;
                for i in 0..dv {
                    let row = &mut matrix[i * dk..][..dk];
                    row.iter_mut().for_each(|x| *x *= g[gate]);
                    let inner: f64 = row.iter().zip(&k[key..]).map(|(x, k)| x * k).sum();
                    let d = beta[gate] * (v[gate * dv + i] - inner);
                    row.iter_mut().zip(&k[key..]).for_each(|(x, k)| *x += d * k);
                    let y: f64 = row.iter().zip(&q[key..]).map(|(x, q)| x * q).sum();
                    assert_abs_diff_eq!(found[gate * dv + i], y, epsilon = 2e-4);
                }
            }
        }
    }
    for (found, expected) in read(&state).iter().zip(&s) {
        assert_abs_diff_eq!(*found, *expected, epsilon = 1e-4);
    }
}
