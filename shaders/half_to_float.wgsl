// Converts f16 or bf16 to f32: as float_to_half.wgsl, the other way.

override BFLOAT: u32 = 0u;

@group(0) @binding(0) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> src: array<vec2<u32>>;

fn widen(half: u32) -> u32 {
    if (BFLOAT == 1u) {
        return bfloat_to_float(half);
    }
    return half_to_float(half);
}

fn convert(four: vec2<u32>) -> vec4<u32> {
    return vec4<u32>(
        widen(four.x & 0xffffu),
        widen(four.x >> 16u),
        widen(four.y & 0xffffu),
        widen(four.y >> 16u),
    );
}
