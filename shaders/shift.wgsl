// Four words of the source from any byte on. With kernels whose source is words.

// The source's bytes from `start`, which may be negative or reach past the end: the
// bytes outside are whatever the nearest word holds.
fn source_bytes(start: i32) -> vec4<u32> {
    let last = i32(arrayLength(&src)) - 1;
    let word = start >> 2u;
    let shift = u32(start & 3) * 8u;
    let a = src[clamp(word, 0, last)];
    let b = src[clamp(word + 1, 0, last)];
    let c = src[clamp(word + 2, 0, last)];
    let d = src[clamp(word + 3, 0, last)];
    let e = src[clamp(word + 4, 0, last)];
    let low = vec4<u32>(a, b, c, d) >> vec4<u32>(shift);
    // By 32 - shift, which for a shift of 0 clears it.
    let high = (vec4<u32>(b, c, d, e) << vec4<u32>(1u)) << vec4<u32>(31u - shift);
    return low | high;
}

// The first word of the above.
fn source_word(start: i32) -> u32 {
    let last = i32(arrayLength(&src)) - 1;
    let word = start >> 2u;
    let shift = u32(start & 3) * 8u;
    let a = src[clamp(word, 0, last)];
    let b = src[clamp(word + 1, 0, last)];
    return (a >> shift) | ((b << 1u) << (31u - shift));
}

// Ones in the bytes before byte `end` of a word.
fn bytes_before(end: i32) -> u32 {
    let n = u32(clamp(end, 0, 4)) * 8u;
    return select((1u << n) - 1u, 0xffffffffu, n == 32u);
}

// Ones in bytes `begin` to `end` of four words.
fn bytes_between(begin: u32, end: u32) -> vec4<u32> {
    let b = i32(begin);
    let e = i32(end);
    return vec4<u32>(
        bytes_before(e) & ~bytes_before(b),
        bytes_before(e - 4) & ~bytes_before(b - 4),
        bytes_before(e - 8) & ~bytes_before(b - 8),
        bytes_before(e - 12) & ~bytes_before(b - 12),
    );
}
