// Moves units of 4, 8 or 16 bytes through square tiles in workgroup memory, where the
// source is walked best along another dimension than the destination. With tiles.wgsl, one
// of elem_*.wgsl and one of tile_*.wgsl; offsets and strides in units.
//
// A workgroup walks along the destination's rows, a tile a step, and writes whole sectors of
// memory: a row's part of a tile ends where a sector does, and its last units are carried
// into the next step. A sector that is written in two parts costs as much as two. Rows that
// are no longer than a tile follow each other in one workgroup, which walks across them.

@group(0) @binding(0) var<storage, read_write> dst: array<Elem>;
@group(0) @binding(1) var<storage, read> src: array<Elem>;

const ROWS: u32 = LANES / TILE;
const STEPS: u32 = TILE / ROWS;

// Indexed by x, then y. A row's units are permuted by its number, so that a column
// does not lie in one bank.
var<workgroup> tile: array<Elem, TILE * TILE>;

fn slot(x: u32, y: u32) -> u32 {
    return x * TILE + (y ^ x);
}

// This invocation's units of the tile at `place`. What lies outside the view is read from its
// edge instead: without tests, all the loads are under way at once.
fn load(begin: u32, place: vec2<u32>, across: u32, down: u32) -> array<Elem, STEPS> {
    let last = params.row[0].zw - vec2<u32>(1u);
    let at = begin + min(place.y + across, last.y) * params.row[1].w;
    var held: array<Elem, STEPS>;
    for (var k = 0u; k < STEPS; k += 1u) {
        held[k] = src[at + min(place.x + down + k * ROWS, last.x) * params.row[1].y];
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
    let size = params.row[0].zw;
    let x_stride = params.row[1].x;
    let y_stride = params.row[1].z;
    let step = select(vec2<u32>(TILE, 0u), vec2<u32>(0u, TILE), size.x <= TILE);
    let covered = max(params.row[3].w * step, vec2<u32>(TILE));
    let spot = spot_of(number, covered);
    let end = min(size, vec2<u32>(spot.x, spot.y) + covered);
    let across = lane % TILE;
    let down = lane / TILE;
    // Rows that are one tile, or whose units do not follow one another, are written as they
    // begin.
    let mask = select(0u, SECTOR - 1u, x_stride == 1u && step.y == 0u);

    var place = vec2<u32>(spot.x, spot.y);
    var held = load(spot.src, place, across, down);
    // What the workgroup before has left of the first tile's sectors.
    var carried: array<Elem, STEPS>;
    if (spot.x > 0u) {
        for (var k = 0u; k < STEPS; k += 1u) {
            let y = spot.y + down + k * ROWS;
            let late = (spot.dst + y * y_stride) & mask;
            if (across < late && y < end.y) {
                let x = spot.x + across - late;
                carried[k] = src[spot.src + y * params.row[1].w + x * params.row[1].y];
            }
        }
    }
    while (all(place < end)) {
        for (var k = 0u; k < STEPS; k += 1u) {
            tile[slot(down + k * ROWS, across)] = held[k];
        }
        workgroupBarrier();
        // The next tile's loads are under way while this one is written.
        let next = place + step;
        if (all(next < end)) {
            held = load(spot.src, next, across, down);
        }
        let first = spot.dst + (place.y + down) * y_stride;
        for (var k = 0u; k < STEPS; k += 1u) {
            let row = down + k * ROWS;
            let start = first + k * ROWS * y_stride;
            let late = start & mask;
            var unit = tile[slot((across - late) % TILE, row)];
            if (across < late) {
                let before = carried[k];
                carried[k] = unit;
                unit = before;
            }
            // Before the first, x wraps around.
            let x = place.x + across - late;
            if (place.y + row < end.y && x < size.x) {
                dst[start + x * x_stride] = unit;
            }
        }
        workgroupBarrier();
        place = next;
    }
    if (end.x < size.x) {
        return;
    }
    for (var k = 0u; k < STEPS; k += 1u) {
        let y = spot.y + down + k * ROWS;
        let start = spot.dst + y * y_stride;
        let late = start & mask;
        let x = place.x + across - late;
        if (across < late && y < end.y && x < size.x) {
            dst[start + x * x_stride] = carried[k];
        }
    }
}
