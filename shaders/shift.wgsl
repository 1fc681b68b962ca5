// The destination and the source as groups of 16 bytes, and bytes of them from anywhere on:
// for kernels of which an invocation owns the words that it writes. These kernels are
// bound by their arithmetic, so the forms below are those of the fewest instructions.

@group(0) @binding(0) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> src: array<vec4<u32>>;

// 16 bytes of the source from `start` on, at least one of which is the source's; of those
// that are not, the nearest group's.
fn source_bytes(start: i32) -> vec4<u32> {
    let group = start >> 4u;
    let a = src[max(group, 0)];
    let b = src[min(group + 1, i32(arrayLength(&src)) - 1)];
    // The five words from word (start / 4) % 4 on: two steps of selection.
    let two = (start & 8) != 0;
    let one = (start & 4) != 0;
    let p = select(a, vec4<u32>(a.zw, b.xy), two);
    let q = select(b.xy, b.zw, two);
    let low = select(p, vec4<u32>(p.yzw, q.x), one);
    let high = vec4<u32>(low.yzw, select(q.x, q.y, one));
    // A product shifts `high` left by 32 - shift, and clears it where that is 32.
    let shift = u32(start & 3) * 8u;
    let factor = select(1u << ((32u - shift) & 31u), 0u, shift == 0u);
    return (low >> vec4<u32>(shift)) + high * factor;
}

// The bytes of `before` up to byte `middle`, and of `after` from there on.
fn join(before: vec4<u32>, after: vec4<u32>, middle: u32) -> vec4<u32> {
    let bits = vec4<i32>(i32(middle) * 8) - vec4<i32>(0, 32, 64, 96);
    let n = vec4<u32>(clamp(bits, vec4<i32>(0), vec4<i32>(32)));
    return vec4<u32>(
        insertBits(after.x, before.x, 0u, n.x),
        insertBits(after.y, before.y, 0u, n.y),
        insertBits(after.z, before.z, 0u, n.z),
        insertBits(after.w, before.w, 0u, n.w),
    );
}
