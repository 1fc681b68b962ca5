//! Sorting, running sums, indexing and views by operators, against plain loops.

use crate::copies::Random;
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::ops::index::Reduce;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use approx::assert_abs_diff_eq;

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::sorts", sorts),
    ("kernels::sorts_nan_and_zeros", sorts_nan_and_zeros),
    ("kernels::running_sums", running_sums),
    ("kernels::indexing", indexing),
    ("kernels::scatter_reduce", scatter_reduce),
    ("operators::views", views),
    ("operators::cat_and_fill", cat_and_fill),
];

fn longs(world: &World, tensor: &Tensor) -> Vec<i64> {
    assert_eq!(tensor.dtype(), DType::I64);
    let bytes = world.rt.to_vec(tensor).unwrap();
    bytes.chunks_exact(8).map(|c| i64::from_ne_bytes(c.try_into().unwrap())).collect()
}

fn indices(world: &World, values: &[i64], sizes: &[i64]) -> Tensor {
    world.rt.from_slice(values, sizes, DType::I64, DeviceType::Mps).unwrap()
}

/// Values with many ties, rows of sizes that are no power of two, transposed too.
fn sorts(world: &World) {
    let rt = &world.rt;
    let mut random = Random(3);
    for (rows, columns) in [(1i64, 1i64), (3, 7), (5, 1000), (2, 2500)] {
        let values: Vec<f32> =
            (0..rows * columns).map(|_| random.below(50) as f32 - 25.0).collect();
        let t = rt.from_slice(&values, &[rows, columns], DType::F32, DeviceType::Mps).unwrap();
        for descending in [false, true] {
            let (sorted, places) = rt.sort(&t, -1, descending).unwrap();
            let (sorted, places) = (world.floats(&sorted), longs(world, &places));
            for row in 0..rows as usize {
                let of = &values[row * columns as usize..][..columns as usize];
                let mut expected: Vec<usize> = (0..of.len()).collect();
                // Stable, both ways.
                expected.sort_by(|&a, &b| match descending {
                    false => of[a].total_cmp(&of[b]),
                    true => of[b].total_cmp(&of[a]),
                });
                for (i, &from) in expected.iter().enumerate() {
                    let at = row * columns as usize + i;
                    assert_eq!(places[at], from as i64, "row {row}, place {i}");
                    assert_eq!(sorted[at], of[from]);
                }
            }
            let k = 1 + (columns - 1) / 2;
            let (top, places) = rt.topk(&t, k, 1, descending).unwrap();
            assert_eq!(top.sizes(), [rows, k]);
            let top = world.floats(&top);
            for (i, place) in longs(world, &places).into_iter().enumerate() {
                let row = i as i64 / k;
                assert_eq!(top[i], values[(row * columns + place) as usize]);
                assert_eq!(top[i], sorted[(row * columns + i as i64 % k) as usize]);
            }
        }
        // Along the other dimension, of a view.
        let turned = rt.view(&t, &[columns, rows], &[1, columns], 0).unwrap();
        let (a, _) = rt.sort(&turned, 0, false).unwrap();
        let (b, _) = rt.sort(&t, 1, false).unwrap();
        let (a, b) = (world.floats(&a), world.floats(&b));
        for i in 0..columns as usize {
            for j in 0..rows as usize {
                assert_eq!(a[i * rows as usize + j], b[j * columns as usize + i]);
            }
        }
    }
    assert!(rt.topk(&world.iota(&[3]), 4, 0, true).is_err());
}

fn sorts_nan_and_zeros(world: &World) {
    let rt = &world.rt;
    let values = [0.0f32, f32::NAN, -1.0, f32::INFINITY, -0.0, f32::NEG_INFINITY];
    let t = rt.from_slice(&values, &[6], DType::F32, DeviceType::Mps).unwrap();
    let (_, places) = rt.sort(&t, 0, false).unwrap();
    assert_eq!(longs(world, &places), [5, 2, 0, 4, 3, 1], "NaN is greatest, zeros are equal");
    let (_, places) = rt.topk(&t, 2, 0, true).unwrap();
    assert_eq!(longs(world, &places), [1, 3]);
    let wide = [i64::MIN, 3, -1, i64::MAX, 1 << 40];
    let (sorted, _) = rt.sort(&indices(world, &wide, &[5]), 0, false).unwrap();
    assert_eq!(longs(world, &sorted), [i64::MIN, -1, 3, 1 << 40, i64::MAX]);
}

fn running_sums(world: &World) {
    let rt = &world.rt;
    let (rows, columns) = (3usize, 1500usize);
    let mut random = Random(5);
    let values: Vec<f32> =
        (0..rows * columns).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    let sizes = [rows as i64, columns as i64];
    let t = rt.from_slice(&values, &sizes, DType::F32, DeviceType::Mps).unwrap();
    let found = world.floats(&rt.cumsum(&t, 1, None).unwrap());
    for row in 0..rows {
        let mut sum = 0.0f64;
        for column in 0..columns {
            sum += f64::from(values[row * columns + column]);
            // A tree of sums of at most 1500 values of at most 1.
            let bound = 1500.0 * 2f64.powi(-24) * 12.0;
            assert_abs_diff_eq!(f64::from(found[row * columns + column]), sum, epsilon = bound);
        }
    }
    let flags = rt.from_bytes(&[1, 0, 1, 1], &[2, 2], DType::Bool, DeviceType::Mps).unwrap();
    assert_eq!(longs(world, &rt.cumsum(&flags, 0, None).unwrap()), [1, 0, 2, 1]);
}

fn indexing(world: &World) {
    let rt = &world.rt;
    let t = world.iota(&[4, 5, 3]);
    let rows = indices(world, &[3, 0, -1], &[3]);
    let found = rt.index(&t, &[Some(&rows)]).unwrap();
    assert_eq!(found.sizes(), [3, 5, 3]);
    let values = world.floats(&found);
    assert_eq!((values[0], values[15], values[30]), (45.0, 0.0, 45.0));
    let columns = indices(world, &[1, 4, 2], &[3]);
    let pairs = rt.index(&t, &[Some(&rows), Some(&columns)]).unwrap();
    assert_eq!(pairs.sizes(), [3, 3]);
    assert_eq!(world.floats(&pairs), [48.0, 49.0, 50.0, 12.0, 13.0, 14.0, 51.0, 52.0, 53.0]);
    let last = rt.index(&t, &[None, None, Some(&indices(world, &[2], &[1]))]).unwrap();
    assert_eq!(last.sizes(), [4, 5, 1]);
    assert_eq!(world.floats(&last)[1], 5.0);

    let base = world.iota(&[6]);
    let places = indices(world, &[1, 1, 4], &[3]);
    let add = rt.from_slice(&[10.0f32, 20.0, 30.0], &[3], DType::F32, DeviceType::Mps).unwrap();
    let sums = rt.index_put(&base, &[Some(&places)], &add, true).unwrap();
    assert_eq!(world.floats(&sums), [0.0, 31.0, 2.0, 3.0, 34.0, 5.0]);
    let set = rt.index_put(&base, &[Some(&indices(world, &[5, 0, 2], &[3]))], &add, false).unwrap();
    assert_eq!(world.floats(&set), [20.0, 1.0, 30.0, 3.0, 4.0, 10.0]);
    assert_eq!(world.floats(&base)[0], 0.0, "the input is not written");
    // Elements of one byte.
    let bytes = rt.from_bytes(&[1, 2, 3, 4, 5, 6, 7], &[7], DType::U8, DeviceType::Mps).unwrap();
    let found = rt.index(&bytes, &[Some(&indices(world, &[6, 0, 3], &[3]))]).unwrap();
    assert_eq!(rt.to_vec(&found).unwrap(), [7, 1, 4]);
}

fn scatter_reduce(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[4]);
    let index = indices(world, &[0, 0, 2], &[3]);
    let src = rt.from_slice(&[5.0f32, 7.0, -1.0], &[3], DType::F32, DeviceType::Mps).unwrap();
    let run = |how: &str, include| {
        let out = world.iota(&[4]);
        let how = Reduce::from_name(how).unwrap();
        rt.scatter_reduce_out(&out, &base, 0, &index, &src, how, include).unwrap();
        world.floats(&out)
    };
    assert_eq!(run("sum", true), [12.0, 1.0, 1.0, 3.0]);
    assert_eq!(run("sum", false), [12.0, 1.0, -1.0, 3.0]);
    assert_eq!(run("amax", true), [7.0, 1.0, 2.0, 3.0]);
    assert_eq!(run("amin", true), [0.0, 1.0, -1.0, 3.0]);
    assert_eq!(run("mean", true), [4.0, 1.0, 0.5, 3.0]);
    assert!(Reduce::from_name("median").is_err());
}

fn views(world: &World) {
    let rt = &world.rt;
    let t = world.iota(&[4, 6]);
    assert_eq!(world.floats(&rt.narrow(&t, 1, 2, 2).unwrap())[..3], [2.0, 3.0, 8.0]);
    assert_eq!(world.floats(&rt.narrow(&t, 0, -1, 1).unwrap())[0], 18.0);
    assert!(rt.narrow(&t, 1, 5, 2).is_err());
    let step = rt.slice(&t, 1, Some(1), None, 2).unwrap();
    assert_eq!(step.sizes(), [4, 3]);
    assert_eq!(world.floats(&step)[..4], [1.0, 3.0, 5.0, 7.0]);
    let turned = rt.permute(&t, &[1, 0]).unwrap();
    assert_eq!(world.floats(&turned)[..3], [0.0, 6.0, 12.0]);
    assert!(rt.permute(&t, &[0, 0]).is_err());
    assert!(rt.reshape(&t, &[3, -1]).unwrap().shares_storage(&t));
    let copied = rt.reshape(&turned, &[24]).unwrap();
    assert!(!copied.shares_storage(&t));
    assert_eq!(world.floats(&copied)[..2], [0.0, 6.0]);
    assert!(rt.reshape(&t, &[5, -1]).is_err());
    assert_eq!(rt.squeeze(&rt.reshape(&t, &[4, 1, 6]).unwrap(), 1).unwrap().sizes(), [4, 6]);
    assert_eq!(rt.squeeze(&t, 0).unwrap().sizes(), [4, 6]);
    let bits = rt.view_dtype(&t, DType::I32).unwrap();
    assert_eq!(rt.to_vec(&bits).unwrap(), rt.to_vec(&t).unwrap());
    assert_eq!(rt.view_dtype(&t, DType::U8).unwrap().sizes(), [4, 24]);
}

fn cat_and_fill(world: &World) {
    let rt = &world.rt;
    let a = world.iota(&[2, 3]);
    let b = rt.view(&world.iota(&[4, 2]), &[2, 2], &[1, 2], 0).unwrap();
    let joined = rt.cat(&[&a, &b], 1).unwrap();
    assert_eq!(joined.sizes(), [2, 5]);
    let expected = [0.0, 1.0, 2.0, 0.0, 2.0, 3.0, 4.0, 5.0, 1.0, 3.0];
    assert_eq!(world.floats(&joined), expected);
    assert!(rt.cat(&[&a, &b], 0).is_err());
    rt.fill_scalar(&rt.narrow(&a, 1, 1, 1).unwrap(), 9.5).unwrap();
    assert_eq!(world.floats(&a), [0.0, 9.5, 2.0, 3.0, 9.5, 5.0]);
}
