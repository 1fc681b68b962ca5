// Attention for up to eight rows, as when a token is decoded: a workgroup goes through its
// part of the keys, STEP at a time, and reads each key and value once. For the scores 8
// invocations share a key, so that they read its row side by side; for the sums an
// invocation has four columns, and its share of a step's keys. With attention_common.wgsl.

// 1, 2, 4 or 8; with 8 the depth is 128 at most, else 256.
override ROWS: u32 = 1u;
// 32 where ROWS is 8, else 64.
override STEP: u32 = 64u;
// A power of two from 8 to 64 that, four columns each, has all of v's.
override LANES: u32 = 32u;

// All rows of q, filled up with zeros to vectors.
var<workgroup> query: array<vec4<f32>, 256>;
// The products of the 8 invocations that share a key, or a row's sums of all invocations.
var<workgroup> parts: array<vec4<f32>, 520>;
// Row by row: a step's scores and weights.
var<workgroup> score: array<vec4<f32>, 64>;
var<workgroup> weight: array<f32, 256>;
// The greatest score of each row before this step and after it, in turn.
var<workgroup> greatest: array<f32, 16>;
// What a row's sums of the steps before are multiplied by; in the end, by which its
// weights are divided.
var<workgroup> factor: array<f32, 8>;

fn part_index(lane: u32, row: u32, key: u32) -> u32 {
    // Four more than there are, so that the lanes meet different banks.
    return lane * (ROWS * STEP + 4u) + row * STEP + key;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) i: u32,
) {
    let number = group_number(group);
    let used = params.row[7].y;
    if (number >= used) {
        return;
    }
    let split = number % splits();
    let z = matrix_of(number / splits());
    let first_key = split * params.row[7].x;
    let key_end = min(first_key + params.row[7].x, seen_by(0u, rows()));
    let quads = (depth() + 3u) / 4u;

    for (var e = i; e < ROWS * quads; e += 256u) {
        let row = e / quads;
        query[e] = q_four(q_start(z, min(row, rows() - 1u)), (e % quads) * 4u, row < rows());
    }
    if (i < 8u) {
        greatest[i] = LOWEST;
    }
    workgroupBarrier();

    let lane = i % 8u;
    let slot = i / 8u;
    let key_stride = params.row[3].x;
    let k_from = k_start(z) + slot * key_stride;
    // The score that an invocation turns into a weight.
    let own_row = i / STEP;
    let own_key = i % STEP;
    let own_query = own_row % queries();
    let own_mask = mask_start(z, min(own_row, rows() - 1u));
    let column = (i % LANES) * 4u;
    let v_first = i / LANES;
    let v_stride = params.row[4].y;
    let v_from = v_start(z) + v_first * v_stride;

    var sums: array<vec4<f32>, 8>;
    var weights = 0.0;
    var turn = 0u;
    for (var key = first_key; key < key_end; key += STEP) {
        // Of the keys `slot` and 32 further on.
        var products: array<vec2<f32>, 8>;
        let near = key + slot < key_end;
        let far = STEP == 64u && key + slot + 32u < key_end;
        let k_near = k_from + key * key_stride;
        let k_far = k_near + 32u * key_stride;
        for (var e = lane; e < quads; e += 32u) {
            let a0 = k_four(k_near, e * 4u, near);
            let a1 = k_four(k_near, e * 4u + 32u, near);
            let a2 = k_four(k_near, e * 4u + 64u, near);
            let a3 = k_four(k_near, e * 4u + 96u, near);
            let b0 = k_four(k_far, e * 4u, far);
            let b1 = k_four(k_far, e * 4u + 32u, far);
            let b2 = k_four(k_far, e * 4u + 64u, far);
            let b3 = k_four(k_far, e * 4u + 96u, far);
            for (var r = 0u; r < ROWS; r += 1u) {
                // Past the depth a and b are 0.
                let q0 = query[r * quads + e];
                let q1 = query[r * quads + min(e + 8u, quads - 1u)];
                let q2 = query[r * quads + min(e + 16u, quads - 1u)];
                let q3 = query[r * quads + min(e + 24u, quads - 1u)];
                products[r] += vec2<f32>(
                    (dot(a0, q0) + dot(a1, q1)) + (dot(a2, q2) + dot(a3, q3)),
                    (dot(b0, q0) + dot(b1, q1)) + (dot(b2, q2) + dot(b3, q3)),
                );
            }
        }
        for (var r = 0u; r < ROWS; r += 1u) {
            let at = part_index(lane, r, slot);
            parts[at >> 2u][at & 3u] = products[r].x;
            if (STEP == 64u) {
                parts[(at >> 2u) + 8u][at & 3u] = products[r].y;
            }
        }
        workgroupBarrier();

        let mine = i < ROWS * STEP;
        let own = key + own_key;
        let seen = own_row < rows() && own < key_end && (CAUSAL == 0u || own <= own_query);
        var own_score = LOWEST;
        if (mine) {
            if (seen) {
                var product = 0.0;
                for (var l = 0u; l < 8u; l += 1u) {
                    let at = part_index(l, own_row, own_key);
                    product += parts[at >> 2u][at & 3u];
                }
                own_score = scale() * product + mask_at(own_mask, own);
            }
            score[i >> 2u][i & 3u] = own_score;
        }
        workgroupBarrier();

        if (mine) {
            let before = greatest[turn + own_row];
            var most = vec4<f32>(before);
            for (var l = 0u; l < STEP / 4u; l += 1u) {
                most = max(most, score[own_row * (STEP / 4u) + l]);
            }
            let now = max(max(most.x, most.y), max(most.z, most.w));
            let scaled = exp(before - now);
            var own_weight = 0.0;
            if (seen) {
                own_weight = exp(own_score - now);
            }
            weight[i] = own_weight;
            weights = weights * scaled + own_weight;
            if (own_key == 0u) {
                greatest[(turn ^ 8u) + own_row] = now;
                factor[own_row] = scaled;
            }
        }
        turn = turn ^ 8u;
        workgroupBarrier();

        for (var r = 0u; r < ROWS; r += 1u) {
            sums[r] *= factor[r];
        }
        let v_key = v_from + key * v_stride;
        for (var n = 0u; n < STEP * LANES / 256u; n += 1u) {
            let further = n * (256u / LANES);
            let at = v_first + further;
            let value = v_four(v_key + further * v_stride, column, key + at < key_end);
            for (var r = 0u; r < ROWS; r += 1u) {
                sums[r] += weight[r * STEP + at] * value;
            }
        }
    }

    workgroupBarrier();
    if (i < ROWS * STEP) {
        weight[i] = weights;
    }
    workgroupBarrier();
    if (i < ROWS) {
        var total = 0.0;
        for (var l = 0u; l < STEP; l += 1u) {
            total += weight[i * STEP + l];
        }
        factor[i] = total;
    }
    let first = (split * (used / splits()) + number / splits()) * rows();
    for (var r = 0u; r < ROWS; r += 1u) {
        parts[i] = sums[r];
        workgroupBarrier();
        if (i < LANES && r < rows() && column < columns()) {
            var sum = vec4<f32>();
            for (var l = 0u; l < 256u / LANES; l += 1u) {
                sum += parts[i + l * LANES];
            }
            if (PARTS == 0u) {
                sum *= share(factor[r]);
            }
            store(first + r, column, sum);
        }
        if (PARTS == 1u && i == 0u && r < rows()) {
            store(first + r, pitch() - 4u, vec4<f32>(greatest[turn + r], factor[r], 0.0, 0.0));
        }
        workgroupBarrier();
    }
}
