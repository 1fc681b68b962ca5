// From the number of an item to its places. Part of every kernel that numbers its
// items in the order of the destination.
//
// row[0]      destination offset, source offset, number of items, the kernel's own
// row[1 + d]  dimension d, innermost first: size, divider, destination stride,
//                source stride
//
// A workgroup divides once, plainly, to find its first item. An invocation is then a
// small step away from that, and small numbers divide by one multiplication.


override RANK: u32 = 1u;
override ITEMS: u32 = 1u;

const LANES: u32 = 256u;
// Workgroups a row of the grid, where there are more than one row.
const FOLD: u32 = 32768u;

struct Place {
    dst: u32,
    src: u32,
    // The index along the innermost dimension.
    inner: u32,
}

fn group_number(group: vec3<u32>) -> u32 {
    return group.y * FOLD + group.x;
}

// The index of item `base`, one number a dimension.
fn index_of(base: u32) -> array<u32, 6> {
    var index: array<u32, 6>;
    var rest = base;
    for (var d = 0u; d + 1u < RANK; d += 1u) {
        let size = params.row[1u + d].x;
        index[d] = rest % size;
        rest = rest / size;
    }
    index[RANK - 1u] = rest;
    return index;
}

// How many times `dim` goes into `i`. A divider of 0 is that of a size which a step
// crosses once at most; the others hold a factor and, from bit 16, a shift.
fn quotient(dim: vec4<u32>, i: u32) -> u32 {
    let factor = dim.y & 0xffffu;
    return select((i * factor) >> (dim.y >> 16u), u32(i >= dim.x), factor == 0u);
}

// Takes the index `i` along dimension `d` into `at`; what is carried to the next.
fn enter(d: u32, i: u32, at: ptr<function, Place>) -> u32 {
    let dim = params.row[1u + d];
    let carry = quotient(dim, i);
    let index = i - carry * dim.x;
    if (d == 0u) {
        (*at).inner = index;
    }
    (*at).dst += index * dim.z;
    (*at).src += index * dim.w;
    return carry;
}

// Where the item `step` after the one at `begin` lies.
fn place(begin: array<u32, 6>, step: u32) -> Place {
    var at = Place(params.row[0].x, params.row[0].y, 0u);
    var i = begin[0] + step;
    if (RANK > 1u) { i = begin[1] + enter(0u, i, &at); }
    if (RANK > 2u) { i = begin[2] + enter(1u, i, &at); }
    if (RANK > 3u) { i = begin[3] + enter(2u, i, &at); }
    if (RANK > 4u) { i = begin[4] + enter(3u, i, &at); }
    if (RANK > 5u) { i = begin[5] + enter(4u, i, &at); }
    if (RANK == 1u) { at.inner = i; }
    let dim = params.row[RANK];
    at.dst += i * dim.z;
    at.src += i * dim.w;
    return at;
}
