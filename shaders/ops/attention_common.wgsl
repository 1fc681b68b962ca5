// Attention: parameters, element access and stores, common to all of its kernels. With
// half.wgsl, vectors.wgsl and one of attention_mask.wgsl and attention_no_mask.wgsl.
//
// out[z, r] = softmax over s of (scale q[z, r] . k[z, s] + mask[z, r, s]) times v[z, s]
//
// z counts (outer, key head); the rows r of a z are the queries of all the heads that
// share that key head, one head after the other, so that k and v are read for all of
// them at once.
//
// row[0]  queries of a head, keys, depth, columns of v
// row[1]  q: offset, strides of outer, head, query
// row[2]  q: stride of depth; k: offset, strides of outer, head
// row[3]  k: strides of key, depth; v: offset, stride of outer
// row[4]  v: strides of head, key, column; query heads that share a key head
// row[5]  mask: offset, strides of outer, head, query
// row[6]  mask: stride of key; scale; key heads; splits
// row[7]  keys of a split; workgroups in use; out: offset; -
//
// Offsets and strides in elements. out is contiguous, but that its rows begin at
// multiples of four elements; what lies between the last column and the next row may be
// written.
//
// Where the keys are split, a part's rows are sums in f32 that are not divided yet, with
// the greatest score and the sum of the weights behind them: one vector more a row. The
// parts follow each other in out.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> q: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<u32>>;

// Element type of q, k and v, and of out: 0 f32, 1 f16, 2 bf16.
override TYPE: u32 = 0u;
override OUT_TYPE: u32 = 0u;
// Whether four elements along the depth, or of v along the columns, are one aligned vector,
// wholly inside the matrix or outside.
override Q_QUADS: u32 = 0u;
override K_QUADS: u32 = 0u;
override V_QUADS: u32 = 0u;
// Whether a query sees the keys up to its own number alone.
override CAUSAL: u32 = 0u;
// Whether parts are stored instead of results.
override PARTS: u32 = 0u;

const FOLD: u32 = 32768u;
// Less than every score but -inf, which is below it: a difference to it is never NaN.
const LOWEST: f32 = -3.40282346e38;

fn group_number(group: vec3<u32>) -> u32 {
    return group.y * FOLD + group.x;
}

fn queries() -> u32 { return params.row[0].x; }
fn keys() -> u32 { return params.row[0].y; }
fn depth() -> u32 { return params.row[0].z; }
fn columns() -> u32 { return params.row[0].w; }
fn shared_by() -> u32 { return params.row[4].w; }
fn splits() -> u32 { return params.row[6].w; }
fn rows() -> u32 { return queries() * shared_by(); }
fn scale() -> f32 { return bitcast<f32>(params.row[6].y); }

// Elements from one row of out to the next.
fn pitch() -> u32 {
    return ((columns() + 3u) & 0xfffffffcu) + 4u * PARTS;
}

// Four elements of a row of q that starts at `start`, from depth d; 0 outside.
fn q_four(start: u32, d: u32, inside: bool) -> vec4<f32> {
    var four = vec4<f32>();
    if (inside && d < depth()) {
        let stride = params.row[2].x;
        if (Q_QUADS == 1u) {
            return four_of(TYPE, q[vector_of(TYPE, start + d)], start + d);
        }
        for (var j = 0u; j < min(4u, depth() - d); j += 1u) {
            let i = start + (d + j) * stride;
            four[j] = one_of(TYPE, q[vector_of(TYPE, i)], i);
        }
    }
    return four;
}

fn k_four(start: u32, d: u32, inside: bool) -> vec4<f32> {
    var four = vec4<f32>();
    if (inside && d < depth()) {
        let stride = params.row[3].y;
        if (K_QUADS == 1u) {
            return four_of(TYPE, k[vector_of(TYPE, start + d)], start + d);
        }
        for (var j = 0u; j < min(4u, depth() - d); j += 1u) {
            let i = start + (d + j) * stride;
            four[j] = one_of(TYPE, k[vector_of(TYPE, i)], i);
        }
    }
    return four;
}

fn v_four(start: u32, column: u32, inside: bool) -> vec4<f32> {
    var four = vec4<f32>();
    if (inside && column < columns()) {
        let stride = params.row[4].z;
        if (V_QUADS == 1u) {
            return four_of(TYPE, v[vector_of(TYPE, start + column)], start + column);
        }
        for (var j = 0u; j < min(4u, columns() - column); j += 1u) {
            let i = start + (column + j) * stride;
            four[j] = one_of(TYPE, v[vector_of(TYPE, i)], i);
        }
    }
    return four;
}

struct Matrix {
    outer: u32,
    head: u32,
}

fn matrix_of(z: u32) -> Matrix {
    return Matrix(z / params.row[6].z, z % params.row[6].z);
}

fn q_start(z: Matrix, row: u32) -> u32 {
    let head = z.head * shared_by() + row / queries();
    return params.row[1].x + z.outer * params.row[1].y + head * params.row[1].z
        + (row % queries()) * params.row[1].w;
}

fn k_start(z: Matrix) -> u32 {
    return params.row[2].y + z.outer * params.row[2].z + z.head * params.row[2].w;
}

fn v_start(z: Matrix) -> u32 {
    return params.row[3].z + z.outer * params.row[3].w + z.head * params.row[4].x;
}

// One past the last key that any of the rows from `first` up to `end` sees.
fn seen_by(first: u32, end: u32) -> u32 {
    if (CAUSAL == 0u) {
        return keys();
    }
    let last = end - 1u;
    let one_head = first / queries() == last / queries();
    return min(keys(), select(queries(), last % queries() + 1u, one_head));
}

// Four columns of a row, rounded once. `number` counts the rows of all matrices, part by
// part.
fn store(number: u32, column: u32, value: vec4<f32>) {
    if (column >= pitch()) {
        return;
    }
    let i = params.row[7].z + number * pitch() + column;
    if (OUT_TYPE == 0u) {
        out[i >> 2u] = bitcast<vec4<u32>>(value);
    } else {
        let low = narrow(OUT_TYPE, value.x) | (narrow(OUT_TYPE, value.y) << 16u);
        let high = narrow(OUT_TYPE, value.z) | (narrow(OUT_TYPE, value.w) << 16u);
        let word = (i >> 1u) & 3u;
        out[i >> 3u][word] = low;
        out[i >> 3u][word + 1u] = high;
    }
}

// What a row's sums are divided by, as a factor: a row that sees nothing is 0.
fn share(weights: f32) -> f32 {
    return select(1.0 / weights, 0.0, weights == 0.0);
}
