// Attention without the matrix of scores: a workgroup takes 64 rows through the keys, 64
// at a time, and keeps for each row the greatest score, the sum of the weights relative to
// it, and the weighted sum of the values (the online softmax of Milakov and Gimelshein,
// arXiv:1805.02867, in the manner of Dao et al., arXiv:2205.14135). An invocation makes
// 4 x 4 scores, then four rows of COLUMNS vectors of the result.

// Vectors of a result's row, in sixteens.
override COLUMNS: u32 = 1u;

const TILE: u32 = 64u;
const DEPTH: u32 = 16u;

// Queries and keys, 16 vectors a depth of each; then values, 16 * COLUMNS a key.
var<workgroup> stage: array<vec4<f32>, 512>;
// Weights: four rows of one key a vector.
var<workgroup> weights: array<vec4<f32>, 1024>;

// Where the vector of rows 4 * quad and on lies; shifted by depth, so that writing along
// the depth meets different banks.
fn stage_index(k: u32, quad: u32) -> u32 {
    return k * 16u + (quad ^ ((k >> 2u) * 2u));
}

fn weight_index(k: u32, quad: u32) -> u32 {
    return k * 16u + (quad ^ ((k >> 2u) & 15u));
}

struct Row {
    head: u32,
    query: u32,
}

fn row_of(row: u32) -> Row {
    let queries = params.row[0].y;
    return Row(row / queries, row % queries);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) i: u32,
) {
    let number = group.y * FOLD + group.x;
    if (number >= params.row[7].y) {
        return;
    }
    let heads = params.row[0].x;
    let queries = params.row[0].y;
    let keys = params.row[0].z;
    let depth = params.row[0].w;
    let share = params.row[1].x;
    let columns = params.row[1].y;
    let rows = share * queries;
    // The last tiles of a causal row are the longest, so they come first.
    let tiles = params.row[7].x;
    let tile = tiles - 1u - number % tiles;
    let split = (number / tiles) % params.row[6].z;
    let pair = number / tiles / params.row[6].z;
    let key_heads = heads / share;
    let batch = pair / key_heads;
    let key_head = pair % key_heads;
    let row_0 = tile * TILE;

    let key_begin = split * params.row[6].w;
    var key_end = min(key_begin + params.row[6].w, keys);
    if (CAUSAL == 1u && share == 1u) {
        key_end = min(key_end, row_0 + TILE);
    }

    // The row and key of which this invocation loads four elements.
    let load_row = row_of(min(row_0 + i / 4u, rows - 1u));
    let load_at = (i % 4u) * 4u;
    let query_start = params.row[1].z + batch * params.row[1].w
        + (key_head * share + load_row.head) * params.row[2].x + load_row.query * params.row[2].y;
    let key_start = params.row[2].z + batch * params.row[2].w + key_head * params.row[3].x;
    let value_start = params.row[3].z + batch * params.row[3].w + key_head * params.row[4].x;

    // 32 invocations that follow each other make a block of 8 x 4 vectors.
    let x = (i / 32u % 2u) * 8u + i % 8u;
    let y = (i / 64u) * 4u + (i % 32u) / 8u;
    var query_of: vec4<u32>;
    var mask_start: vec4<u32>;
    for (var r = 0u; r < 4u; r += 1u) {
        let row = row_of(min(row_0 + 4u * y + r, rows - 1u));
        query_of[r] = row.query;
        mask_start[r] = params.row[4].z + batch * params.row[4].w
            + (key_head * share + row.head) * params.row[5].x + row.query * params.row[5].y;
    }

    var o00 = vec4<f32>(); var o01 = vec4<f32>(); var o02 = vec4<f32>(); var o03 = vec4<f32>();
    var o10 = vec4<f32>(); var o11 = vec4<f32>(); var o12 = vec4<f32>(); var o13 = vec4<f32>();
    var o20 = vec4<f32>(); var o21 = vec4<f32>(); var o22 = vec4<f32>(); var o23 = vec4<f32>();
    var o30 = vec4<f32>(); var o31 = vec4<f32>(); var o32 = vec4<f32>(); var o33 = vec4<f32>();
    var most = vec4<f32>(MASKED);
    var sum = vec4<f32>();

    // Values of a step, and vectors of them an invocation loads.
    let step_keys = select(8u, 32u / COLUMNS, COLUMNS < 3u);
    let width = 16u * COLUMNS;

    for (var key_0 = key_begin; key_0 < key_end; key_0 += TILE) {
        // Scores of four rows (s0 to s3) and four keys.
        var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
        let load_key = min(key_0 + i / 4u, keys - 1u);
        let key_row = key_start + load_key * params.row[3].y;
        var next_q = query_at(query_start, load_at, depth);
        var next_k = key_at(key_row, load_at, depth);
        for (var e = 0u; e < depth; e += DEPTH) {
            workgroupBarrier();
            let quad = i >> 4u;
            let c = (i >> 2u) & 3u;
            for (var j = 0u; j < 4u; j += 1u) {
                stage[stage_index(load_at + j, quad)][c] = next_q[j];
                stage[256u + stage_index(load_at + j, quad)][c] = next_k[j];
            }
            workgroupBarrier();
            if (e + DEPTH < depth) {
                next_q = query_at(query_start, e + DEPTH + load_at, depth);
                next_k = key_at(key_row, e + DEPTH + load_at, depth);
            }
            for (var d = 0u; d < DEPTH; d += 1u) {
                let a = stage[stage_index(d, y)];
                let b = stage[256u + stage_index(d, x)];
                s0 += a.x * b;
                s1 += a.y * b;
                s2 += a.z * b;
                s3 += a.w * b;
            }
        }

        let scale = bitcast<f32>(params.row[6].y);
        s0 *= scale;
        s1 *= scale;
        s2 *= scale;
        s3 *= scale;
        for (var j = 0u; j < 4u; j += 1u) {
            let k = key_0 + 4u * x + j;
            let at = mask_start + vec4<u32>(k * params.row[5].z);
            let inside = k < key_end;
            s0[j] = masked(s0[j], at.x, inside && (CAUSAL == 0u || k <= query_of.x));
            s1[j] = masked(s1[j], at.y, inside && (CAUSAL == 0u || k <= query_of.y));
            s2[j] = masked(s2[j], at.z, inside && (CAUSAL == 0u || k <= query_of.z));
            s3[j] = masked(s3[j], at.w, inside && (CAUSAL == 0u || k <= query_of.w));
        }
        // The greatest score of each row, over the 16 invocations that have a part of it.
        let greatest = vec4<f32>(
            max(max(s0.x, s0.y), max(s0.z, s0.w)),
            max(max(s1.x, s1.y), max(s1.z, s1.w)),
            max(max(s2.x, s2.y), max(s2.z, s2.w)),
            max(max(s3.x, s3.y), max(s3.z, s3.w)),
        );
        weights[y * 16u + x] = greatest;
        workgroupBarrier();
        var now = most;
        for (var t = 0u; t < 16u; t += 1u) {
            now = max(now, weights[y * 16u + ((t + 2u * y) & 15u)]);
        }
        workgroupBarrier();
        let fade = exp2(most - now);
        most = now;
        sum *= fade;
        for (var j = 0u; j < 4u; j += 1u) {
            let four = vec4<f32>(
                weight(s0[j], now.x),
                weight(s1[j], now.y),
                weight(s2[j], now.z),
                weight(s3[j], now.w),
            );
            sum += four;
            weights[weight_index(4u * x + j, y)] = four;
        }
        o00 *= fade.x; o01 *= fade.x; o02 *= fade.x; o03 *= fade.x;
        o10 *= fade.y; o11 *= fade.y; o12 *= fade.y; o13 *= fade.y;
        o20 *= fade.z; o21 *= fade.z; o22 *= fade.z; o23 *= fade.z;
        o30 *= fade.w; o31 *= fade.w; o32 *= fade.w; o33 *= fade.w;

        let end = min(TILE, key_end - key_0);
        for (var k = 0u; k < end; k += step_keys) {
            for (var n = i; n < step_keys * width; n += 256u) {
                let row = min(key_0 + k + n / width, keys - 1u);
                stage[n] = value_at(value_start + row * params.row[4].y, (n % width) * 4u, columns);
            }
            workgroupBarrier();
            for (var d = 0u; d < step_keys; d += 1u) {
                let p = weights[weight_index(k + d, y)];
                let v0 = stage[d * width + x];
                o00 += p.x * v0;
                o10 += p.y * v0;
                o20 += p.z * v0;
                o30 += p.w * v0;
                if (COLUMNS > 1u) {
                    let v1 = stage[d * width + 16u + x];
                    o01 += p.x * v1;
                    o11 += p.y * v1;
                    o21 += p.z * v1;
                    o31 += p.w * v1;
                }
                if (COLUMNS > 2u) {
                    let v2 = stage[d * width + 32u + x];
                    o02 += p.x * v2;
                    o12 += p.y * v2;
                    o22 += p.z * v2;
                    o32 += p.w * v2;
                }
                if (COLUMNS > 3u) {
                    let v3 = stage[d * width + 48u + x];
                    o03 += p.x * v3;
                    o13 += p.y * v3;
                    o23 += p.z * v3;
                    o33 += p.w * v3;
                }
            }
            workgroupBarrier();
        }
    }

    weights[y * 16u + x] = sum;
    workgroupBarrier();
    sum = vec4<f32>();
    for (var t = 0u; t < 16u; t += 1u) {
        sum += weights[y * 16u + ((t + 2u * y) & 15u)];
    }
    let first = row_0 + 4u * y;
    // Rows of the result are (batch, head, query), those of the partial results too.
    let result = ((split * (params.row[7].y / tiles / params.row[6].z) + pair) * share) * queries
        + first;
    for (var r = 0u; r < 4u; r += 1u) {
        if (first + r >= rows) {
            break;
        }
        var part: array<vec4<f32>, 4>;
        switch (r) {
            case 0u: { part = array(o00, o01, o02, o03); }
            case 1u: { part = array(o10, o11, o12, o13); }
            case 2u: { part = array(o20, o21, o22, o23); }
            default: { part = array(o30, o31, o32, o33); }
        }
        let factor = select(reciprocal(sum[r]), 1.0, SPLIT == 1u);
        for (var c = 0u; c < COLUMNS; c += 1u) {
            store(result + r, (16u * c + x) * 4u, columns, part[c] * factor);
        }
        if (SPLIT == 1u && x == 0u) {
            let at = params.row[7].z + (result + r) * 2u;
            out[at] = bitcast<u32>(most[r]);
            out[at + 1u] = bitcast<u32>(sum[r]);
        }
    }
}
