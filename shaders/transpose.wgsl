// Moves units of 4, 8 or 16 bytes through square tiles in workgroup memory, where the
// source is walked best along another dimension than the destination. With one of
// elem_*.wgsl and one of tile_*.wgsl; offsets and strides in units.
//
// row[0]  destination offset, source offset, size along x, size along y
// row[1]  destination stride of x, source stride of x, the same of y
// row[2]  tiles along x, tiles along y, number of tiles, dimensions around
// row[3 + d]  dimension d around the tiles: size, destination stride, source stride
//
// x is the destination's innermost dimension, y the source's.


@group(0) @binding(0) var<storage, read_write> dst: array<Elem>;
@group(0) @binding(1) var<storage, read> src: array<Elem>;

const LANES: u32 = 256u;
const FOLD: u32 = 32768u;
const ROWS: u32 = LANES / TILE;
const STEPS: u32 = TILE / ROWS;

// Indexed by x, then y. A row's units are permuted by its number, so that a column
// does not lie in one bank.
var<workgroup> tile: array<Elem, TILE * TILE>;

fn slot(x: u32, y: u32) -> u32 {
    return x * TILE + (y ^ x);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * FOLD + group.x;
    if (number >= params.row[2].z) {
        return;
    }
    let size = params.row[0].zw;
    let stride_x = params.row[1].xy;
    let stride_y = params.row[1].zw;
    let x0 = (number % params.row[2].x) * TILE;
    var rest = number / params.row[2].x;
    let y0 = (rest % params.row[2].y) * TILE;
    rest = rest / params.row[2].y;
    var origin = params.row[0].xy;
    for (var d = 0u; d < params.row[2].w; d += 1u) {
        let dim = params.row[3u + d];
        origin += (rest % dim.x) * dim.yz;
        rest = rest / dim.x;
    }
    let across = lane % TILE;
    let down = lane / TILE;

    // What lies outside the view is read from its edge instead: without tests, all the
    // loads are under way at once.
    let last = size - vec2<u32>(1u);
    let read_at = origin.y + min(y0 + across, last.y) * stride_y.y;
    var held: array<Elem, STEPS>;
    for (var k = 0u; k < STEPS; k += 1u) {
        held[k] = src[read_at + min(x0 + down + k * ROWS, last.x) * stride_x.y];
    }
    for (var k = 0u; k < STEPS; k += 1u) {
        tile[slot(down + k * ROWS, across)] = held[k];
    }
    workgroupBarrier();
    if (x0 + across >= size.x) {
        return;
    }
    let y = y0 + down;
    let write_at = origin.x + (x0 + across) * stride_x.x + y * stride_y.x;
    for (var k = 0u; k < STEPS; k += 1u) {
        if (y + k * ROWS < size.y) {
            dst[write_at + k * ROWS * stride_y.x] = tile[slot(across, down + k * ROWS)];
        }
    }
}
