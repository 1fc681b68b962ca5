// Scores to attention weights, a row a workgroup: q has the products of q and k in f32,
// already scaled, in rows as wide as those of out, whose columns are the keys. With
// attention_common.wgsl.

var<workgroup> shares: array<f32, 256>;

fn score_at(row: u32, start: u32, mask_from: u32, key: u32) -> f32 {
    if (CAUSAL == 1u && key > row % queries()) {
        return LOWEST;
    }
    return bitcast<f32>(q[(start + key) >> 2u][key & 3u]) + mask_at(mask_from, key);
}

fn weight_at(row: u32, start: u32, mask_from: u32, key: u32, most: f32) -> f32 {
    if (key >= keys() || (CAUSAL == 1u && key > row % queries())) {
        return 0.0;
    }
    return exp(score_at(row, start, mask_from, key) - most);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) i: u32,
) {
    let number = group_number(group);
    if (number >= params.row[7].y) {
        return;
    }
    let z = matrix_of(number / rows());
    let row = number % rows();
    let start = params.row[1].x + number * pitch();
    let mask_from = mask_start(z, row);

    var most = LOWEST;
    for (var key = i; key < keys(); key += 256u) {
        most = max(most, score_at(row, start, mask_from, key));
    }
    shares[i] = most;
    workgroupBarrier();
    for (var half = 128u; half >= 1u; half = half >> 1u) {
        if (i < half) {
            shares[i] = max(shares[i], shares[i + half]);
        }
        workgroupBarrier();
    }
    most = shares[0];
    workgroupBarrier();

    var sum = 0.0;
    for (var key = i; key < keys(); key += 256u) {
        sum += weight_at(row, start, mask_from, key, most);
    }
    shares[i] = sum;
    workgroupBarrier();
    for (var half = 128u; half >= 1u; half = half >> 1u) {
        if (i < half) {
            shares[i] += shares[i + half];
        }
        workgroupBarrier();
    }
    let factor = share(shares[0]);
    for (var key = i * 4u; key < keys(); key += 1024u) {
        store(number, key, factor * vec4<f32>(
            weight_at(row, start, mask_from, key, most),
            weight_at(row, start, mask_from, key + 1u, most),
            weight_at(row, start, mask_from, key + 2u, most),
            weight_at(row, start, mask_from, key + 3u, most),
        ));
    }
}
