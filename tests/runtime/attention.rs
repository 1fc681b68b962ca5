//! Attention against sums in f64.
//!
//! Bounds: a score of e products is kept in f32, so it is off by at most e + 8 rounding steps
//! of the sum of its magnitudes, and a weight by that factor twice (its own and the sum's).
//! Sums of s weights and values add s steps and what exp2 is off by, for which 64 are
//! allowed; the result is rounded once to its type.

use crate::copies::Random;
use crate::operators::{noise, precision, tensor, values};
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Error;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::ops::attention::Attention;
use aoti_wgpu::tensor::{DeviceType, Tensor};

pub const TESTS: &[(&str, Test)] = &[
    ("kernels::attention_of_every_head_size", head_sizes),
    ("kernels::attention_over_strides", strides),
    ("kernels::attention_with_masks", masks),
    ("kernels::attention_of_few_queries", few_queries),
    ("kernels::attention_with_nan_and_infinity", nan),
    ("kernels::attention_of_nothing", nothing),
    ("kernels::attention_refusals", refusals),
];

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

#[derive(Clone, Copy, Debug)]
enum Mask {
    None,
    /// One value for each query and key.
    Bool,
    /// As many values as there are keys, for all.
    KeyBool,
    Added,
    /// Of float32, whatever the type, one matrix a head, its keys in the wrong order.
    AddedTransposed,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    batch: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    head: i64,
    value: i64,
    causal: bool,
    scale: Option<f64>,
    mask: Mask,
    dtype: DType,
}

const PLAIN: Case = Case {
    batch: 2,
    heads: 3,
    key_heads: 3,
    queries: 70,
    keys: 67,
    head: 16,
    value: 16,
    causal: false,
    scale: None,
    mask: Mask::None,
    dtype: DType::F32,
};

/// How an operand of (batch, heads, rows, elements) lies in memory.
#[derive(Clone, Copy, Debug)]
enum Way {
    Dense,
    /// (batch, rows, heads, elements) in memory.
    Transposed,
    /// The second half of longer rows, from an odd element on.
    Sliced,
    /// Elements of a head are not next to each other.
    Turned,
    /// All batches and heads are one.
    Expanded,
}

fn operand(world: &World, random: &mut Random, sizes: [i64; 4], dtype: DType, way: Way) -> Tensor {
    let [n, h, l, e] = sizes;
    let (count, strides, offset) = match way {
        Way::Dense => (n * h * l * e, [h * l * e, l * e, e, 1], 0),
        Way::Transposed => (n * h * l * e, [h * l * e, e, h * e, 1], 0),
        Way::Sliced => {
            let pitch = 2 * e + 1;
            (n * h * l * pitch + e, [h * l * pitch, l * pitch, pitch, 1], e)
        }
        Way::Turned => (n * h * l * e, [h * l * e, l * e, 1, l], 0),
        Way::Expanded => (l * e, [0, 0, e, 1], 0),
    };
    let base = tensor(world, &noise(random, count as usize), &[count], dtype);
    world.rt.view(&base, &sizes, &strides, offset).unwrap()
}

/// A mask and what it adds to the scores, by (batch, head, query, key).
fn mask(world: &World, random: &mut Random, case: &Case) -> (Option<Tensor>, Vec<f64>) {
    let Case { batch: n, heads: h, queries: l, keys: s, .. } = *case;
    let count = (n * h * l * s) as usize;
    let bools = |sizes: &[i64], seen: &[bool]| {
        let bytes: Vec<u8> = seen.iter().map(|&seen| seen.into()).collect();
        world.rt.from_bytes(&bytes, sizes, DType::Bool, DeviceType::Mps).unwrap()
    };
    let hidden = |seen: &bool| if *seen { 0.0 } else { f64::NEG_INFINITY };
    match case.mask {
        Mask::None => (None, vec![0.0; count]),
        Mask::Bool => {
            // The first row sees nothing.
            let seen: Vec<bool> = (0..l * s).map(|i| i >= s && random.below(3) > 0).collect();
            let add = (0..count).map(|i| hidden(&seen[i % (l * s) as usize])).collect();
            (Some(bools(&[l, s], &seen)), add)
        }
        Mask::KeyBool => {
            let seen: Vec<bool> = (0..s).map(|_| random.below(2) > 0).collect();
            let add = (0..count).map(|i| hidden(&seen[i % s as usize])).collect();
            (Some(bools(&[1, 1, s], &seen)), add)
        }
        Mask::Added => {
            let base =
                tensor(world, &noise(random, (n * l * s) as usize), &[n, 1, l, s], case.dtype);
            let of = values(world, &base);
            let add = (0..count as i64)
                .map(|i| of[(i / (h * l * s) * l * s + i % (l * s)) as usize])
                .collect();
            (Some(base), add)
        }
        Mask::AddedTransposed => {
            let base = tensor(world, &noise(random, (h * l * s) as usize), &[h, s, l], DType::F32);
            let of = values(world, &base);
            let turned = world.rt.view(&base, &[h, l, s], &[l * s, 1, l], 0).unwrap();
            let add = (0..count as i64)
                .map(|i| of[(i / (l * s) % h * l * s + i % s * l + i / s % l) as usize])
                .collect();
            (Some(turned), add)
        }
    }
}

impl Case {
    fn run(&self, world: &World, ways: [Way; 3]) {
        let mut random = Random((self.head * 7 + self.keys + self.queries) as u64);
        let Case { batch, heads, key_heads, queries, keys, head, value, dtype, .. } = *self;
        let q = operand(world, &mut random, [batch, heads, queries, head], dtype, ways[0]);
        let k = operand(world, &mut random, [batch, key_heads, keys, head], dtype, ways[1]);
        let v = operand(world, &mut random, [batch, key_heads, keys, value], dtype, ways[2]);
        let (mask, added) = mask(world, &mut random, self);
        let how = Attention {
            mask: mask.as_ref(),
            causal: self.causal,
            scale: self.scale,
            grouped: heads != key_heads,
        };
        let result = world.rt.scaled_dot_product_attention(&q, &k, &v, how).unwrap();
        let weights = world.rt.attention_weights(&q, &k, how).unwrap();
        assert_eq!(result.sizes(), [batch, heads, queries, value], "{self:?}");
        assert_eq!(weights.sizes(), [batch, heads, queries, keys], "{self:?}");
        assert!(result.layout().is_contiguous() && weights.layout().is_contiguous());
        let [q, k, v] = [&q, &k, &v].map(|of| values(world, of));
        let (result, weights) = (values(world, &result), values(world, &weights));

        let scale = self.scale.unwrap_or(1.0 / (head as f64).sqrt());
        let (step, unit) = (2f64.powi(-24), precision(dtype));
        let (e, s) = (head as usize, keys as usize);
        for row in 0..(batch * heads * queries) as usize {
            let (at, query) = (row / queries as usize, row as i64 % queries);
            let key_head = {
                let (n, h) = (at as i64 / heads, at as i64 % heads);
                (n * key_heads + h / (heads / key_heads)) as usize
            };
            let mut scores = vec![f64::NEG_INFINITY; s];
            let mut size = 0f64;
            for key in 0..s {
                let products = (0..e).map(|i| q[row * e + i] * k[(key_head * s + key) * e + i]);
                let (sum, all) = products.fold((0.0, 0.0), |(a, b), p| (a + p, b + p.abs()));
                let add = added[row * s + key];
                if !(self.causal && key as i64 > query) && add > f64::NEG_INFINITY {
                    scores[key] = scale * sum + add;
                    size = size.max((scale * all).abs() + add.abs());
                }
            }
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let expected: Vec<f64> = scores
                .iter()
                .map(|score| if most == f64::NEG_INFINITY { 0.0 } else { (score - most).exp() })
                .collect();
            let sum: f64 = expected.iter().sum();
            let expected = expected.iter().map(|w| if sum > 0.0 { w / sum } else { 0.0 });
            let expected: Vec<f64> = expected.collect();
            let relative = 2.0 * (e as f64 + 8.0) * step * size + (s as f64 + 64.0) * step;
            for (key, &w) in expected.iter().enumerate() {
                let found = weights[row * s + key];
                let bound = 1.01 * unit * w + relative * w + 1e-30 + subnormal(dtype);
                assert!(
                    approx::abs_diff_eq!(found, w, epsilon = bound),
                    "{self:?}, {ways:?}: weight {key} of row {row} is {found}, not {w}, by more \
                     than {bound}"
                );
            }
            for column in 0..value as usize {
                let of = |key: usize| v[(key_head * s + key) * value as usize + column];
                let (mut sum, mut all) = (0.0, 0.0);
                for (key, w) in expected.iter().enumerate() {
                    sum += w * of(key);
                    all += w * of(key).abs();
                }
                let found = result[row * value as usize + column];
                let bound = 1.01 * unit * sum.abs() + relative * all + 1e-30 + subnormal(dtype);
                assert!(
                    approx::abs_diff_eq!(found, sum, epsilon = bound),
                    "{self:?}, {ways:?}: column {column} of row {row} is {found}, not {sum}, by \
                     more than {bound}"
                );
            }
        }
    }
}

/// Half of the smallest step of a type.
fn subnormal(dtype: DType) -> f64 {
    if dtype == DType::F16 { 2f64.powi(-25) } else { 0.0 }
}

const DENSE: [Way; 3] = [Way::Dense; 3];

fn head_sizes(world: &World) {
    for (i, head) in [1, 3, 8, 20, 64, 65, 80, 128, 130, 192, 256].into_iter().enumerate() {
        let dtype = TYPES[i % 3];
        Case { batch: 1, heads: 2, key_heads: 2, head, value: head, dtype, ..PLAIN }
            .run(world, DENSE);
        let value = 257 - head;
        let dtype = TYPES[(i + 1) % 3];
        Case {
            batch: 1,
            heads: 1,
            key_heads: 1,
            queries: 65,
            keys: 40,
            head,
            value,
            dtype,
            ..PLAIN
        }
        .run(world, DENSE);
    }
}

fn strides(world: &World) {
    let ways = [
        [Way::Transposed, Way::Transposed, Way::Transposed],
        [Way::Sliced, Way::Dense, Way::Turned],
        [Way::Turned, Way::Sliced, Way::Expanded],
        [Way::Expanded, Way::Turned, Way::Sliced],
    ];
    for (i, ways) in ways.into_iter().enumerate() {
        for head in [16, 15] {
            let dtype = TYPES[(i + head as usize) % 3];
            let case = Case { head, value: head + 4, dtype, ..PLAIN };
            case.run(world, ways);
            Case { heads: 4, key_heads: 2, queries: 35, ..case }.run(world, ways);
        }
    }
}

fn masks(world: &World) {
    for (i, mask) in
        [Mask::Bool, Mask::KeyBool, Mask::Added, Mask::AddedTransposed].into_iter().enumerate()
    {
        let dtype = TYPES[i % 3];
        Case { mask, dtype, ..PLAIN }.run(world, DENSE);
        Case { mask, heads: 6, causal: true, queries: 30, ..PLAIN }.run(world, DENSE);
        Case { mask, queries: 1, keys: 300, dtype, ..PLAIN }.run(world, DENSE);
    }
    for (queries, keys) in [(130, 130), (130, 60), (60, 130)] {
        let case = Case { causal: true, queries, keys, batch: 1, ..PLAIN };
        case.run(world, DENSE);
        Case { heads: 4, key_heads: 1, scale: Some(-0.7), dtype: DType::BF16, ..case }
            .run(world, DENSE);
    }
}

/// Rows so few that their keys are divided among workgroups.
fn few_queries(world: &World) {
    for (i, keys) in [1, 64, 65, 500, 1027].into_iter().enumerate() {
        for (queries, heads, key_heads) in [(1, 2, 2), (1, 8, 2), (3, 2, 1)] {
            let (dtype, head) = (TYPES[i % 3], [64, 63][i % 2]);
            let case = Case {
                batch: 1,
                heads,
                key_heads,
                queries,
                keys,
                head,
                value: 66 - i as i64,
                dtype,
                ..PLAIN
            };
            case.run(world, DENSE);
            Case { causal: true, ..case }.run(world, DENSE);
        }
    }
}

/// NaN and infinity in what takes part reach the rows and columns that they belong to, and
/// no other.
fn nan(world: &World) {
    let (l, s, e) = (66, 70, 8);
    let ones = |count: i64| vec![0.5; count as usize];
    let sizes = |rows: i64| [1, 1, rows, e];
    let mut q = ones(l * e);
    q[(3 * e) as usize] = f64::NAN;
    q[(5 * e) as usize] = f64::INFINITY;
    let mut v = ones(s * e);
    v[(69 * e + 2) as usize] = f64::NAN;
    let q = tensor(world, &q, &sizes(l), DType::F32);
    let k = tensor(world, &ones(s * e), &sizes(s), DType::F32);
    let v = tensor(world, &v, &sizes(s), DType::F32);
    let out = world.rt.scaled_dot_product_attention(&q, &k, &v, Attention::default()).unwrap();
    for (i, found) in values(world, &out).into_iter().enumerate() {
        let (row, column) = (i as i64 / e, i as i64 % e);
        // Scores of infinity differ from the greatest by NaN.
        assert_eq!(found.is_nan(), row == 3 || row == 5 || column == 2, "{row}, {column}");
        assert!(found.is_nan() || approx::abs_diff_eq!(found, 0.5, epsilon = 1e-5));
    }
    let weights = world.rt.attention_weights(&q, &k, Attention::default()).unwrap();
    for (i, found) in values(world, &weights).into_iter().enumerate() {
        let row = i as i64 / s;
        assert_eq!(found.is_nan(), row == 3 || row == 5, "{row}");
    }
}

fn nothing(world: &World) {
    let empty = |sizes: &[i64]| {
        let layout = Layout::contiguous(sizes).unwrap();
        world.rt.empty(layout, DType::F32, DeviceType::Mps).unwrap()
    };
    let of = |q: &[i64], k: &[i64], v: &[i64]| {
        let (q, k, v) = (empty(q), empty(k), empty(v));
        let how = Attention::default();
        let out = world.rt.scaled_dot_product_attention(&q, &k, &v, how).unwrap();
        let weights = world.rt.attention_weights(&q, &k, how).unwrap();
        (out, weights)
    };
    let (out, weights) = of(&[1, 2, 0, 4], &[1, 2, 3, 4], &[1, 2, 3, 5]);
    assert_eq!((out.sizes(), weights.sizes()), (&[1, 2, 0, 5][..], &[1, 2, 0, 3][..]));
    let (out, weights) = of(&[2, 3, 4], &[2, 0, 4], &[2, 0, 5]);
    assert_eq!((out.sizes(), weights.sizes()), (&[2, 3, 5][..], &[2, 3, 0][..]));
    assert_eq!(values(world, &out), [0.0; 30]);
    let (out, _) = of(&[0, 2, 3, 4], &[0, 2, 3, 4], &[0, 2, 3, 4]);
    assert_eq!(out.sizes(), [0, 2, 3, 4]);
    let (out, weights) = of(&[1, 2, 3, 4], &[1, 2, 2, 4], &[1, 2, 2, 0]);
    assert_eq!((out.sizes(), weights.sizes()), (&[1, 2, 3, 0][..], &[1, 2, 3, 2][..]));
    // Heads without elements: all keys are alike.
    let ones = tensor(world, &[1.0, 3.0], &[1, 1, 2, 1], DType::F32);
    let (q, k) = (empty(&[1, 1, 1, 0]), empty(&[1, 1, 2, 0]));
    let out = world.rt.scaled_dot_product_attention(&q, &k, &ones, Attention::default()).unwrap();
    approx::assert_abs_diff_eq!(values(world, &out)[0], 2.0, epsilon = 1e-6);
}

fn refusals(world: &World) {
    let of = |sizes: &[i64], dtype| {
        let layout = Layout::contiguous(sizes).unwrap();
        world.rt.empty(layout, dtype, DeviceType::Mps).unwrap()
    };
    let plain = |sizes: &[i64]| of(sizes, DType::F32);
    let q = plain(&[1, 4, 5, 8]);
    let default = Attention::default();
    let refuse = |q: &Tensor, k: &Tensor, v: &Tensor, how: Attention<'_>, text: &str| {
        let error = world.rt.scaled_dot_product_attention(q, k, v, how).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        error
    };
    for (k, v, text) in [
        (&[1, 4, 6, 7][..], &[1, 4, 6, 8][..], "key is of sizes [1, 4, 6, 7]"),
        (&[1, 2, 6, 8], &[1, 2, 6, 8], "expects 4 heads"),
        (&[2, 4, 6, 8], &[2, 4, 6, 8], "a batch of 1"),
        (&[1, 4, 6, 8], &[1, 4, 7, 8], "value is of sizes [1, 4, 7, 8]"),
        (&[4, 6, 8], &[4, 6, 8], "4 dimensions"),
    ] {
        let error = refuse(&q, &plain(k), &plain(v), default, text);
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    let (k, v) = (plain(&[1, 4, 6, 8]), plain(&[1, 4, 6, 8]));
    let grouped = Attention { grouped: true, ..default };
    let three = plain(&[1, 3, 6, 8]);
    refuse(&q, &three, &three, grouped, "divides 4");
    let mask = plain(&[5, 7]);
    refuse(&q, &k, &v, Attention { mask: Some(&mask), ..default }, "attn_mask is of sizes [5, 7]");
    let whole = of(&[5, 6], DType::I64);
    let error = refuse(&q, &k, &v, Attention { mask: Some(&whole), ..default }, "attn_mask");
    assert!(matches!(error, Error::NotSupported(_)), "{error}");
    let halves = of(&[1, 4, 6, 8], DType::F16);
    refuse(&q, &halves, &v, default, "key is of sizes [1, 4, 6, 8] and float16");
    let flat = plain(&[5, 8]);
    let error = refuse(&flat, &flat, &flat, default, "query is of sizes [5, 8]");
    assert!(matches!(error, Error::NotSupported(_)), "{error}");
    let wide = plain(&[1, 4, 5, 257]);
    refuse(&wide, &wide, &wide, default, "256");
    let whole = of(&[1, 4, 5, 8], DType::I32);
    refuse(&whole, &whole, &whole, default, "query is of int32");
}
