// Gathers runs of 16 bytes or more, at any byte, into one contiguous range. With
// walk.wgsl and shift.wgsl; one invocation owns 16 aligned bytes of the
// destination, which hold the bytes of one run, or the end of one and the start of the
// next.
//
// row[0]  the destination's first group of 16 bytes, source offset, bytes, bytes of
//            the first group that lie before the range
// Items are bytes; dimension 0 is the run.

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
    let left = total - byte;
    let middle = head + min(min(16u - head, run - at.inner), left);
    let tail = head + min(16u - head, left);
    // Where one run is all, the same bytes again: the loads of both are under way at once.
    let next = place(begin, byte - base + select(middle - head, 0u, middle == tail));
    let offset = select(middle, head, middle == tail);
    var value = join(
        source_bytes(i32(at.src) - i32(head)),
        source_bytes(i32(next.src) - i32(offset)),
        middle,
    );
    let to = params.row[0].x + quad;
    if (head == 0u && tail == 16u) {
        dst[to] = value;
        return;
    }
    // Word by word: the words outside the range are not written at all.
    let old = dst[to];
    value = join(join(old, value, head), old, tail);
    if (head < 4u) { dst[to].x = value.x; }
    if (head < 8u && tail > 4u) { dst[to].y = value.y; }
    if (head < 12u && tail > 8u) { dst[to].z = value.z; }
    if (tail > 12u) { dst[to].w = value.w; }
}
