// The gated delta rule. A row of the state meets no other row, so LANES lanes keep one in
// registers through all steps, in pairs of elements LANES pairs apart. As S is decayed by
// g and then updated by d k^T, both products of a step come from one reduction:
// S k, S q and k q, with y = S q + d (k q).
//
// Parameters: row 0: heads of all batches, Hk, Hv, L; row 1: Dk, Dv, elements a row of y,
// workgroups a head; row 2: where y, state, q and k start; row 3: v, g, beta; in elements.

override LANES: u32 = 16u;

const PARTS: u32 = 8u;

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@group(0) @binding(2) var<storage, read> q: array<u32>;
@group(0) @binding(3) var<storage, read> k: array<u32>;
@group(0) @binding(4) var<storage, read> v: array<u32>;
@group(0) @binding(5) var<storage, read> g: array<u32>;
@group(0) @binding(6) var<storage, read> beta: array<u32>;

var<workgroup> partial: array<vec3<f32>, 128>;
var<workgroup> results: array<f32, 128>;

fn pair_of_q(index: u32) -> vec2<f32> {
    let word = word_of(index);
    if (TYPE == 0u) {
        return vec2<f32>(bitcast<f32>(q[word]), bitcast<f32>(q[word + 1u]));
    }
    return vec2<f32>(widened(q[word] & 0xffffu), widened(q[word] >> 16u));
}

fn pair_of_k(index: u32) -> vec2<f32> {
    let word = word_of(index);
    if (TYPE == 0u) {
        return vec2<f32>(bitcast<f32>(k[word]), bitcast<f32>(k[word + 1u]));
    }
    return vec2<f32>(widened(k[word] & 0xffffu), widened(k[word] >> 16u));
}

fn pair_of_state(index: u32) -> vec2<f32> {
    let word = word_of(index);
    if (TYPE == 0u) {
        return vec2<f32>(bitcast<f32>(state[word]), bitcast<f32>(state[word + 1u]));
    }
    return vec2<f32>(widened(state[word] & 0xffffu), widened(state[word] >> 16u));
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane_of_all: u32,
) {
    let key_heads = params.row[0].y;
    let heads = params.row[0].z;
    let length = params.row[0].w;
    let dk = params.row[1].x;
    let dv = params.row[1].y;
    let number = group_number(group);
    let place = number / params.row[1].w;
    let batch = place / heads;
    let head = place % heads;
    let key_head = head / (heads / key_heads);
    let team = lane_of_all / LANES;
    let lane = lane_of_all % LANES;
    let row = (number % params.row[1].w) * (128u / LANES) + team;
    let live = row < dv && place < params.row[0].x;
    let state_row = params.row[2].y + (place * dv + row) * dk;

    var s: array<vec2<f32>, 8>;
    for (var p = 0u; p < PARTS; p += 1u) {
        let j = 2u * (p * LANES + lane);
        if (live && j < dk) {
            s[p] = pair_of_state(state_row + j);
        }
    }
    for (var t = 0u; t < length; t += 1u) {
        let step = batch * length + t;
        let key_row = (step * key_heads + key_head) * dk;
        let at = step * heads + head;
        var keys: array<vec2<f32>, 8>;
        var sums = vec3<f32>();
        var rate = 0.0;
        var value = 0.0;
        if (live) {
            let g_at = params.row[3].y + at;
            let decay = element(g[word_of(g_at)], g_at);
            let beta_at = params.row[3].z + at;
            rate = element(beta[word_of(beta_at)], beta_at);
            let v_at = params.row[3].x + at * dv + row;
            value = element(v[word_of(v_at)], v_at);
            for (var p = 0u; p < PARTS; p += 1u) {
                let j = 2u * (p * LANES + lane);
                if (j < dk) {
                    keys[p] = pair_of_k(params.row[2].w + key_row + j);
                    let query = pair_of_q(params.row[2].z + key_row + j);
                    s[p] *= decay;
                    sums += vec3<f32>(dot(s[p], keys[p]), dot(s[p], query), dot(keys[p], query));
                }
            }
        }
        partial[lane_of_all] = sums;
        for (var distance = LANES / 2u; distance > 0u; distance >>= 1u) {
            workgroupBarrier();
            if (lane < distance) {
                partial[lane_of_all] += partial[lane_of_all + distance];
            }
        }
        workgroupBarrier();
        let total = partial[team * LANES];
        let d = rate * (value - total.x);
        if (live) {
            for (var p = 0u; p < PARTS; p += 1u) {
                s[p] += d * keys[p];
            }
        }
        if (lane == 0u) {
            results[team] = total.y + d * total.z;
        }
        workgroupBarrier();
        if (live && lane == 0u) {
            let to = params.row[2].x + at * params.row[1].z + row;
            if (TYPE == 0u) {
                y[to] = bitcast<u32>(results[team]);
            } else if ((team & 1u) == 0u) {
                y[to >> 1u] = pair(results[team], results[team + 1u]);
            }
        }
    }
    for (var p = 0u; p < PARTS; p += 1u) {
        let j = 2u * (p * LANES + lane);
        if (live && j < dk) {
            let word = word_of(state_row + j);
            if (TYPE == 0u) {
                state[word] = bitcast<u32>(s[p].x);
                state[word + 1u] = bitcast<u32>(s[p].y);
            } else {
                state[word] = pair(s[p].x, s[p].y);
            }
        }
    }
}
