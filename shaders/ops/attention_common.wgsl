// Scaled dot product attention: parameters, element access, masks. With half.wgsl.
//
// row[0]  query heads h, queries l, keys s, elements of a head e
// row[1]  query heads that share a head of the keys; elements of a value; query: offset,
//            stride of batch
// row[2]  query: strides of head, query; key: offset, stride of batch
// row[3]  key: strides of head, key; value: offset, stride of batch
// row[4]  value: strides of head, key; mask: offset, stride of batch
// row[5]  mask: strides of head, query, key; where the result starts, in words
// row[6]  result: elements from row to row; scale times log2(e); splits; keys of a split
// row[7]  row tiles of a head of the keys; workgroups in use; where the statistics of
//            splits start, in words; -
//
// Offsets and strides in elements; elements of a head have stride 1. A row is a query of a
// head: the queries of the heads that share keys follow each other, h / (those) * l + query.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<storage, read> query: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> key: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> value: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> mask: array<u32>;

// Element types: 0 f32, 1 f16, 2 bf16. Of the mask 3 bool, 4 none.
override TYPE: u32 = 0u;
override MASK_TYPE: u32 = 4u;
// Whether a query sees the keys up to its own number alone.
override CAUSAL: u32 = 0u;
// Whether rows of all three are vectors of four elements, aligned.
override QUADS: u32 = 0u;
// Whether the result is partial: several workgroups share the keys of a row.
override SPLIT: u32 = 0u;

const FOLD: u32 = 32768u;
const LOG2_E: f32 = 1.4426950408889634;
// Stands for the score of what is masked: an infinity is not needed, and would not survive
// compilers that assume that there are none.
const MASKED: f32 = -3.4028234e38;

fn widen(kind: u32, word: u32) -> vec2<f32> {
    if (kind == 2u) {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}

fn narrow(kind: u32, number: f32) -> u32 {
    if (kind == 2u) {
        return float_to_bfloat(bitcast<u32>(number));
    }
    return float_to_half(bitcast<u32>(number));
}

// Of a vector of the buffer, the four elements from `i`, a multiple of 4.
fn four_of(words: vec4<u32>, i: u32) -> vec4<f32> {
    if (TYPE == 0u) {
        return bitcast<vec4<f32>>(words);
    }
    let four = select(words.xy, words.zw, (i & 4u) == 4u);
    return vec4<f32>(widen(TYPE, four.x), widen(TYPE, four.y));
}

// Of a vector of the buffer, element `i`.
fn one_of(words: vec4<u32>, i: u32) -> f32 {
    if (TYPE == 0u) {
        return bitcast<f32>(words[i & 3u]);
    }
    let two = widen(TYPE, words[(i >> 1u) & 3u]);
    return select(two.x, two.y, (i & 1u) == 1u);
}

// Which vector of the buffer holds element `i`.
fn vector_of(i: u32) -> u32 {
    return select(i >> 3u, i >> 2u, TYPE == 0u);
}

// Four elements from `at` on of a row that begins at `start` and has `size`; 0 beyond it.
fn query_at(start: u32, at: u32, size: u32) -> vec4<f32> {
    var four = vec4<f32>();
    if (QUADS == 1u) {
        if (at < size) {
            four = four_of(query[vector_of(start + at)], start + at);
        }
        return four;
    }
    for (var j = 0u; j < 4u; j += 1u) {
        if (at + j < size) {
            four[j] = one_of(query[vector_of(start + at + j)], start + at + j);
        }
    }
    return four;
}

fn key_at(start: u32, at: u32, size: u32) -> vec4<f32> {
    var four = vec4<f32>();
    if (QUADS == 1u) {
        if (at < size) {
            four = four_of(key[vector_of(start + at)], start + at);
        }
        return four;
    }
    for (var j = 0u; j < 4u; j += 1u) {
        if (at + j < size) {
            four[j] = one_of(key[vector_of(start + at + j)], start + at + j);
        }
    }
    return four;
}

fn value_at(start: u32, at: u32, size: u32) -> vec4<f32> {
    var four = vec4<f32>();
    if (QUADS == 1u) {
        if (at < size) {
            four = four_of(value[vector_of(start + at)], start + at);
        }
        return four;
    }
    for (var j = 0u; j < 4u; j += 1u) {
        if (at + j < size) {
            four[j] = one_of(value[vector_of(start + at + j)], start + at + j);
        }
    }
    return four;
}

fn is_nan(number: f32) -> bool {
    return (bitcast<u32>(number) & 0x7fffffffu) > 0x7f800000u;
}

// A score in powers of two, with what the mask's element `at` says of it.
fn masked(score: f32, at: u32, visible: bool) -> f32 {
    var result = score;
    var seen = visible;
    if (MASK_TYPE == 3u) {
        if (seen) {
            seen = ((mask[at >> 2u] >> (8u * (at & 3u))) & 0xffu) != 0u;
        }
    } else if (MASK_TYPE == 0u) {
        if (seen) {
            result += LOG2_E * bitcast<f32>(mask[at]);
        }
    } else if (MASK_TYPE < 3u) {
        if (seen) {
            let two = widen(MASK_TYPE, mask[at >> 1u]);
            result += LOG2_E * select(two.x, two.y, (at & 1u) == 1u);
        }
    }
    if (!seen || (result < MASKED && !is_nan(result))) {
        return MASKED;
    }
    return result;
}

// 2^(score - most); nothing of what is masked.
fn weight(score: f32, most: f32) -> f32 {
    return select(exp2(score - most), 0.0, score == MASKED);
}

// What a result is divided by: a row without any key has none, and becomes 0.
fn reciprocal(sum: f32) -> f32 {
    return select(1.0 / sum, 0.0, sum == 0.0);
}

// Stores four elements of a row of `size`, or the first of them, as far as they are its.
fn store(row: u32, column: u32, size: u32, four: vec4<f32>) {
    let start = row * params.row[6].x + column;
    if (TYPE == 0u || SPLIT == 1u) {
        for (var j = 0u; j < 4u; j += 1u) {
            if (column + j < size) {
                out[params.row[5].w + start + j] = bitcast<u32>(four[j]);
            }
        }
        return;
    }
    // Rows are of whole words.
    let at = params.row[5].w + start / 2u;
    if (column < size) {
        out[at] = narrow(TYPE, four.x) | (narrow(TYPE, four.y) << 16u);
    }
    if (column + 2u < size) {
        out[at + 1u] = narrow(TYPE, four.z) | (narrow(TYPE, four.w) << 16u);
    }
}
