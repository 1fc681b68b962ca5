// The entry point of kernels that load one item, `convert` it and store it, at places
// of their own: ITEMS, 1 or 4, an invocation.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let total = params.row[0].z;
    let base = group_number(group) * (LANES * ITEMS);
    if (base >= total) {
        return;
    }
    let begin = index_of(base);
    let last = total - 1u - base;
    if (ITEMS == 1u) {
        let at = place(begin, min(lane, last));
        if (lane <= last) {
            dst[at.dst] = convert(src[at.src]);
        }
        return;
    }
    // All loads before the first store: source and destination may be one buffer as
    // far as the compiler knows, so it does not reorder them.
    let a = place(begin, min(lane, last));
    let b = place(begin, min(lane + LANES, last));
    let c = place(begin, min(lane + 2u * LANES, last));
    let d = place(begin, min(lane + 3u * LANES, last));
    let at_a = src[a.src];
    let at_b = src[b.src];
    let at_c = src[c.src];
    let at_d = src[d.src];
    if (lane <= last) { dst[a.dst] = convert(at_a); }
    if (lane + LANES <= last) { dst[b.dst] = convert(at_b); }
    if (lane + 2u * LANES <= last) { dst[c.dst] = convert(at_c); }
    if (lane + 3u * LANES <= last) { dst[d.dst] = convert(at_d); }
}
