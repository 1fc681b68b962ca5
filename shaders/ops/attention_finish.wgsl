// Adds up the parts of an attention whose keys were split: four columns of a row an
// invocation. q has the parts. With attention_common.wgsl.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = group_number(group) * 256u + lane;
    let items = params.row[7].y;
    if (item >= items) {
        return;
    }
    let vectors = pitch() / 4u;
    let row = item / vectors;
    let column = item % vectors;
    let part = vectors + 1u;
    let split = (items / vectors) * part;
    let start = params.row[1].x / 4u + row * part;
    var most = LOWEST;
    for (var s = 0u; s < splits(); s += 1u) {
        most = max(most, bitcast<f32>(q[start + s * split + vectors].x));
    }
    var sum = vec4<f32>();
    var weights = 0.0;
    for (var s = 0u; s < splits(); s += 1u) {
        let state = bitcast<vec4<f32>>(q[start + s * split + vectors]);
        let factor = exp(state.x - most);
        weights += factor * state.y;
        sum += factor * bitcast<vec4<f32>>(q[start + s * split + column]);
    }
    store(row, column * 4u, sum * share(weights));
}
