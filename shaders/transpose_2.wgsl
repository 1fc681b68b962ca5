// Transposes elements of 2 bytes, two to a word, through tiles of 64 x 64. The
// destination is contiguous along x and the source along y; rows may begin in the
// middle of a word on either side. Offsets and strides in elements.
//
// The parameters are those of transpose.wgsl, with tiles of 64 and, because a row
// that begins in a word's second half is shifted by one, one more element along x.
// A word belongs to the tile in which its second half lies; words at the ends of a
// row, which hold another row's element or none of the view's, are changed half by
// half.


@group(0) @binding(0) var<storage, read_write> dst: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read> src: array<u32>;

const LANES: u32 = 256u;
const FOLD: u32 = 32768u;
const TILE: u32 = 64u;
const WORDS: u32 = 32u;
const ROWS: u32 = LANES / WORDS;

// Row x0 - 1 + r at r. A row's words are permuted by half its number, so that the
// column of every second row lies in 32 different banks.
var<workgroup> tile: array<u32, (TILE + 1u) * WORDS>;

fn slot(row: u32, word: u32) -> u32 {
    return row * WORDS + (word ^ ((row >> 1u) % WORDS));
}

fn half(word: u32, which: u32) -> u32 {
    return (word >> (16u * (which & 1u))) & 0xffffu;
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
    let word = lane % WORDS;
    let down = lane / WORDS;

    let y = y0 + 2u * word;
    for (var r = down; r <= TILE; r += ROWS) {
        // Row 0 of the first tile wraps around and is out of range.
        let x = x0 + r - 1u;
        if (x < size.x && y < size.y) {
            let read = origin.y + x * params.row[1].y + y;
            var pair = src[read / 2u];
            if ((read & 1u) == 1u) {
                pair = pair >> 16u;
                if (y + 1u < size.y) {
                    pair |= src[read / 2u + 1u] << 16u;
                }
            }
            tile[slot(r, word)] = pair;
        }
    }
    workgroupBarrier();
    for (var r = down; r < TILE; r += ROWS) {
        let y = y0 + r;
        if (y >= size.y) {
            continue;
        }
        let start = origin.x + y * params.row[1].z;
        let odd = start & 1u;
        let row = 2u * word + 1u - odd;
        // The elements of this word, x and x + 1; x is one before the row for the
        // first word of a row that begins in its second half.
        let x = x0 + row - 1u;
        let low = half(tile[slot(row, r / 2u)], r);
        let high = half(tile[slot(row + 1u, r / 2u)], r);
        let has_low = x < size.x;
        let has_high = x + 1u < size.x;
        let to = (start - odd) / 2u + x0 / 2u + word;
        if (has_low && has_high) {
            atomicStore(&dst[to], low | (high << 16u));
        } else if (has_low) {
            atomicAnd(&dst[to], 0xffff0000u);
            atomicOr(&dst[to], low);
        } else if (has_high) {
            atomicAnd(&dst[to], 0x0000ffffu);
            atomicOr(&dst[to], high << 16u);
        }
    }
}
