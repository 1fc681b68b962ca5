// Sums divided by counts, in place: floats, or integers rounded down.
//
// Parameters: row 0: elements, where the sums and the counts start (words).

override KIND: u32 = 0u;

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@group(0) @binding(1) var<storage, read> counts: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * 32768u) * 256u + lane;
    if (i >= params.row[0].x) {
        return;
    }
    let at = params.row[0].y + i;
    let count = max(bitcast<i32>(counts[params.row[0].z + i]), 1);
    if (KIND == 0u) {
        sums[at] = bitcast<u32>(bitcast<f32>(sums[at]) / f32(count));
        return;
    }
    let sum = bitcast<i32>(sums[at]);
    let quotient = sum / count;
    sums[at] = bitcast<u32>(quotient - select(0, 1, sum < 0 && quotient * count != sum));
}
