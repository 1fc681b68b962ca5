// Floats of 16 and 32 bits as bit patterns: no adapter feature is needed, and
// subnormals and NaNs do not depend on the adapter. As src/copy/convert/number.rs.

fn half_to_float(half: u32) -> u32 {
    let sign = (half & 0x8000u) << 16u;
    let rest = half & 0x7fffu;
    var bits = (rest << 13u) + 0x38000000u;
    if (rest >= 0x7c00u) {
        bits = (rest << 13u) | 0x7f800000u;
    } else if (rest < 0x0400u) {
        // Steps of 2^-24: the highest one gives the exponent.
        let top = firstLeadingBit(rest | 1u);
        bits = select(((top + 103u) << 23u) | ((rest << (23u - top)) & 0x7fffffu), 0u, rest == 0u);
    }
    return sign | bits;
}

fn float_to_half(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let rest = bits & 0x7fffffffu;
    let rebiased = rest - 0x38000000u;
    var half = (rebiased + 0x0fffu + ((rebiased >> 13u) & 1u)) >> 13u;
    if (rest > 0x7f800000u) {
        half = 0x7e00u | ((rest >> 13u) & 0x01ffu);
    } else if (rest >= 0x47800000u) {
        half = 0x7c00u;
    } else if (rest <= 0x33000000u) {
        // Half of the smallest step, and less.
        half = 0u;
    } else if (rest < 0x38800000u) {
        let shift = 126u - (rest >> 23u);
        let significand = (rest & 0x7fffffu) | 0x800000u;
        half = (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;
    }
    return sign | half;
}

fn bfloat_to_float(half: u32) -> u32 {
    return half << 16u;
}

fn float_to_bfloat(bits: u32) -> u32 {
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return select(rounded, (bits >> 16u) | 0x0040u, (bits & 0x7fffffffu) > 0x7f800000u);
}
