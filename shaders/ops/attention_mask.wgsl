// Attention with a mask, of any type and any strides: 0 f32, 1 f16, 2 bf16, which are
// added; 3 bool, true where a key takes part.
override MASK_TYPE: u32 = 0u;

@group(0) @binding(4) var<storage, read> mask: array<u32>;

fn mask_start(z: Matrix, row: u32) -> u32 {
    let head = z.head * shared_by() + row / queries();
    return params.row[5].x + z.outer * params.row[5].y + head * params.row[5].z
        + (row % queries()) * params.row[5].w;
}

fn mask_at(start: u32, key: u32) -> f32 {
    let i = start + key * params.row[6].x;
    if (MASK_TYPE == 0u) {
        return bitcast<f32>(mask[i]);
    }
    if (MASK_TYPE == 3u) {
        let byte = (mask[i >> 2u] >> (8u * (i & 3u))) & 0xffu;
        // 0 or -inf, which WGSL has no literal for.
        return bitcast<f32>(select(0u, 0xff800000u, byte == 0u));
    }
    let both = widen(MASK_TYPE, mask[i >> 1u]);
    return select(both.x, both.y, (i & 1u) == 1u);
}
