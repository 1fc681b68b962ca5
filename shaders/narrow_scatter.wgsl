// Moves runs of any number of bytes, at any byte, to any strided layout. With
// walk.wgsl. An item is one word of one run's destination; a word that
// is only partly the run's may hold another run's bytes too, so its bytes are changed
// by two atomic operations, which leave the others as they are.
//
// row[0]  destination offset, source offset, items, bytes of a run
// Offsets and strides in bytes; dimension 0 counts the words that a run may touch.

@group(0) @binding(0) var<storage, read_write> dst: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read> src: array<u32>;

// The source's word from byte `start` on, which may be negative or reach past the end: the
// bytes outside are those of the nearest word.
fn source_word(start: i32) -> u32 {
    let last = i32(arrayLength(&src)) - 1;
    let word = start >> 2u;
    let shift = u32(start & 3) * 8u;
    let a = src[clamp(word, 0, last)];
    let b = src[clamp(word + 1, 0, last)];
    // By 32 - shift, which for a shift of 0 clears it.
    return (a >> shift) | ((b << 1u) << (31u - shift));
}

// Ones in the bytes before byte `end` of a word.
fn bytes_before(end: u32) -> u32 {
    return select((1u << (8u * (end & 3u))) - 1u, 0xffffffffu, end >= 4u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let total = params.row[0].z;
    let run = params.row[0].w;
    let base = group_number(group) * (LANES * ITEMS);
    if (base >= total) {
        return;
    }
    let begin = index_of(base);
    for (var k = 0u; k < ITEMS; k += 1u) {
        let step = k * LANES + lane;
        if (step >= total - base) {
            break;
        }
        let at = place(begin, step);
        let start = at.dst - 4u * at.inner;
        let word = at.dst / 4u;
        let skip = select(0u, start % 4u, at.inner == 0u);
        // A run that begins late in a word touches one word more than others.
        if (word * 4u < start + run) {
            let end = min(4u, start + run - word * 4u);
            // This word's first byte lies as far from the run's start on both sides.
            let value = source_word(i32(at.src) - i32(at.dst % 4u));
            if (skip == 0u && end == 4u) {
                atomicStore(&dst[word], value);
            } else {
                let mask = bytes_before(end) & ~bytes_before(skip);
                atomicAnd(&dst[word], ~mask);
                atomicOr(&dst[word], value & mask);
            }
        }
    }
}
