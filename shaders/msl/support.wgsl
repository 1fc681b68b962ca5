// What the lowering of Metal kernels calls for besides mathematics: comparisons, conversions,
// rounding to half and bfloat, integer division. Floats are tested by their bits, since a compiler
// may assume that NaN and infinity do not occur.

fn msl_isnormal(x: f32) -> bool {
    let bits = math_magnitude(x);
    return bits >= 0x00800000u && bits < 0x7f800000u;
}

fn msl_truth(x: f32) -> bool {
    return math_magnitude(x) != 0u;
}

// Integers in the order of the floats, both zeros being 0. The comparisons below join their tests with
// `&`: `&&` would be branches.
fn msl_key(x: f32) -> i32 {
    let magnitude = i32(math_magnitude(x));
    return select(magnitude, -magnitude, math_is_negative(x));
}

fn msl_lt(a: f32, b: f32) -> bool {
    return (msl_key(a) < msl_key(b)) & !math_is_nan(a) & !math_is_nan(b);
}

fn msl_le(a: f32, b: f32) -> bool {
    return (msl_key(a) <= msl_key(b)) & !math_is_nan(a) & !math_is_nan(b);
}

fn msl_eq(a: f32, b: f32) -> bool {
    return (msl_key(a) == msl_key(b)) & !math_is_nan(a) & !math_is_nan(b);
}

// Truncating and saturating, NaN to 0.

fn msl_f32_to_i32(x: f32) -> i32 {
    let magnitude = math_magnitude(x);
    if magnitude > 0x7f800000u {
        return 0i;
    }
    // 2^31 and beyond.
    if magnitude >= 0x4f000000u {
        return select(0x7fffffffi, i32(-2147483648), math_is_negative(x));
    }
    return i32(x);
}

fn msl_f32_to_u32(x: f32) -> u32 {
    let magnitude = math_magnitude(x);
    if magnitude > 0x7f800000u || math_is_negative(x) {
        return 0u;
    }
    if magnitude >= 0x4f800000u {
        return 0xffffffffu;
    }
    return u32(x);
}

// The magnitude below 2^64, from the bits: no conversion of the device is trusted with it.
fn msl_magnitude_u64(magnitude: u32) -> u64 {
    if magnitude < 0x3f800000u {
        return 0lu;
    }
    let exponent = magnitude >> 23u;
    let mantissa = u64((magnitude & 0x7fffffu) | 0x800000u);
    if exponent >= 150u {
        return mantissa << (exponent - 150u);
    }
    return mantissa >> (150u - exponent);
}

fn msl_f32_to_i64(x: f32) -> i64 {
    let magnitude = math_magnitude(x);
    if magnitude > 0x7f800000u {
        return 0li;
    }
    if magnitude >= 0x5f000000u {
        let top = select(0x7fffffffffffffffli, i64(-9223372036854775807li) - 1li, math_is_negative(x));
        return top;
    }
    let value = i64(msl_magnitude_u64(magnitude));
    return select(value, -value, math_is_negative(x));
}

fn msl_f32_to_u64(x: f32) -> u64 {
    let magnitude = math_magnitude(x);
    if magnitude > 0x7f800000u || math_is_negative(x) {
        return 0lu;
    }
    if magnitude >= 0x5f800000u {
        return 0xfffffffffffffffflu;
    }
    return msl_magnitude_u64(magnitude);
}

// half: IEEE binary16, to nearest even.

fn msl_half_encode(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return sign | 0x7e00u | ((magnitude >> 13u) & 0x1ffu);
    }
    // 65520 and above is nearer to 2^16 than to 65504.
    if magnitude >= 0x477ff000u {
        return sign | 0x7c00u;
    }
    if magnitude >= 0x38800000u {
        let rounded = magnitude + 0xfffu + ((magnitude >> 13u) & 1u);
        return sign | ((rounded - 0x38000000u) >> 13u);
    }
    // 2^-25 is halfway between 0 and the least subnormal: even is 0.
    if magnitude <= 0x33000000u {
        return sign;
    }
    let shift = 126u - (magnitude >> 23u);
    let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    let kept = mantissa >> shift;
    let rest = mantissa & ((1u << shift) - 1u);
    let halfway = 1u << (shift - 1u);
    let up = (rest > halfway) | ((rest == halfway) & ((kept & 1u) == 1u));
    return sign | (kept + select(0u, 1u, up));
}

fn msl_half_decode(half: u32) -> f32 {
    let sign = (half & 0x8000u) << 16u;
    let exponent = (half >> 10u) & 0x1fu;
    let mantissa = half & 0x3ffu;
    if exponent == 0x1fu {
        return bitcast<f32>(sign | 0x7f800000u | (mantissa << 13u));
    }
    if exponent == 0u {
        // mantissa 2^-24, a normal f32.
        return bitcast<f32>(sign | bitcast<u32>(f32(mantissa) * 5.9604644775390625e-8));
    }
    return bitcast<f32>(sign | ((exponent + 112u) << 23u) | (mantissa << 13u));
}

fn msl_half_round(x: f32) -> f32 {
    return msl_half_decode(msl_half_encode(x));
}

// bfloat: the upper half of an f32, to nearest even.

fn msl_bfloat_encode(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn msl_bfloat_decode(half: u32) -> f32 {
    return bitcast<f32>(half << 16u);
}

fn msl_bfloat_round(x: f32) -> f32 {
    return msl_bfloat_decode(msl_bfloat_encode(x));
}

// Division: by zero it leaves the dividend and remainder 0; the least integer by -1 wraps.

fn msl_div_i32(a: i32, b: i32) -> i32 {
    if b == 0i {
        return a;
    }
    if b == -1i {
        return bitcast<i32>(0u - bitcast<u32>(a));
    }
    return a / b;
}

fn msl_rem_i32(a: i32, b: i32) -> i32 {
    if b == 0i || b == -1i {
        return 0i;
    }
    return a % b;
}

fn msl_div_u32(a: u32, b: u32) -> u32 {
    if b == 0u {
        return a;
    }
    return a / b;
}

fn msl_rem_u32(a: u32, b: u32) -> u32 {
    if b == 0u {
        return 0u;
    }
    return a % b;
}

fn msl_div_i64(a: i64, b: i64) -> i64 {
    if b == 0li {
        return a;
    }
    if b == -1li {
        return bitcast<i64>(0lu - bitcast<u64>(a));
    }
    return a / b;
}

fn msl_rem_i64(a: i64, b: i64) -> i64 {
    if b == 0li || b == -1li {
        return 0li;
    }
    return a % b;
}

fn msl_div_u64(a: u64, b: u64) -> u64 {
    if b == 0lu {
        return a;
    }
    return a / b;
}

fn msl_rem_u64(a: u64, b: u64) -> u64 {
    if b == 0lu {
        return 0lu;
    }
    return a % b;
}

// c10::metal::floor_divide and remainder: the quotient towards minus infinity, the remainder with
// the divisor's sign.

fn msl_floor_div_i32(a: i32, b: i32) -> i32 {
    let quotient = msl_div_i32(a, b);
    return select(quotient, quotient - 1i, ((a ^ b) < 0i) & (msl_rem_i32(a, b) != 0i));
}

fn msl_floor_rem_i32(a: i32, b: i32) -> i32 {
    let rest = msl_rem_i32(a, b);
    return select(rest, rest + b, (rest != 0i) & ((a ^ b) <= 0i));
}

fn msl_floor_div_i64(a: i64, b: i64) -> i64 {
    let quotient = msl_div_i64(a, b);
    return select(quotient, quotient - 1li, ((a ^ b) < 0li) & (msl_rem_i64(a, b) != 0li));
}

fn msl_floor_rem_i64(a: i64, b: i64) -> i64 {
    let rest = msl_rem_i64(a, b);
    return select(rest, rest + b, (rest != 0li) & ((a ^ b) <= 0li));
}

// Powers of integers by squaring, wrapping; a negative exponent leaves 1, -1 or 0.

fn msl_pow_u32(a: u32, b: u32) -> u32 {
    var result = 1u;
    var base = a;
    var exponent = b;
    while exponent != 0u {
        result *= select(1u, base, (exponent & 1u) == 1u);
        exponent >>= 1u;
        base *= base;
    }
    return result;
}

fn msl_pow_i32(a: i32, b: i32) -> i32 {
    if b < 0i {
        if a == 1i {
            return 1i;
        }
        return select(0i, select(1i, -1i, (b & 1i) == 1i), a == -1i);
    }
    return bitcast<i32>(msl_pow_u32(bitcast<u32>(a), bitcast<u32>(b)));
}

fn msl_pow_u64(a: u64, b: u64) -> u64 {
    var result = 1lu;
    var base = a;
    var exponent = b;
    while exponent != 0lu {
        result *= select(1lu, base, (exponent & 1lu) == 1lu);
        exponent >>= 1u;
        base *= base;
    }
    return result;
}

fn msl_pow_i64(a: i64, b: i64) -> i64 {
    if b < 0li {
        if a == 1li {
            return 1li;
        }
        return select(0li, select(1li, -1li, (b & 1li) == 1li), a == -1li);
    }
    return bitcast<i64>(msl_pow_u64(bitcast<u64>(a), bitcast<u64>(b)));
}

// metal::max and min: of a NaN and a number, the number.

// c10::metal::max and min: NaN if either is.
