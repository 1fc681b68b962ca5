// The destination and the source as groups of 16 bytes, and bytes of them from anywhere on:
// for kernels of which an invocation owns the words that it writes.

@group(0) @binding(0) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> src: array<vec4<u32>>;

// The bytes of `low` and, after them, `high`, from byte `start % 4` of `low` on.
fn funnel(low: vec4<u32>, high: vec4<u32>, start: i32) -> vec4<u32> {
    let shift = u32(start & 3) * 8u;
    // By 32 - shift, which for a shift of 0 clears it.
    return (low >> vec4<u32>(shift)) | ((high << vec4<u32>(1u)) << vec4<u32>(31u - shift));
}

// Ones in the bytes of four words before byte `end`.
fn bytes_before(end: u32) -> vec4<u32> {
    let bytes = vec4<i32>(i32(end)) - vec4<i32>(0, 4, 8, 12);
    let bits = vec4<u32>(clamp(bytes, vec4<i32>(0), vec4<i32>(4))) * 8u;
    let none = bits == vec4<u32>(0u);
    return select(vec4<u32>(0xffffffffu) >> ((32u - bits) & vec4<u32>(31u)), vec4<u32>(0u), none);
}

// Ones in bytes `begin` to `end` of four words.
fn bytes_between(begin: u32, end: u32) -> vec4<u32> {
    return bytes_before(end) & ~bytes_before(begin);
}

// 16 bytes of the source from `start` on, which may be negative or reach past the end: the
// bytes outside are those of the nearest group.
fn source_bytes(start: i32) -> vec4<u32> {
    let last = i32(arrayLength(&src)) - 1;
    let group = start >> 4u;
    let a = src[clamp(group, 0, last)];
    let b = src[clamp(group + 1, 0, last)];
    // The five words from word (start / 4) % 4 on: two steps of selection.
    let two = (start & 8) != 0;
    let one = (start & 4) != 0;
    let p = select(a, vec4<u32>(a.zw, b.xy), two);
    let q = select(b.xy, b.zw, two);
    let low = select(p, vec4<u32>(p.yzw, q.x), one);
    let fifth = select(q.x, q.y, one);
    return funnel(low, vec4<u32>(low.yzw, fifth), start);
}

// Writes the bytes `begin` to `end` of a group, word by word: words without any are not
// written at all.
fn put_bytes(to: u32, value: vec4<u32>, begin: u32, end: u32) {
    let mask = bytes_between(begin, end);
    let kept = value & mask;
    if (mask.x != 0u) { dst[to].x = (dst[to].x & ~mask.x) | kept.x; }
    if (mask.y != 0u) { dst[to].y = (dst[to].y & ~mask.y) | kept.y; }
    if (mask.z != 0u) { dst[to].z = (dst[to].z & ~mask.z) | kept.z; }
    if (mask.w != 0u) { dst[to].w = (dst[to].w & ~mask.w) | kept.w; }
}
