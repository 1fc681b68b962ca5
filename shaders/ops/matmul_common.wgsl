// Matrix products: parameters, element access and stores, common to all of their
// kernels. With half.wgsl and vectors.wgsl.
//
// out[z] = alpha * a[z] b[z] + beta * addend[z], z = (outer, inner) of a batch.
//
// row[0]  rows m, columns n, depth k, size of the inner batch dimension
// row[1]  a: offset, strides of outer, inner, row
// row[2]  a: stride of column; b: offset, strides of outer, inner
// row[3]  b: strides of row, column; inner indices that share a matrix of b; -
// row[4]  addend: offset, strides of outer, inner, row
// row[5]  addend: stride of column; out: offset, strides of outer, inner
// row[6]  out: stride of row; alpha; beta; depth of a split
// row[7]  splits; out: stride of split; workgroups in use; -
//
// Offsets and strides in elements. Columns of out have stride 1.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> addend: array<vec4<u32>>;

// Element types: 0 f32, 1 f16, 2 bf16.
override A_TYPE: u32 = 0u;
override B_TYPE: u32 = 0u;
override OUT_TYPE: u32 = 0u;
// 3 where there is no addend.
override ADDEND_TYPE: u32 = 3u;
// Whether four columns are stored as one: out is aligned to four elements, and the
// places between n and the next multiple of four may be written.
override OUT_QUADS: u32 = 0u;

const FOLD: u32 = 32768u;

fn group_number(group: vec3<u32>) -> u32 {
    return group.y * FOLD + group.x;
}

// By its word: where neighbours read elements far from each other, a vector for each is
// three words too many.
fn a_at(i: u32) -> f32 {
    return of_word(A_TYPE, a[vector_of(A_TYPE, i)][word_in(A_TYPE, i)], i);
}

fn b_at(i: u32) -> f32 {
    return one_of(B_TYPE, b[vector_of(B_TYPE, i)], i);
}

// Four elements from the one at `i`, a multiple of 4.
fn a_quad(i: u32) -> vec4<f32> {
    return four_of(A_TYPE, a[vector_of(A_TYPE, i)], i);
}

fn b_quad(i: u32) -> vec4<f32> {
    return four_of(B_TYPE, b[vector_of(B_TYPE, i)], i);
}

fn addend_at(i: u32) -> f32 {
    return one_of(ADDEND_TYPE, addend[vector_of(ADDEND_TYPE, i)], i);
}

struct Batch {
    outer: u32,
    inner: u32,
}

fn batch_of(z: u32) -> Batch {
    let inner = params.row[0].w;
    return Batch(z / inner, z % inner);
}

fn a_start(z: Batch) -> u32 {
    return params.row[1].x + z.outer * params.row[1].y + z.inner * params.row[1].z;
}

fn b_start(z: Batch) -> u32 {
    let shared_by = params.row[3].z;
    return params.row[2].y + z.outer * params.row[2].z + (z.inner / shared_by) * params.row[2].w;
}

// Scales four columns of a row, adds the addend, rounds once and stores.
fn store(z: Batch, split: u32, row: u32, column: u32, sum: vec4<f32>) {
    let columns = params.row[0].y;
    if (row >= params.row[0].x || column >= columns) {
        return;
    }
    var value = bitcast<f32>(params.row[6].y) * sum;
    if (ADDEND_TYPE != 3u) {
        let beta = bitcast<f32>(params.row[6].z);
        let start = params.row[4].x + z.outer * params.row[4].y + z.inner * params.row[4].z
            + row * params.row[4].w;
        for (var j = 0u; j < 4u; j += 1u) {
            if (column + j < columns) {
                value[j] += beta * addend_at(start + (column + j) * params.row[5].x);
            }
        }
    }
    let i = params.row[5].y + z.outer * params.row[5].z + z.inner * params.row[5].w
        + row * params.row[6].x + split * params.row[7].y + column;
    if (OUT_TYPE != 0u) {
        let low = narrow(OUT_TYPE, value.x) | (narrow(OUT_TYPE, value.y) << 16u);
        let high = narrow(OUT_TYPE, value.z) | (narrow(OUT_TYPE, value.w) << 16u);
        let word = (i >> 1u) & 3u;
        out[i >> 3u][word] = low;
        out[i >> 3u][word + 1u] = high;
    } else if (OUT_QUADS == 1u) {
        out[i >> 2u] = bitcast<vec4<u32>>(value);
    } else {
        for (var j = 0u; j < 4u; j += 1u) {
            if (column + j < columns) {
                out[(i + j) >> 2u][(i + j) & 3u] = bitcast<u32>(value[j]);
            }
        }
    }
}
