// For transpose_2.wgsl: rows may begin in the middle of a word. Words at their ends hold
// another row's element, or none of the view's, and are changed half by half.

@group(0) @binding(0) var<storage, read_write> dst: array<atomic<u32>>;

const TILE_X: u32 = 64u;
const TILE_Y: u32 = 64u;

// The element at `i` and the next. Two words are always read, so that no load waits for
// a test.
fn two_at(i: u32) -> u32 {
    let low = src[i / 2u];
    let high = src[i / 2u + (i & 1u)];
    return select(low, (low >> 16u) | (high << 16u), (i & 1u) == 1u);
}

// Elements y, which is even, and y + 1 of the row of `size` elements at `start`.
fn two_of(start: u32, y: u32, size: u32) -> u32 {
    let last = (start + size - 1u) / 2u;
    let first = (start + y) / 2u;
    let odd = start & 1u;
    let low = src[min(first, last)];
    let high = src[min(first + odd, last)];
    return select(low, (low >> 16u) | (high << 16u), odd == 1u);
}

fn begins_late(start: u32) -> bool {
    return (start & 1u) == 1u;
}

fn put_word(at: u32, value: u32) {
    atomicStore(&dst[at], value);
}

fn put_low(at: u32, value: u32) {
    atomicAnd(&dst[at], 0xffff0000u);
    atomicOr(&dst[at], value & 0xffffu);
}

fn put_high(at: u32, value: u32) {
    atomicAnd(&dst[at], 0x0000ffffu);
    atomicOr(&dst[at], value & 0xffff0000u);
}
