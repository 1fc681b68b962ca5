// Elements of buffers that are bound as vectors of 16 bytes. With half.wgsl; those of 16
// bits are taken from words by bit operations. Kinds: 0 f32, 1 f16, 2 bf16.

// The two elements of a word of 16-bit ones.
fn widen(kind: u32, word: u32) -> vec2<f32> {
    if (kind == 2u) {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}

// A value as the bits of a 16-bit element.
fn narrow(kind: u32, value: f32) -> u32 {
    if (kind == 2u) {
        return float_to_bfloat(bitcast<u32>(value));
    }
    return float_to_half(bitcast<u32>(value));
}

// The vector that element i lies in.
fn vector_of(kind: u32, i: u32) -> u32 {
    return select(i >> 3u, i >> 2u, kind == 0u);
}

// The word of its vector that element i lies in.
fn word_in(kind: u32, i: u32) -> u32 {
    return select((i >> 1u) & 3u, i & 3u, kind == 0u);
}

// Element i, of its word.
fn of_word(kind: u32, word: u32, i: u32) -> f32 {
    if (kind == 0u) {
        return bitcast<f32>(word);
    }
    let both = widen(kind, word);
    return select(both.x, both.y, (i & 1u) == 1u);
}

// Element i, of its vector.
fn one_of(kind: u32, bytes: vec4<u32>, i: u32) -> f32 {
    return of_word(kind, bytes[word_in(kind, i)], i);
}

// Four elements from the one at i, a multiple of 4, of their vector.
fn four_of(kind: u32, bytes: vec4<u32>, i: u32) -> vec4<f32> {
    if (kind == 0u) {
        return bitcast<vec4<f32>>(bytes);
    }
    let four = select(bytes.xy, bytes.zw, (i & 4u) == 4u);
    return vec4<f32>(widen(kind, four.x), widen(kind, four.y));
}
