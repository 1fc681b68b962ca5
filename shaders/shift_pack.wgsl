// Gathers runs of 16 bytes or more, at any byte, into one contiguous range. With
// walk.wgsl and shift.wgsl; one invocation owns 16 aligned bytes of the destination,
// which hold the bytes of one run, or the end of one and the start of the next.
//
// row[0]  the destination's first group of 16 bytes, source offset, bytes, bytes of
//            the first group that lie before the range
// Items are bytes; dimension 0 is the run.

@group(0) @binding(0) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> src: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let total = params.row[0].z;
    let lead = params.row[0].w;
    let run = params.row[1].x;
    let quads = (lead + total + 15u) / 16u;
    let first = group_number(group) * LANES;
    let quad = first + lane;
    if (quad >= quads) {
        return;
    }
    let base = max(first * 16u, lead) - lead;
    let begin = index_of(base);

    // Bytes of this group before the range; only the first group has any.
    let head = select(0u, lead, quad == 0u);
    let byte = quad * 16u + head - lead;
    let at = place(begin, byte - base);
    let middle = head + min(min(16u - head, run - at.inner), total - byte);
    var value = source_bytes(i32(at.src) - i32(head));
    var tail = middle;
    if (middle < 16u && byte + middle - head < total) {
        let next = place(begin, byte + middle - head - base);
        tail = middle + min(16u - middle, total - (byte + middle - head));
        let mask = bytes_between(0u, middle);
        value = (value & mask) | (source_bytes(i32(next.src) - i32(middle)) & ~mask);
    }
    let to = params.row[0].x + quad;
    if (head == 0u && tail == 16u) {
        dst[to] = value;
        return;
    }
    // Word by word: the words outside the range are not written at all.
    let mask = bytes_between(head, tail);
    value &= mask;
    if (mask.x != 0u) { dst[to].x = (dst[to].x & ~mask.x) | value.x; }
    if (mask.y != 0u) { dst[to].y = (dst[to].y & ~mask.y) | value.y; }
    if (mask.z != 0u) { dst[to].z = (dst[to].z & ~mask.z) | value.z; }
    if (mask.w != 0u) { dst[to].w = (dst[to].w & ~mask.w) | value.w; }
}
