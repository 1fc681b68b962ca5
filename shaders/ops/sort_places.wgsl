// The first elements of sorted rows: their places in the row as int64, and in the whole
// source. See sort_keys.wgsl for the planes.
//
// Parameters: row 0: elements a row of the source, places a row, places in all, elements
// wanted of a row; row 1: elements wanted in all, where indices and positions start (words).

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> indices: array<u32>;
@group(0) @binding(1) var<storage, read_write> positions: array<u32>;
@group(0) @binding(2) var<storage, read> keys: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = (group.x + group.y * 32768u) * 256u + lane;
    if (at >= params.row[1].x) {
        return;
    }
    let row = at / params.row[0].w;
    let place = keys[2u * params.row[0].z + row * params.row[0].y + at % params.row[0].w];
    indices[params.row[1].y + 2u * at] = place;
    indices[params.row[1].y + 2u * at + 1u] = 0u;
    positions[params.row[1].z + at] = row * params.row[0].x + place;
}
