// Moves runs of any number of bytes, at any byte, to a strided layout in which no two
// runs share 16 aligned bytes. With walk.wgsl and shift.wgsl; an item is a group of these,
// as far as it is one run's.
//
// row[0]  destination offset, source offset, items, bytes of a run
// Offsets and strides in bytes; dimension 0 counts the groups that a run may touch.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let total = params.row[0].z;
    let run = params.row[0].w;
    let base = group_number(group) * LANES;
    if (base + lane >= total) {
        return;
    }
    let at = place(index_of(base), lane);
    let start = at.dst - 16u * at.inner;
    let first = at.dst / 16u * 16u;
    // A run that begins late in a group touches one group more than others.
    if (first >= start + run) {
        return;
    }
    let skip = select(0u, start % 16u, at.inner == 0u);
    let end = min(16u, start + run - first);
    let whole = skip == 0u && end == 16u;
    // Before the source's, so that both are under way at once.
    var old = vec4<u32>();
    if (!whole) {
        old = dst[first / 16u];
    }
    // This group's first byte lies as far from the run's start on both sides.
    let value = source_bytes(i32(at.src) - i32(at.dst % 16u));
    dst[first / 16u] = select(join(join(old, value, skip), old, end), value, whole);
}
