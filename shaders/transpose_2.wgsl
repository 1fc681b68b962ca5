// Transposes elements of 2 bytes, two to a word, through tiles in workgroup memory. The
// destination is contiguous along x and the source along y. With tiles.wgsl, and with
// halves_even.wgsl, where every row begins at a word on both sides, or halves_odd.wgsl,
// where rows may begin in the middle of a word on either. Offsets and strides in elements.
//
// A word belongs to the tile in which its second half lies. With halves_odd.wgsl, because a
// row that begins in a word's second half is shifted by one, there are groups for one more
// element along x.


@group(0) @binding(1) var<storage, read> src: array<u32>;

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
    let spot = spot_of(number, vec2<u32>(TILE_X, TILE_Y));
    let x0 = spot.x;
    let y0 = spot.y;

    // A tile inside the view needs no tests; the first of a row may begin before it.
    let inside = x0 > 0u && x0 + TILE_X <= size.x && y0 + TILE_Y <= size.y;

    // Elements y and y + 1 of the one before this invocation's part of x and of its
    // COLUMN. What lies outside the view is read from its edge.
    let pair = lane % Y_WORDS;
    let part = lane / Y_WORDS * COLUMN;
    let y = y0 + 2u * pair;
    let stride = params.row[1].y;
    var held: array<u32, COLUMN + 1u>;
    if (inside) {
        let first = spot.src + (x0 + part - 1u) * stride + y;
        for (var k = 0u; k <= COLUMN; k += 1u) {
            held[k] = two_at(first + k * stride);
        }
    } else {
        for (var k = 0u; k <= COLUMN; k += 1u) {
            let x = min(max(x0 + part + k, 1u) - 1u, size.x - 1u);
            held[k] = two_of(spot.src + x * stride, y, size.y);
        }
    }
    let shifted = vec2<bool>(
        begins_late(spot.dst + y * params.row[1].z),
        begins_late(spot.dst + (y + 1u) * params.row[1].z),
    );
    for (var k = 0u; k < COLUMN; k += 2u) {
        let even = vec2<u32>(held[k + 1u], held[k + 2u]);
        let odd = vec2<u32>(held[k], held[k + 1u]);
        let word = (part + k) / 2u;
        let low = select(even, odd, shifted.x);
        tile[slot(2u * pair, word)] = (low.x & 0xffffu) | (low.y << 16u);
        let high = select(even, odd, shifted.y);
        tile[slot(2u * pair + 1u, word)] = (high.x >> 16u) | (high.y & 0xffff0000u);
    }
    workgroupBarrier();
    let word = lane % X_WORDS;
    let down = lane / X_WORDS;
    let to = x0 / 2u + word;
    let first = spot.dst + (y0 + down) * params.row[1].z;
    let step = WRITERS * params.row[1].z;
    if (inside) {
        for (var k = 0u; k < STEPS; k += 1u) {
            put_word((first + k * step) / 2u + to, tile[slot(down + k * WRITERS, word)]);
        }
        return;
    }
    for (var k = 0u; k < STEPS; k += 1u) {
        let row = down + k * WRITERS;
        if (y0 + row >= size.y) {
            return;
        }
        let start = first + k * step;
        // The elements of this word, x and x + 1; before the first, x wraps around.
        let x = x0 + 2u * word - u32(begins_late(start));
        let at = start / 2u + to;
        let value = tile[slot(row, word)];
        if (x < size.x && x + 1u < size.x) {
            put_word(at, value);
        } else if (x < size.x) {
            put_low(at, value);
        } else if (x + 1u < size.x) {
            put_high(at, value);
        }
    }
}
