// Gathers elements of 1 or 2 bytes into one contiguous range. With walk.wgsl; one
// invocation owns a word of the destination and fetches its elements one by one.
//
// row[0]  the destination's first word, source offset, elements, elements of the
//            first word that lie before the range
// Offsets and strides of the source in elements; those of the destination are not used.

override UNIT: u32 = 1u;

@group(0) @binding(0) var<storage, read_write> dst: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let per_word = 4u / UNIT;
    let bits = 8u * UNIT;
    let ones = (1u << bits) - 1u;
    let total = params.row[0].z;
    let lead = params.row[0].w;
    let words = (lead + total + per_word - 1u) / per_word;
    let first_word = group_number(group) * (LANES * ITEMS);
    if (first_word >= words) {
        return;
    }
    let base = max(first_word * per_word, lead) - lead;
    let begin = index_of(base);
    for (var k = 0u; k < ITEMS; k += 1u) {
        let word = first_word + k * LANES + lane;
        if (word >= words) {
            break;
        }
        var value = 0u;
        var mask = 0u;
        for (var e = 0u; e < per_word; e += 1u) {
            // Before the range this wraps around and is too large as well.
            let element = word * per_word + e - lead;
            if (element < total) {
                let at = place(begin, element - base).src;
                let found = (src[at / per_word] >> ((at % per_word) * bits)) & ones;
                value |= found << (e * bits);
                mask |= ones << (e * bits);
            }
        }
        let to = params.row[0].x + word;
        if (mask != 0xffffffffu) {
            value |= dst[to] & ~mask;
        }
        dst[to] = value;
    }
}
