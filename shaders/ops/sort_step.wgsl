// One step of a bitonic sort, over more than 512 places: an invocation a pair.
//
// Parameters: row 0: places a row, places in all, run length, distance.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> keys: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * 32768u) * 256u + lane;
    let total = params.row[0].y;
    if (i >= total / 2u) {
        return;
    }
    let distance = params.row[0].w;
    let a = (i / distance) * 2u * distance + i % distance;
    let b = a + distance;
    let first = vec3<u32>(keys[a], keys[a + total], keys[a + 2u * total]);
    let second = vec3<u32>(keys[b], keys[b + total], keys[b + 2u * total]);
    var after = first.z > second.z;
    if (first.x != second.x) {
        after = first.x > second.x;
    } else if (first.y != second.y) {
        after = first.y > second.y;
    }
    let down = ((a % params.row[0].x) & params.row[0].z) != 0u;
    if (after != down) {
        keys[a] = second.x;
        keys[a + total] = second.y;
        keys[a + 2u * total] = second.z;
        keys[b] = first.x;
        keys[b + total] = first.y;
        keys[b + 2u * total] = first.z;
    }
}
