// For transpose_2.wgsl: rows begin at words on both sides, so that no word of the
// destination holds elements of two rows.

@group(0) @binding(0) var<storage, read_write> dst: array<u32>;

const TILE_X: u32 = 64u;
const TILE_Y: u32 = 64u;

// The element at `i`, which is even, and the next.
fn two_at(i: u32) -> u32 {
    return src[i / 2u];
}

// Elements y, which is even, and y + 1 of the row of `size` elements at `start`.
fn two_of(start: u32, y: u32, size: u32) -> u32 {
    return src[(start + min(y, size - 1u)) / 2u];
}

fn begins_late(start: u32) -> bool {
    return false;
}

fn put_word(at: u32, value: u32) {
    dst[at] = value;
}

fn put_low(at: u32, value: u32) {
    dst[at] = (dst[at] & 0xffff0000u) | (value & 0xffffu);
}

// Not called: a row that begins at a word has no second half alone.
fn put_high(at: u32, value: u32) {}
