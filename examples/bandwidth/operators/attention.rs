//! Attention: of a whole text, and of one more token.

use super::noise::Noise;
use super::{Against, Case, Ready, Scale, Sum, Target, Work};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::runtime::Runtime;

#[derive(Clone, Copy)]
struct Heads {
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    size: i64,
    causal: bool,
    dtype: DType,
}

pub fn cases(scale: Scale) -> Vec<Case> {
    let text = Heads {
        heads: scale.of(32),
        key_heads: scale.of(32),
        queries: scale.of(2048),
        keys: scale.of(2048),
        size: scale.of(128),
        causal: false,
        dtype: DType::F32,
    };
    let token = Heads { queries: 1, keys: scale.of(16384), ..text };
    let halves = |heads| Heads { dtype: DType::BF16, ..heads };
    let shared = |heads: Heads| Heads { key_heads: (heads.heads / 4).max(1), ..heads };
    let operations = Against::Nothing;
    vec![
        // PyTorch takes 2.64 ms with the matrix of scores, on the device that this is for.
        text.case(operations, Target::Rate(26.0)),
        halves(text).case(Against::Case(text.name()), Target::Ratio(1.0)),
        Heads { causal: true, ..text }.case(Against::Nothing, Target::Unset),
        shared(text).case(Against::Nothing, Target::Unset),
        token.case(Against::Copy, Target::Unset),
        halves(token).case(Against::Copy, Target::Unset),
        shared(token).case(Against::Copy, Target::Unset),
        halves(shared(token)).case(Against::Copy, Target::Unset),
    ]
}

impl Heads {
    fn name(self) -> String {
        let Heads { heads, key_heads, queries, keys, size, .. } = self;
        let dtype = super::short(self.dtype);
        let causal = if self.causal { ", causal" } else { "" };
        format!("attention {dtype} {heads}x{queries}x{size} over {key_heads}x{keys}x{size}{causal}")
    }

    fn case(self, against: Against, target: Target) -> Case {
        let Heads { heads, key_heads, queries, keys, size, .. } = self;
        let work = match queries {
            1 => Work::Bytes(2 * key_heads * keys * size * self.dtype.size() as i64),
            _ if self.causal => Work::Operations(2 * heads * queries * keys * size),
            _ => Work::Operations(4 * heads * queries * keys * size),
        };
        let prepare = Box::new(move |rt: &Runtime| self.ready(rt));
        Case { name: self.name(), work, against, target, prepare }
    }

    fn ready(self, rt: &Runtime) -> Result<Ready> {
        let Heads { heads, key_heads, queries, keys, size, causal, dtype } = self;
        let noises =
            [Noise::new(rt, 1, dtype)?, Noise::new(rt, 2, dtype)?, Noise::new(rt, 3, dtype)?];
        let [of_query, of_key, of_value] = &noises;
        let query = of_query.tensor(rt, &[1, heads, queries, size])?;
        let key = of_key.tensor(rt, &[1, key_heads, keys, size])?;
        let value = of_value.tensor(rt, &[1, key_heads, keys, size])?;
        Ok(Ready {
            call: Box::new(move |rt, _| {
                rt.scaled_dot_product_attention(&query, &key, &value, None, causal, None)
            }),
            expected: Box::new(move |index| {
                let [of_query, of_key, of_value] = &noises;
                let (row, column) = (index / size, index % size);
                let key_head = row / queries / (heads / key_heads);
                let seen = if causal { row % queries + 1 } else { keys };
                let start = |key: i64| (key_head * keys + key) * size;
                let scores: Vec<f64> = (0..seen)
                    .map(|key| {
                        let products = (0..size)
                            .map(|i| of_query.at(row * size + i) * of_key.at(start(key) + i));
                        products.sum::<f64>() / (size as f64).sqrt()
                    })
                    .collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let result = Sum::of(
                    (0..seen)
                        .zip(&weights)
                        .map(|(key, w)| w / sum * of_value.at(start(key) + column)),
                );
                // Scores are sums themselves, of `size` terms of at most 1, scaled.
                let magnitude = result.magnitude * (1.0 + (size as f64).sqrt());
                Sum { magnitude, ..result }
            }),
        })
    }
}
