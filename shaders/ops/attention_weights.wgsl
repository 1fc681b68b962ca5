// The weights of attention from its scores, row by row: a workgroup each. With half.wgsl
// and attention_common.wgsl, of whose parameters it uses
//
// row[0]  query heads, queries, keys
// row[4]  mask: as there; row[5] too
// row[6]  result: elements from row to row; -; scores: offset, elements from row to row
// row[7]  -; rows
//
// Scores are f32 and bound in place of the queries, as vectors.

var<workgroup> shared_parts: array<f32, 256>;

fn score_at(row: u32, k: u32, at: u32, visible: bool) -> f32 {
    let i = params.row[6].z + row * params.row[6].w + k;
    return masked(LOG2_E * bitcast<f32>(query[i >> 2u][i & 3u]), at + k * params.row[5].z, visible);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.y * FOLD + group.x;
    if (row >= params.row[7].y) {
        return;
    }
    let queries = params.row[0].y;
    let keys = params.row[0].z;
    let query_number = row % queries;
    let head = row / queries % params.row[0].x;
    let batch = row / queries / params.row[0].x;
    let at = params.row[4].z + batch * params.row[4].w + head * params.row[5].x
        + query_number * params.row[5].y;
    let last = select(keys - 1u, query_number, CAUSAL == 1u);

    var most = MASKED;
    for (var k = lane; k < keys; k += 256u) {
        most = max(most, score_at(row, k, at, k <= last));
    }
    shared_parts[lane] = most;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half = half / 2u) {
        if (lane < half) {
            shared_parts[lane] = max(shared_parts[lane], shared_parts[lane + half]);
        }
        workgroupBarrier();
    }
    most = shared_parts[0];
    workgroupBarrier();
    var sum = 0.0;
    for (var k = lane; k < keys; k += 256u) {
        sum += weight(score_at(row, k, at, k <= last), most);
    }
    shared_parts[lane] = sum;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half = half / 2u) {
        if (lane < half) {
            shared_parts[lane] += shared_parts[lane + half];
        }
        workgroupBarrier();
    }
    let factor = reciprocal(shared_parts[0]);
    for (var k = 4u * lane; k < keys; k += 1024u) {
        var four = vec4<f32>();
        for (var j = 0u; j < 4u; j += 1u) {
            if (k + j < keys) {
                four[j] = factor * weight(score_at(row, k + j, at, k + j <= last), most);
            }
        }
        store(row, k, keys, four);
    }
}
