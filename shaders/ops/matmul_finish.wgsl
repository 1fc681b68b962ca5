// Adds up the partial products that splits of the depth left in a: f32, batch by batch
// dense but for rows that end at a multiple of four columns. With matmul_common.wgsl.
//
// a's strides are those of the partial products; a split's is row[7].y, out's own split
// stride not being used.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let rows = params.row[0].x;
    let vectors = (params.row[0].y + 3u) / 4u;
    let item = group_number(group) * 256u + lane;
    if (item >= params.row[7].z) {
        return;
    }
    let column = (item % vectors) * 4u;
    let row = (item / vectors) % rows;
    let z = batch_of(item / vectors / rows);
    let i = a_start(z) + row * params.row[1].w + column;
    var sum = vec4<f32>();
    for (var split = 0u; split < params.row[7].x; split += 1u) {
        sum += a_quad(i + split * params.row[7].y);
    }
    store(z, 0u, row, column, sum);
}
