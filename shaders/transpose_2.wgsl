// Transposes elements of 2 bytes, two to a word, through tiles in workgroup memory. The
// destination is contiguous along x and the source along y. With halves_even.wgsl,
// where every row begins at a word on both sides, or halves_odd.wgsl, where rows may
// begin in the middle of a word on either. Offsets and strides in elements.
//
// The parameters are those of transpose.wgsl; with halves_odd.wgsl, because a row that
// begins in a word's second half is shifted by one, with one more element along x.
// A word belongs to the tile in which its second half lies.


@group(0) @binding(1) var<storage, read> src: array<u32>;

override TILES: u32 = 1u;

const LANES: u32 = 256u;
const FOLD: u32 = 32768u;
const X_WORDS: u32 = TILE_X / 2u;
const Y_WORDS: u32 = TILE_Y / 2u;
const READERS: u32 = LANES / Y_WORDS;
// Elements along x, two along y each, that an invocation reads.
const COLUMN: u32 = TILE_X / READERS;
const WRITERS: u32 = LANES / X_WORDS;
const STEPS: u32 = TILE_Y / WRITERS;

// The destination's words, indexed by y, then x. A row's words are permuted by half its
// number, so that the column of every second row lies in different banks.
var<workgroup> tile: array<u32, TILE_Y * X_WORDS>;

fn slot(y: u32, word: u32) -> u32 {
    return y * X_WORDS + (word ^ ((y >> 1u) % X_WORDS));
}

// Where the tiles of a group begin: the place, then the two tensors'.
struct Spot {
    x: u32,
    y: u32,
    dst: u32,
    src: u32,
}

fn spot_of(group: u32) -> Spot {
    let x = (group % params.row[2].x) * TILE_X;
    var rest = group / params.row[2].x;
    let y = (rest % params.row[2].y) * TILES * TILE_Y;
    rest = rest / params.row[2].y;
    var origin = params.row[0].xy;
    for (var d = 0u; d < params.row[2].w; d += 1u) {
        let dim = params.row[3u + d];
        origin += (rest % dim.x) * dim.yz;
        rest = rest / dim.x;
    }
    return Spot(x, y, origin.x, origin.y);
}

// Whether a tile needs no tests: it lies inside the view, and so does what is before it
// in a row that begins late.
fn is_inside(x: u32, y: u32) -> bool {
    let size = params.row[0].zw;
    return x > 0u && x + TILE_X <= size.x && y + TILE_Y <= size.y;
}

// Elements y and y + 1 of the element along x before this invocation's part of the tile,
// which begins at `x`, and of its COLUMN. What lies outside the view is read from its edge.
fn load(spot: Spot, x: u32, y: u32, inside: bool) -> array<u32, COLUMN + 1u> {
    let stride = params.row[1].y;
    var held: array<u32, COLUMN + 1u>;
    if (inside) {
        let first = spot.src + (x - 1u) * stride + y;
        for (var k = 0u; k <= COLUMN; k += 1u) {
            held[k] = two_at(first + k * stride);
        }
    } else {
        let size = params.row[0].zw;
        for (var k = 0u; k <= COLUMN; k += 1u) {
            let at = min(max(x + k, 1u) - 1u, size.x - 1u);
            held[k] = two_of(spot.src + at * stride, y, size.y);
        }
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
    let spot = spot_of(number);
    let size = params.row[0].zw;
    let stride = params.row[1].z;
    let end = min(size.y, spot.y + TILES * TILE_Y);
    let pair = 2u * (lane % Y_WORDS);
    let part = lane / Y_WORDS * COLUMN;
    let word = lane % X_WORDS;
    let down = lane / X_WORDS;
    let to = spot.x / 2u + word;

    var inside = is_inside(spot.x, spot.y);
    var held = load(spot, spot.x + part, spot.y + pair, inside);
    for (var y = spot.y; y < end; y += TILE_Y) {
        let shifted = vec2<bool>(
            begins_late(spot.dst + (y + pair) * stride),
            begins_late(spot.dst + (y + pair + 1u) * stride),
        );
        for (var k = 0u; k < COLUMN; k += 2u) {
            let even = vec2<u32>(held[k + 1u], held[k + 2u]);
            let odd = vec2<u32>(held[k], held[k + 1u]);
            let low = select(even, odd, shifted.x);
            let high = select(even, odd, shifted.y);
            let at = (part + k) / 2u;
            tile[slot(pair, at)] = (low.x & 0xffffu) | (low.y << 16u);
            tile[slot(pair + 1u, at)] = (high.x >> 16u) | (high.y & 0xffff0000u);
        }
        workgroupBarrier();
        // The next tile's loads are under way while this one is written.
        let whole = inside;
        if (y + TILE_Y < end) {
            inside = is_inside(spot.x, y + TILE_Y);
            held = load(spot, spot.x + part, y + TILE_Y + pair, inside);
        }
        for (var k = 0u; k < STEPS; k += 1u) {
            let row = down + k * WRITERS;
            let start = spot.dst + (y + row) * stride;
            let at = start / 2u + to;
            let value = tile[slot(row, word)];
            if (whole) {
                put_word(at, value);
                continue;
            }
            if (y + row >= size.y) {
                break;
            }
            // The elements of this word, x and x + 1; before the first, x wraps around.
            let x = spot.x + 2u * word - u32(begins_late(start));
            if (x < size.x && x + 1u < size.x) {
                put_word(at, value);
            } else if (x < size.x) {
                put_low(at, value);
            } else if (x + 1u < size.x) {
                put_high(at, value);
            }
        }
        workgroupBarrier();
    }
}
