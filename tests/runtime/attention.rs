//! Attention against sums in f64.
//!
//! Bounds: a score is a sum of `depth` products in f32, off by at most depth + 8 rounding
//! steps of the sum of the magnitudes and of the mask. That error is relative in the weight,
//! as are those of the exponential (3 + 2 |x| units, by the specification of WGSL) and of
//! the sums over the keys; a weight and the sum that divides it have it once each. The
//! result is rounded once to its type.

use crate::copies::Random;
use crate::operators::{noise, precision, tensor, values};
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Error;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use approx::assert_abs_diff_eq;

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::attention_sizes", sizes),
    ("kernels::attention_strides", strides),
    ("kernels::attention_masks", masks),
    ("kernels::attention_of_parts", parts),
    ("kernels::attention_over_dimensions", dimensions),
    ("kernels::attention_with_nan", nan),
    ("kernels::attention_of_masked_rows", masked_rows),
    ("kernels::attention_of_nothing", nothing),
    ("kernels::attention_of_host_memory", host_memory),
    ("kernels::attention_refusals", refusals),
];

const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const STEP: f64 = 1.0 / 16777216.0;

/// Sizes of an attention.
#[derive(Clone, Copy, Debug)]
struct Case {
    outer: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    columns: i64,
    causal: bool,
    scale: Option<f64>,
}

const ONE: Case = Case {
    outer: 1,
    heads: 1,
    key_heads: 1,
    queries: 1,
    keys: 1,
    depth: 1,
    columns: 1,
    causal: false,
    scale: None,
};

impl Case {
    /// [outer, heads, key heads, queries, keys, depth, columns].
    fn of([outer, heads, key_heads, queries, keys, depth, columns]: [i64; 7]) -> Case {
        Case { outer, heads, key_heads, queries, keys, depth, columns, ..ONE }
    }
}

/// How a tensor (outer, head, row, column) lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Dense,
    /// (outer, row, head, column) in memory, as a projection leaves it.
    Swapped,
    /// Rows in a wider matrix, off by three elements.
    Sliced,
    /// (outer, head, column, row) in memory.
    Transposed,
    /// Every second column.
    Spread,
    /// One head for all of them.
    Expanded,
}

fn four(world: &World, random: &mut Random, sizes: [i64; 4], dtype: DType, way: Way) -> Tensor {
    let [_, h, r, c] = sizes;
    let (strides, offset) = match way {
        Way::Dense => ([h * r * c, r * c, c, 1], 0),
        Way::Swapped => ([h * r * c, c, h * c, 1], 0),
        Way::Sliced => ([h * r * (c + 5), r * (c + 5), c + 5, 1], 3),
        Way::Transposed => ([h * r * c, r * c, 1, r], 0),
        Way::Spread => ([2 * h * r * c, 2 * r * c, 2 * c, 2], 1),
        Way::Expanded => ([r * c, 0, c, 1], 0),
    };
    let layout = Layout::new(&sizes, &strides, offset).unwrap();
    let base = tensor(world, &noise(random, layout.end() as usize), &[layout.end()], dtype);
    world.rt.view(&base, &sizes, &strides, offset).unwrap()
}

/// What a mask adds, to (outer, head, query, key) in row-major order.
fn additions(world: &World, mask: &Tensor, sizes: [i64; 4]) -> Vec<f64> {
    let own = if mask.dtype() == DType::Bool {
        let bytes = world.rt.to_vec(mask).unwrap();
        bytes.iter().map(|&b| if b != 0 { 0.0 } else { f64::NEG_INFINITY }).collect()
    } else {
        values(world, mask)
    };
    let dense = Layout::contiguous(mask.sizes()).unwrap().broadcast_to(&sizes).unwrap();
    let mut all = Vec::new();
    for at in 0..sizes.iter().product::<i64>() {
        let (mut rest, mut place) = (at, 0);
        for (&size, &stride) in sizes.iter().zip(dense.strides()).rev() {
            place += (rest % size) * stride;
            rest /= size;
        }
        all.push(own[place as usize]);
    }
    all
}

/// The result and the weights, each with its bound but for the last rounding.
struct Expected {
    result: Vec<(f64, f64)>,
    weights: Vec<(f64, f64)>,
}

fn expected(case: &Case, q: &[f64], k: &[f64], v: &[f64], mask: Option<&[f64]>) -> Expected {
    let [queries, keys] = [case.queries as usize, case.keys as usize];
    let [depth, columns] = [case.depth as usize, case.columns as usize];
    let scale = case.scale.unwrap_or(1.0 / (case.depth as f64).sqrt());
    let (mut result, mut weights) = (Vec::new(), Vec::new());
    for row in 0..(case.outer * case.heads) as usize * queries {
        let (head, query) = (row / queries, row % queries);
        let [outer, head] = [head / case.heads as usize, head % case.heads as usize];
        let shared_by = (case.heads / case.key_heads) as usize;
        let k_head = outer * case.key_heads as usize + head / shared_by;
        let (mut scores, mut error) = (vec![f64::NEG_INFINITY; keys], 0f64);
        for (s, score) in scores.iter_mut().enumerate() {
            if case.causal && s > query {
                continue;
            }
            let (mut sum, mut size) = (0.0, 0.0);
            for d in 0..depth {
                let term = scale * q[row * depth + d] * k[(k_head * keys + s) * depth + d];
                sum += term;
                size += term.abs();
            }
            let added = mask.map_or(0.0, |mask| mask[row * keys + s]);
            *score = sum + added;
            if added.is_finite() {
                error = error.max((depth as f64 + 8.0) * STEP * (size + added.abs()));
            }
        }
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let seen = most > f64::NEG_INFINITY;
        let shares: Vec<f64> =
            scores.iter().map(|s| if seen { (s - most).exp() } else { 0.0 }).collect();
        let sum: f64 = shares.iter().sum();
        let divisor = if sum == 0.0 { 1.0 } else { sum };
        // A weight that is not next to nothing has |x| below 16.
        let relative = 2.0 * (2.0 * error + (35.0 + 8.0 + keys as f64) * STEP);
        weights.extend(shares.iter().map(|s| (s / divisor, relative * s / divisor + 1e-7)));
        for c in 0..columns {
            let (mut value, mut size) = (0.0, 0.0);
            for (s, share) in shares.iter().enumerate() {
                let term = share / divisor * v[(k_head * keys + s) * columns + c];
                value += term;
                size += term.abs();
            }
            result.push((value, relative * size + 1e-7));
        }
    }
    Expected { result, weights }
}

fn check(world: &World, case: &Case, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) {
    let rt = &world.rt;
    let sizes = [case.outer, case.heads, case.queries, case.keys];
    let added = mask.map(|mask| additions(world, mask, sizes));
    let [qs, ks, vs] = [q, k, v].map(|t| values(world, t));
    let wanted = expected(case, &qs, &ks, &vs, added.as_deref());
    let out = rt.scaled_dot_product_attention(q, k, v, mask, case.causal, case.scale).unwrap();
    let weights = rt.attention_weights(q, k, mask, case.causal, case.scale).unwrap();
    assert_eq!(out.sizes(), [case.outer, case.heads, case.queries, case.columns]);
    assert_eq!(weights.sizes(), sizes);
    let unit = 2.0 * precision(q.dtype());
    for (tensor, wanted) in [(&out, &wanted.result), (&weights, &wanted.weights)] {
        assert!(tensor.strided_layout().is_contiguous() && tensor.dtype() == q.dtype());
        let found = values(world, tensor);
        assert_eq!(found.len(), wanted.len(), "{case:?}");
        for (at, (&found, &(wanted, bound))) in found.iter().zip(wanted.iter()).enumerate() {
            let bound = bound + unit * wanted.abs() + 6e-8;
            assert!(
                (found - wanted).abs() <= bound,
                "{case:?}, {}: element {at} of {:?} is {found}, not {wanted}, give or take {bound}",
                q.dtype(),
                tensor.sizes()
            );
        }
    }
}

fn check_ways(
    world: &World,
    random: &mut Random,
    case: &Case,
    dtype: DType,
    [q_way, k_way, v_way]: [Way; 3],
) {
    let Case { outer, heads, key_heads, queries, keys, depth, columns, .. } = *case;
    let q = four(world, random, [outer, heads, queries, depth], dtype, q_way);
    let k = four(world, random, [outer, key_heads, keys, depth], dtype, k_way);
    let v = four(world, random, [outer, key_heads, keys, columns], dtype, v_way);
    check(world, case, &q, &k, &v, None);
}

fn sizes(world: &World) {
    let mut random = Random(41);
    for dtype in DTYPES {
        for sizes in [
            [1, 1, 1, 1, 1, 1, 1],
            [2, 2, 2, 64, 128, 64, 64],
            // Tiles that are not full, and rows of two heads in one.
            [1, 4, 2, 35, 65, 40, 72],
            [1, 2, 2, 70, 130, 128, 128],
            // Few rows, of each number that has a kernel of its own.
            [1, 2, 1, 1, 77, 128, 128],
            [2, 3, 3, 1, 200, 80, 80],
            [1, 3, 1, 1, 50, 256, 256],
            [1, 7, 1, 1, 33, 96, 112],
            [1, 2, 2, 6, 10, 7, 3],
            // More rows, or larger heads, than those are for.
            [1, 1, 1, 9, 20, 256, 200],
            [1, 1, 1, 5, 20, 130, 16],
            [1, 1, 1, 2, 19, 300, 301],
            [1, 2, 1, 67, 3, 2, 5],
        ] {
            for causal in [false, true] {
                let case = Case { causal, ..Case::of(sizes) };
                check_ways(world, &mut random, &case, dtype, [Way::Dense; 3]);
            }
        }
    }
    // Every head size that is not a multiple of anything, at a row and at a tile.
    for depth in (1..=256).step_by(17) {
        for queries in [1, 9] {
            let case = Case::of([1, 1, 1, queries, 11, depth, 257 - depth]);
            let case = Case { scale: Some(0.3), ..case };
            check_ways(world, &mut random, &case, DType::F32, [Way::Dense; 3]);
        }
    }
}

fn strides(world: &World) {
    let mut random = Random(43);
    let ways = [
        [Way::Swapped; 3],
        [Way::Sliced; 3],
        [Way::Transposed; 3],
        [Way::Spread; 3],
        [Way::Dense, Way::Expanded, Way::Expanded],
        [Way::Expanded, Way::Transposed, Way::Dense],
        [Way::Swapped, Way::Sliced, Way::Spread],
    ];
    for dtype in DTYPES {
        for ways in ways {
            for sizes in [[2, 4, 2, 19, 35, 24, 20], [2, 4, 2, 2, 70, 64, 32]] {
                check_ways(world, &mut random, &Case::of(sizes), dtype, ways);
            }
        }
    }
}

fn masks(world: &World) {
    let rt = &world.rt;
    let mut random = Random(47);
    for dtype in DTYPES {
        for sizes in [[2, 4, 2, 19, 70, 24, 20], [2, 4, 2, 1, 70, 64, 32]] {
            let case = Case::of(sizes);
            let Case { outer, heads, key_heads, queries, keys, depth, columns, .. } = case;
            let q = four(world, &mut random, [outer, heads, queries, depth], dtype, Way::Swapped);
            let k = four(world, &mut random, [outer, key_heads, keys, depth], dtype, Way::Dense);
            let v = four(world, &mut random, [outer, key_heads, keys, columns], dtype, Way::Dense);
            let shapes: [&[i64]; 6] = [
                &[outer, heads, queries, keys],
                &[outer, 1, 1, keys],
                &[heads, queries, 1],
                &[queries, keys],
                &[keys],
                &[],
            ];
            for shape in shapes {
                let count = shape.iter().product::<i64>() as usize;
                let flags: Vec<u8> = (0..count).map(|_| u8::from(random.below(4) > 0)).collect();
                let flags = rt.from_bytes(&flags, shape, DType::Bool, DeviceType::Mps).unwrap();
                check(world, &case, &q, &k, &v, Some(&flags));
                for dtype in [dtype, DType::F32] {
                    let mut added = noise(&mut random, count);
                    for value in &mut added {
                        if random.below(5) == 0 {
                            *value = f64::NEG_INFINITY;
                        }
                    }
                    check(world, &case, &q, &k, &v, Some(&tensor(world, &added, shape, dtype)));
                }
            }
            // Strided masks: of a wider one, from the middle, and transposed.
            let wide = [outer, heads, queries, keys];
            for way in [Way::Sliced, Way::Transposed, Way::Spread, Way::Expanded] {
                let mask = four(world, &mut random, wide, dtype, way);
                check(world, &case, &q, &k, &v, Some(&mask));
            }
            let bytes: Vec<u8> = (0..3 + queries * (keys + 3)).map(|n| (n % 3) as u8).collect();
            let count = bytes.len() as i64;
            let base = rt.from_bytes(&bytes, &[count], DType::Bool, DeviceType::Mps).unwrap();
            let mask = rt.view(&base, &[queries, keys], &[keys + 3, 1], 3).unwrap();
            check(world, &case, &q, &k, &v, Some(&mask));
        }
    }
}

/// The keys of few rows are always split; those of tiles where there are enough of them.
fn parts(world: &World) {
    let mut random = Random(53);
    for dtype in [DType::F32, DType::BF16] {
        for sizes in [[1, 2, 2, 20, 1100, 16, 20], [1, 8, 1, 1, 1500, 32, 33]] {
            for causal in [false, true] {
                let case = Case { causal, ..Case::of(sizes) };
                check_ways(world, &mut random, &case, dtype, [Way::Dense; 3]);
            }
        }
    }
}

/// Tensors of two, three and five dimensions, whose leading ones may broadcast.
fn dimensions(world: &World) {
    let rt = &world.rt;
    let mut random = Random(59);
    let (queries, keys, depth) = (5i64, 9i64, 12i64);
    let make = |random: &mut Random, sizes: &[i64]| {
        tensor(world, &noise(random, sizes.iter().product::<i64>() as usize), sizes, DType::F32)
    };
    for lead in [&[][..], &[3], &[2, 3, 4], &[2, 3, 2, 2]] {
        let with = |rows: i64| -> Vec<i64> { lead.iter().copied().chain([rows, depth]).collect() };
        let q = make(&mut random, &with(queries));
        let k = make(&mut random, &with(keys));
        let v = make(&mut random, &with(keys));
        let out = rt.scaled_dot_product_attention(&q, &k, &v, None, false, None).unwrap();
        assert_eq!(out.sizes(), with(queries));
        let heads = lead.last().copied().unwrap_or(1);
        let outer = lead.iter().product::<i64>() / heads;
        let case = Case::of([outer, heads, heads, queries, keys, depth, depth]);
        let wanted =
            expected(&case, &values(world, &q), &values(world, &k), &values(world, &v), None);
        for (found, (wanted, bound)) in values(world, &out).into_iter().zip(wanted.result) {
            assert_abs_diff_eq!(found, wanted, epsilon = bound + 1e-7);
        }
    }
    // Leading dimensions that no single stride goes through, and one that k lacks.
    let base = make(&mut random, &[4, 3, 2, queries, depth]);
    let strides = [queries * depth * 6, queries * depth * 2, queries * depth, depth, 1];
    let q = rt.view(&base, &[2, 3, 2, queries, depth], &strides, 0).unwrap();
    let turned = [strides[0], strides[2], strides[1], depth, 1];
    let q = rt.view(&q, &[2, 2, 3, queries, depth], &turned, 0).unwrap();
    let k = make(&mut random, &[1, 2, 3, keys, depth]);
    let v = make(&mut random, &[1, 2, 3, keys, depth]);
    let out = rt.scaled_dot_product_attention(&q, &k, &v, None, false, None).unwrap();
    let twice = |t: &Tensor| [values(world, t), values(world, t)].concat();
    let case = Case::of([4, 3, 3, queries, keys, depth, depth]);
    let wanted = expected(&case, &values(world, &q), &twice(&k), &twice(&v), None);
    for (found, (wanted, bound)) in values(world, &out).into_iter().zip(wanted.result) {
        assert_abs_diff_eq!(found, wanted, epsilon = bound + 1e-7);
    }
}

fn nan(world: &World) {
    let rt = &world.rt;
    let mut random = Random(61);
    for (queries, keys) in [(70, 66), (3, 66)] {
        let sizes = |rows| [1i64, 2, rows, 16];
        let count = |rows: i64| (2 * rows * 16) as usize;
        let plain = |random: &mut Random, rows: i64| noise(random, count(rows));
        let dense = |v: &[f64], rows| tensor(world, v, &sizes(rows), DType::F32);
        let (q, k, v) =
            (plain(&mut random, queries), plain(&mut random, keys), plain(&mut random, keys));
        // Of a query: its row alone.
        let mut bad = q.clone();
        bad[(queries as usize + 2) * 16 + 5] = f64::NAN;
        let run = |q: &[f64], k: &[f64], v: &[f64], causal| {
            let (q, k, v) = (dense(q, queries), dense(k, keys), dense(v, keys));
            values(world, &rt.scaled_dot_product_attention(&q, &k, &v, None, causal, None).unwrap())
        };
        for (at, value) in run(&bad, &k, &v, false).iter().enumerate() {
            assert_eq!(value.is_nan(), at / 16 == queries as usize + 2, "element {at}");
        }
        // Of a key: all rows of its head that see it.
        let mut bad = k.clone();
        bad[16 + 3] = f64::NAN;
        for (at, value) in run(&q, &bad, &v, true).iter().enumerate() {
            let (head, row) = (at / 16 / queries as usize, at / 16 % queries as usize);
            assert_eq!(value.is_nan(), head == 0 && row >= 1, "element {at}");
        }
        // Of a value: its column in the rows of its head.
        let mut bad = v.clone();
        bad[7] = f64::NAN;
        for (at, value) in run(&q, &k, &bad, false).iter().enumerate() {
            assert_eq!(value.is_nan(), at / 16 < queries as usize && at % 16 == 7, "element {at}");
        }
    }
}

/// Rows of which nothing is seen are 0; with the lowest finite number as a mask they are not.
fn masked_rows(world: &World) {
    let rt = &world.rt;
    let mut random = Random(67);
    for queries in [1i64, 20] {
        let case = Case::of([1, 2, 2, queries, 70, 8, 8]);
        let make = |random: &mut Random, rows| {
            four(world, random, [1, 2, rows, 8], DType::F32, Way::Dense)
        };
        let (q, k, v) = (make(&mut random, queries), make(&mut random, 70), make(&mut random, 70));
        let hidden = rt.from_bytes(&[0; 70], &[70], DType::Bool, DeviceType::Mps).unwrap();
        check(world, &case, &q, &k, &v, Some(&hidden));
        let out = rt.scaled_dot_product_attention(&q, &k, &v, Some(&hidden), false, None).unwrap();
        assert!(values(world, &out).iter().all(|&v| v == 0.0));
        let lowest = tensor(world, &[f64::from(f32::MIN); 70], &[70], DType::F32);
        let out = rt.scaled_dot_product_attention(&q, &k, &v, Some(&lowest), false, None).unwrap();
        let vs = values(world, &v);
        for (at, found) in values(world, &out).into_iter().enumerate() {
            let head = at / (queries as usize * 8);
            let mean = (0..70).map(|s| vs[(head * 70 + s) * 8 + at % 8]).sum::<f64>() / 70.0;
            assert_abs_diff_eq!(found, mean, epsilon = 1e-5);
        }
    }
}

fn nothing(world: &World) {
    let rt = &world.rt;
    let empty = |sizes: &[i64]| {
        rt.empty(Layout::contiguous(sizes).unwrap(), DType::F32, DeviceType::Mps).unwrap()
    };
    let run = |q: &[i64], k: &[i64], v: &[i64]| {
        let (q, k, v) = (empty(q), empty(k), empty(v));
        let weights = rt.attention_weights(&q, &k, None, false, None).unwrap();
        let out = rt.scaled_dot_product_attention(&q, &k, &v, None, false, None).unwrap();
        (out, weights)
    };
    let (out, weights) = run(&[1, 2, 0, 8], &[1, 2, 3, 8], &[1, 2, 3, 4]);
    assert_eq!((out.sizes(), weights.sizes()), (&[1, 2, 0, 4][..], &[1, 2, 0, 3][..]));
    let (out, _) = run(&[0, 2, 5, 8], &[0, 2, 3, 8], &[0, 2, 3, 4]);
    assert_eq!(out.sizes(), [0, 2, 5, 4]);
    let (out, _) = run(&[1, 0, 5, 8], &[1, 0, 3, 8], &[1, 0, 3, 4]);
    assert_eq!(out.sizes(), [1, 0, 5, 4]);
    let (out, _) = run(&[1, 2, 5, 8], &[1, 2, 3, 8], &[1, 2, 3, 0]);
    assert_eq!(out.sizes(), [1, 2, 5, 0]);
    // A sum over no keys is 0, whatever the query.
    for queries in [1, 20] {
        let q = world.iota(&[1, 2, queries, 8]);
        let (k, v) = (empty(&[1, 2, 0, 8]), empty(&[1, 2, 0, 4]));
        let out = rt.scaled_dot_product_attention(&q, &k, &v, None, false, None).unwrap();
        assert!(world.floats(&out).iter().all(|&v| v == 0.0));
        assert_eq!(out.numel(), 8 * queries);
    }
}

/// Operands in host memory, at addresses that are aligned to an element alone.
fn host_memory(world: &World) {
    let rt = &world.rt;
    let mut random = Random(71);
    let case = Case::of([1, 2, 2, 9, 12, 8, 8]);
    let bytes = |random: &mut Random, count: usize| -> Vec<f32> {
        noise(random, count + 1).into_iter().map(|v| v as f32).collect()
    };
    let mut memory = [
        bytes(&mut random, 2 * 9 * 8),
        bytes(&mut random, 2 * 12 * 8),
        bytes(&mut random, 2 * 12 * 8),
    ];
    let [q, k, v] = [0, 1, 2].map(|i| {
        let rows = if i == 0 { 9 } else { 12 };
        let layout = Layout::contiguous(&[1, 2, rows, 8]).unwrap();
        let data = memory[i][1..].as_mut_ptr().cast();
        // SAFETY: the memory is of that many elements, and lives until the tensors are gone.
        unsafe { rt.blob(data, layout, DType::F32, DeviceType::Mps) }.unwrap()
    });
    check(world, &case, &q, &k, &v, None);
    drop((q, k, v));
    drop(memory);
}

fn refusals(world: &World) {
    let rt = &world.rt;
    let text = |q: &[i64], k: &[i64], v: &[i64], mask: Option<&[i64]>, causal| {
        let (q, k, v) = (world.iota(q), world.iota(k), world.iota(v));
        let mask = mask.map(|mask| world.iota(mask));
        let refused = rt.scaled_dot_product_attention(&q, &k, &v, mask.as_ref(), causal, None);
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        error.to_string()
    };
    let (q, k) = ([1, 4, 3, 8], [1, 2, 5, 8]);
    assert!(text(&[8], &k, &k, None, false).contains("query"));
    assert!(text(&q, &[2, 5, 8], &k, None, false).contains("key is of sizes [2, 5, 8]"));
    assert!(text(&q, &[1, 2, 5, 9], &k, None, false).contains("key"));
    assert!(text(&q, &[1, 3, 5, 8], &k, None, false).contains("divides the query's 4"));
    assert!(text(&q, &[2, 2, 5, 8], &[2, 2, 5, 8], None, false).contains("key"));
    assert!(text(&q, &k, &[1, 2, 6, 8], None, false).contains("value"));
    assert!(text(&q, &k, &k, Some(&[3, 4]), false).contains("attn_mask"));
    assert!(text(&q, &k, &k, Some(&[3, 5]), true).contains("is_causal"));
    assert!(text(&[1, 1, 3, 0], &[1, 1, 3, 0], &k, None, false).contains("query"));
    let ints = rt.from_bytes(&[0; 32], &[1, 1, 2, 4], DType::I32, DeviceType::Mps).unwrap();
    let floats = world.iota(&[1, 1, 2, 4]);
    let run = |q: &Tensor, v: &Tensor, mask: Option<&Tensor>| {
        rt.scaled_dot_product_attention(q, q, v, mask, false, None).unwrap_err().to_string()
    };
    assert!(run(&ints, &ints, None).contains("query is of int32"));
    assert!(run(&floats, &ints, None).contains("value"));
    assert!(run(&floats, &floats, Some(&ints)).contains("attn_mask is of int32"));
}
