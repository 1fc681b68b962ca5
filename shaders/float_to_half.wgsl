// Converts f32 to f16 or bf16, four elements an item, where both sides are contiguous
// along the innermost dimension and aligned to four elements. With walk.wgsl and
// half.wgsl; offsets and strides in items.

override BFLOAT: u32 = 0u;

@group(0) @binding(0) var<storage, read_write> dst: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> src: array<vec4<u32>>;

fn narrow(bits: u32) -> u32 {
    if (BFLOAT == 1u) {
        return float_to_bfloat(bits);
    }
    return float_to_half(bits);
}

fn convert(four: vec4<u32>) -> vec2<u32> {
    return vec2<u32>(
        narrow(four.x) | (narrow(four.y) << 16u),
        narrow(four.z) | (narrow(four.w) << 16u),
    );
}
