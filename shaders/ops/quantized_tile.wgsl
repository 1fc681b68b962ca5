// Many rows of x times one matrix of 4-bit weights: tiles of 64 by 64, a chunk of 32
// weights deep; weights become f32 on their way into workgroup memory.

var<workgroup> x_tile: array<f32, 2048>;
var<workgroup> w_tile: array<f32, 2048>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n = params.row[0].x;
    let chunks = params.row[0].y;
    let m = params.row[2].y;
    let blocks = (n + 63u) / 64u;
    let number = group_number(group);
    let first_m = (number / blocks) * 64u;
    let first_n = (number % blocks) * 64u;
    let row = lane % 64u;
    let quarter = lane / 64u;
    let x_row = min(first_m + row, m - 1u);
    let w_row = min(first_n + row, n - 1u);
    let y = lane / 16u;
    let z = lane % 16u;

    var sums: array<vec4<f32>, 4>;
    for (var chunk = 0u; chunk < chunks; chunk += 1u) {
        let k = chunk * 32u + quarter * 8u;
        let low_x = four_of_x(x_row * chunks * 32u + k);
        let high_x = four_of_x(x_row * chunks * 32u + k + 4u);
        let word = w[params.row[1].y + w_row * chunks + chunk][quarter];
        let part = w_row * params.row[0].z + (chunk >> params.row[0].w);
        let scale = vec4<f32>(scale_of(part)) * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);
        let offset = vec4<f32>(offset_of(part));
        let low_w = low_nibbles(word) * scale + offset;
        let high_w = low_nibbles(word >> 16u) * scale + offset;
        workgroupBarrier();
        for (var i = 0u; i < 4u; i += 1u) {
            let at = (quarter * 8u + i) * 64u + row;
            x_tile[at] = low_x[i];
            x_tile[at + 256u] = high_x[i];
            w_tile[at] = low_w[i];
            w_tile[at + 256u] = high_w[i];
        }
        workgroupBarrier();
        for (var i = 0u; i < 32u; i += 1u) {
            let at = i * 64u + z * 4u;
            let right = vec4<f32>(w_tile[at], w_tile[at + 1u], w_tile[at + 2u], w_tile[at + 3u]);
            let left = i * 64u + y * 4u;
            sums[0] += x_tile[left] * right;
            sums[1] += x_tile[left + 1u] * right;
            sums[2] += x_tile[left + 2u] * right;
            sums[3] += x_tile[left + 3u] * right;
        }
    }
    for (var i = 0u; i < 4u; i += 1u) {
        let to = first_m + y * 4u + i;
        if (to >= m) {
            continue;
        }
        for (var j = 0u; j < 4u; j += 1u) {
            let column = first_n + z * 4u + j;
            if (column >= n) {
                continue;
            }
            let index = to * params.row[2].z + column;
            if (TYPE == 0u) {
                out[params.row[1].x + index] = bitcast<u32>(sums[i][j]);
            } else if ((j & 1u) == 0u) {
                out[params.row[1].x + (index >> 1u)] = pair(sums[i][j], sums[i][j + 1u]);
            }
        }
    }
}
