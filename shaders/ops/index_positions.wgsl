// Positions in a dense source that an index tensor adds to, for each element of a result
// of up to 8 dimensions: coordinates times strides, and an index times the stride of the
// dimension that it indexes. A position that is not there is 0xffffffff and stays so.
//
// Parameters: rows 0 and 1: sizes; rows 2 and 3: strides of the index; rows 4 and 5:
// strides of the source by the result's coordinates; row 6: elements, where the positions
// start (words), where the index starts (elements), the size of the dimension that is
// indexed; row 7: its stride, whether positions are added to.

override LONG: u32 = 1u;

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> positions: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;

const NOWHERE: u32 = 0xffffffffu;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = (group.x + group.y * 32768u) * 256u + lane;
    if (at >= params.row[6].x) {
        return;
    }
    var rest = at;
    var start = params.row[6].z;
    var position = 0u;
    for (var d = 8u; d > 0u; d -= 1u) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        let size = params.row[i][j];
        let coordinate = rest % size;
        rest /= size;
        start += coordinate * params.row[2u + i][j];
        position += coordinate * params.row[4u + i][j];
    }
    let size = params.row[6].w;
    var low = 0u;
    var high = 0u;
    if (LONG == 1u) {
        low = index[2u * start];
        high = index[2u * start + 1u];
    } else {
        low = index[start];
        high = select(0u, 0xffffffffu, (low & 0x80000000u) != 0u);
    }
    if (high == 0xffffffffu && low >= 0u - size) {
        low += size;
        high = 0u;
    }
    let to = params.row[6].y + at;
    if (params.row[7].y == 1u) {
        let before = positions[to];
        position = select(position + before, NOWHERE, before == NOWHERE);
    }
    if (high != 0u || low >= size || position == NOWHERE) {
        positions[to] = NOWHERE;
    } else {
        positions[to] = position + low * params.row[7].x;
    }
}
