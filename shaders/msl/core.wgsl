// Bits, integers, rounding, remainders and roots: what the other files of this folder stand on.
//
// NaN and infinity are recognised and produced by their bits: a driver may assume that arithmetic meets
// neither. What must be exact is done with integers, since a driver may contract, reassociate or flush.

struct MathSplit {
    n: i32,
    f: f32,
}

// A function, since a constant expression may not be infinite or NaN.
fn math_from_bits(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

fn math_nan() -> f32 {
    return math_from_bits(0x7fc00000u);
}

fn math_inf() -> f32 {
    return math_from_bits(0x7f800000u);
}

fn math_magnitude(x: f32) -> u32 {
    return bitcast<u32>(x) & 0x7fffffffu;
}

fn math_is_nan(x: f32) -> bool {
    return math_magnitude(x) > 0x7f800000u;
}

fn math_is_inf(x: f32) -> bool {
    return math_magnitude(x) == 0x7f800000u;
}

fn math_is_negative(x: f32) -> bool {
    return (bitcast<u32>(x) >> 31u) != 0u;
}

fn math_is_zero(x: f32) -> bool {
    return math_magnitude(x) == 0u;
}

fn math_abs(x: f32) -> f32 {
    return bitcast<f32>(math_magnitude(x));
}

fn math_negate(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}

fn math_with_sign(x: f32, s: f32) -> f32 {
    return bitcast<f32>(math_magnitude(x) | (bitcast<u32>(s) & 0x80000000u));
}

// The leading 12 bits of a significand: squares and products of two such values are exact.
fn math_head(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// The 64-bit product as (low, high).
fn math_mul_wide(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let p00 = a0 * b0;
    let p01 = a0 * b1;
    let p10 = a1 * b0;
    let middle = (p00 >> 16u) + (p01 & 0xffffu) + (p10 & 0xffffu);
    let high = a1 * b1 + (p01 >> 16u) + (p10 >> 16u) + (middle >> 16u);
    return vec2<u32>((p00 & 0xffffu) | (middle << 16u), high);
}

fn math_mul_high(a: u32, b: u32) -> u32 {
    return math_mul_wide(a, b).y;
}

// floor(a b / 2^32) of signed a and b.
fn math_mul_high_signed(a: i32, b: i32) -> i32 {
    let ua = bitcast<u32>(a);
    let ub = bitcast<u32>(b);
    let correction = select(0u, ub, a < 0) + select(0u, ua, b < 0);
    return bitcast<i32>(math_mul_high(ua, ub) - correction);
}

// |x| = m 2^(e - 31) with bit 31 of m set, of a finite x that is not zero (denormals too): (m, e).
fn math_normalize(x: f32) -> vec2<i32> {
    let b = math_magnitude(x);
    if (b >= 0x00800000u) {
        return vec2<i32>(bitcast<i32>((b << 8u) | 0x80000000u), i32(b >> 23u) - 127);
    }
    let shift = countLeadingZeros(b);
    return vec2<i32>(bitcast<i32>(b << shift), -118 - i32(shift));
}

// f 2^n for a normal f > 0, rounded to nearest even once, denormal results included.
fn math_scale(f: f32, n: i32) -> f32 {
    let b = bitcast<u32>(f);
    let e = i32(b >> 23u) + n;
    if (e >= 255) {
        return math_inf();
    }
    if (e > 0) {
        return bitcast<f32>(bitcast<u32>(bitcast<i32>(b) + n * 8388608));
    }
    if (e < -24) {
        return 0.0;
    }
    let m = (b & 0x007fffffu) | 0x00800000u;
    let shift = u32(1 - e);
    let quotient = m >> shift;
    let rest = m & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let up = rest > half || (rest == half && (quotient & 1u) == 1u);
    return bitcast<f32>(quotient + select(0u, 1u, up));
}

fn metal_isnan(x: f32) -> bool {
    return math_is_nan(x);
}

fn metal_isinf(x: f32) -> bool {
    return math_is_inf(x);
}

fn metal_isfinite(x: f32) -> bool {
    return math_magnitude(x) < 0x7f800000u;
}

fn metal_signbit(x: f32) -> bool {
    return math_is_negative(x);
}

fn metal_abs(x: f32) -> f32 {
    return math_abs(x);
}

fn metal_fabs(x: f32) -> f32 {
    return math_abs(x);
}

fn metal_copysign(x: f32, y: f32) -> f32 {
    return math_with_sign(x, y);
}

// Metal's sign: NaN gives 0, zero keeps its sign.
fn metal_sign(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return 0.0;
    }
    if (math_is_zero(x)) {
        return x;
    }
    return math_with_sign(1.0, x);
}

fn metal_trunc(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    let e = i32((b >> 23u) & 0xffu) - 127;
    if (e >= 23) {
        return x;
    }
    if (e < 0) {
        return bitcast<f32>(b & 0x80000000u);
    }
    return bitcast<f32>(b & ~(0x007fffffu >> u32(e)));
}

fn metal_floor(x: f32) -> f32 {
    let t = metal_trunc(x);
    if (math_is_negative(x) && bitcast<u32>(t) != bitcast<u32>(x)) {
        return t - 1.0;
    }
    return t;
}

fn metal_ceil(x: f32) -> f32 {
    let t = metal_trunc(x);
    if (!math_is_negative(x) && bitcast<u32>(t) != bitcast<u32>(x)) {
        return t + 1.0;
    }
    return t;
}

// To nearest, ties to even.
fn metal_rint(x: f32) -> f32 {
    let b = math_magnitude(x);
    let e = i32(b >> 23u) - 127;
    if (e >= 23) {
        return x;
    }
    if (e < -1) {
        return math_with_sign(0.0, x);
    }
    if (e == -1) {
        return math_with_sign(select(0.0, 1.0, b > 0x3f000000u), x);
    }
    let unit = 0x00800000u >> u32(e);
    let rest = b & (unit - 1u);
    let whole = b - rest;
    let half = unit >> 1u;
    // The unit bit of the significand is the parity; at e = 0 it is the implied one.
    let odd = e == 0 || (whole & unit) != 0u;
    let up = rest > half || (rest == half && odd);
    return math_with_sign(bitcast<f32>(whole + select(0u, unit, up)), x);
}

// To nearest, ties away from zero.
fn metal_round(x: f32) -> f32 {
    let b = math_magnitude(x);
    let e = i32(b >> 23u) - 127;
    if (e >= 23) {
        return x;
    }
    if (e < -1) {
        return math_with_sign(0.0, x);
    }
    if (e == -1) {
        return math_with_sign(1.0, x);
    }
    let unit = 0x00800000u >> u32(e);
    return math_with_sign(bitcast<f32>((b + (unit >> 1u)) & ~(unit - 1u)), x);
}

// x - floor(x), below 1.
fn metal_fract(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    return min(x - metal_floor(x), 0.99999994);
}

// Exact: long division, eight bits of quotient a step.
fn metal_fmod(x: f32, y: f32) -> f32 {
    let bx = math_magnitude(x);
    let by = math_magnitude(y);
    if (math_is_nan(x) || math_is_nan(y)) {
        return select(y, x, math_is_nan(x));
    }
    if (bx == 0x7f800000u || by == 0u) {
        return math_nan();
    }
    if (bx < by) {
        return x;
    }
    // Significands as integers, x = mx 2^ex and y = my 2^ey in units of the smallest denormal.
    var ex = max(i32(bx >> 23u), 1);
    let ey = max(i32(by >> 23u), 1);
    var m = select(bx & 0x007fffffu, (bx & 0x007fffffu) | 0x00800000u, bx >= 0x00800000u);
    let my = select(by & 0x007fffffu, (by & 0x007fffffu) | 0x00800000u, by >= 0x00800000u);
    m = m % my;
    loop {
        if (ex <= ey || m == 0u) {
            break;
        }
        let step = u32(min(ex - ey, 8));
        m = (m << step) % my;
        ex -= i32(step);
    }
    if (m == 0u) {
        return math_with_sign(0.0, x);
    }
    let shift = min(i32(countLeadingZeros(m)) - 8, ey - 1);
    m = m << u32(shift);
    var bits = m;
    if (m >= 0x00800000u) {
        bits = (m & 0x007fffffu) | (u32(ey - shift) << 23u);
    }
    return math_with_sign(bitcast<f32>(bits), x);
}

// q 2^e for q >= 2^29 whose last bit stands for all below it, rounded to nearest even, denormals included.
fn math_assemble(q: u32, e: i32) -> f32 {
    let zeros = countLeadingZeros(q);
    let m = q << zeros;
    let exponent = e + 31 - i32(zeros);
    let shift = 8 + max(0, -126 - exponent);
    if (shift >= 32) {
        return bitcast<f32>(select(0u, 1u, shift == 32 && m > 0x80000000u));
    }
    let whole = m >> u32(shift);
    let rest = m & ((1u << u32(shift)) - 1u);
    let half = 1u << u32(shift - 1);
    let rounded = whole + select(0u, 1u, rest > half || (rest == half && (whole & 1u) == 1u));
    if (exponent < -126) {
        return bitcast<f32>(rounded);
    }
    if (exponent > 127) {
        return math_inf();
    }
    // The implied bit adds one to the exponent, and so does a carry.
    return bitcast<f32>(rounded + (u32(exponent + 126) << 23u));
}

// Correctly rounded, by long division; WGSL's own operator may be off by 2.5 ulp and fails for large divisors.
fn metal_precise_divide(x: f32, y: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(y)) {
        return y;
    }
    let sign = bitcast<f32>(bitcast<u32>(x) ^ bitcast<u32>(y));
    if (math_is_inf(x) || math_is_zero(y)) {
        if (math_is_inf(y) || math_is_zero(x)) {
            return math_nan();
        }
        return math_with_sign(math_inf(), sign);
    }
    if (math_is_zero(x) || math_is_inf(y)) {
        return math_with_sign(0.0, sign);
    }
    let a = math_normalize(x);
    let b = math_normalize(y);
    let my = bitcast<u32>(b.x) >> 8u;
    var rest = bitcast<u32>(a.x) >> 8u;
    var q = rest / my;
    rest = rest % my;
    for (var i = 0; i < 3; i++) {
        rest = rest << 8u;
        q = (q << 8u) | (rest / my);
        rest = rest % my;
    }
    rest = rest << 6u;
    q = (q << 6u) | (rest / my);
    q = q | select(0u, 1u, rest % my != 0u);
    return math_with_sign(math_assemble(q, a.y - b.y - 30), sign);
}

// Correctly rounded: the driver's root is a first guess, corrected against the integer N = m 2^23.
fn metal_precise_sqrt(x: f32) -> f32 {
    if (math_is_nan(x) || math_is_zero(x)) {
        return x;
    }
    if (math_is_negative(x)) {
        return math_nan();
    }
    if (math_is_inf(x)) {
        return x;
    }
    let parts = math_normalize(x);
    let odd = u32(parts.y) & 1u;
    let m = (bitcast<u32>(parts.x) >> 8u) << odd;
    var s = u32(sqrt(f32(m) * 1.1920928955078125e-7) * 8388608.0);
    // N - s^2 is small against 2^31, so its low 32 bits are all of it.
    var rest = bitcast<i32>((m << 23u) - s * s);
    for (var i = 0; i < 16 && rest < 0; i++) {
        s -= 1u;
        rest += i32(2u * s + 1u);
    }
    for (var i = 0; i < 16 && rest > i32(2u * s); i++) {
        rest -= i32(2u * s + 1u);
        s += 1u;
    }
    s += select(0u, 1u, rest > i32(s));
    // s may have become 2^24: the carry into the exponent is the right result.
    return bitcast<f32>(s + u32((parts.y - i32(odd)) / 2 + 126) * 0x00800000u);
}

// One Newton step in fixed point from the driver's estimate: an error below 0.51 ulp.
fn metal_precise_rsqrt(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_zero(x)) {
        return math_with_sign(math_inf(), x);
    }
    if (math_is_negative(x)) {
        return math_nan();
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    let parts = math_normalize(x);
    let odd = u32(parts.y) & 1u;
    // m in [1, 4) with 30 fraction bits, y = 1 / sqrt(m) with 24.
    let m = (bitcast<u32>(parts.x) >> 1u) << odd;
    let guess = inverseSqrt(f32(m) * 9.31322574615478515625e-10);
    let y = min(u32(guess * 16777216.0), 0x00ffffffu);
    let square = math_mul_wide(y, y);
    let product = math_mul_wide((square.x >> 16u) | (square.y << 16u), m);
    let residual = bitcast<i32>(0u - ((product.y << 2u) | (product.x >> 30u)));
    let delta = i32(f32(y) * f32(residual) * 1.490116119384765625e-8);
    let root = f32((y << 7u) + bitcast<u32>(delta));
    return math_scale(root, -31 - (parts.y - i32(odd)) / 2);
}

fn metal_sqrt(x: f32) -> f32 {
    return metal_precise_sqrt(x);
}

fn metal_rsqrt(x: f32) -> f32 {
    return metal_precise_rsqrt(x);
}

// Of two numbers, by their bits: a comparison may take denormals for zero.
fn math_less(x: f32, y: f32) -> bool {
    let a = bitcast<i32>(math_magnitude(x));
    let b = bitcast<i32>(math_magnitude(y));
    return select(a, -a, math_is_negative(x)) < select(b, -b, math_is_negative(y));
}

// Metal's max and min prefer a number to a NaN; PyTorch's give the NaN.
fn metal_max(x: f32, y: f32) -> f32 {
    if (math_is_nan(x)) {
        return y;
    }
    if (math_is_nan(y)) {
        return x;
    }
    return select(x, y, math_less(x, y));
}

fn metal_min(x: f32, y: f32) -> f32 {
    if (math_is_nan(x)) {
        return y;
    }
    if (math_is_nan(y)) {
        return x;
    }
    return select(x, y, math_less(y, x));
}

fn c10_metal_max(x: f32, y: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(y)) {
        return y;
    }
    return select(x, y, math_less(x, y));
}

fn c10_metal_min(x: f32, y: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(y)) {
        return y;
    }
    return select(x, y, math_less(y, x));
}
