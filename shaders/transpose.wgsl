// Moves units of 4, 8 or 16 bytes through square tiles in workgroup memory, where the
// source is walked best along another dimension than the destination. With
// tiles.wgsl, one of elem_*.wgsl and one of tile_*.wgsl; offsets and strides in units.
//
// A workgroup does TILES tiles along y, and the next one the next along x: rows of the
// destination that neither begin nor end at a sector of memory are then completed while that
// is still in the cache.


@group(0) @binding(0) var<storage, read_write> dst: array<Elem>;
@group(0) @binding(1) var<storage, read> src: array<Elem>;

override TILES: u32 = 1u;

const ROWS: u32 = LANES / TILE;
const STEPS: u32 = TILE / ROWS;

// Indexed by x, then y. A row's units are permuted by its number, so that a column
// does not lie in one bank.
var<workgroup> tile: array<Elem, TILE * TILE>;

fn slot(x: u32, y: u32) -> u32 {
    return x * TILE + (y ^ x);
}

// This invocation's units of a tile. What lies outside the view is read from its edge
// instead: without tests, all the loads are under way at once.
fn load(spot: Spot, y: u32, across: u32, down: u32) -> array<Elem, STEPS> {
    let last = params.row[0].zw - vec2<u32>(1u);
    let at = spot.src + min(y + across, last.y) * params.row[1].w;
    var held: array<Elem, STEPS>;
    for (var k = 0u; k < STEPS; k += 1u) {
        held[k] = src[at + min(spot.x + down + k * ROWS, last.x) * params.row[1].y];
    }
    return held;
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
    let spot = spot_of(number, vec2<u32>(TILE, TILES * TILE));
    let size = params.row[0].zw;
    let across = lane % TILE;
    let down = lane / TILE;
    let stride = params.row[1].z;
    let end = min(size.y, spot.y + TILES * TILE);
    let column = spot.dst + (spot.x + across) * params.row[1].x;

    var held = load(spot, spot.y, across, down);
    for (var y = spot.y; y < end; y += TILE) {
        for (var k = 0u; k < STEPS; k += 1u) {
            tile[slot(down + k * ROWS, across)] = held[k];
        }
        workgroupBarrier();
        // The next tile's loads are under way while this one is written.
        if (y + TILE < end) {
            held = load(spot, y + TILE, across, down);
        }
        if (spot.x + across < size.x) {
            for (var k = 0u; k < STEPS; k += 1u) {
                let row = down + k * ROWS;
                if (y + row < size.y) {
                    dst[column + (y + row) * stride] = tile[slot(across, row)];
                }
            }
        }
        workgroupBarrier();
    }
}
