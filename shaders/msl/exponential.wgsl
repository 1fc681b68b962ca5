// Exponentials, logarithms, powers and hyperbolic functions. Uses core.wgsl.
//
// Exponents are reduced in fixed point: x log2(b) is an exact 32 by 32 bit product, cut into an integer n
// and a fraction f in [-1/2, 1/2]. Polynomials are minimax fits, rounded coefficient by coefficient.

// t = p 2^(s - 62) of a 64-bit p (low, high) with -24 <= s <= 8, as n + f.
fn math_split_fixed(p: vec2<u32>, s: i32) -> MathSplit {
    let shift = u32(30 - s);
    var n = 0u;
    if (s >= -1) {
        n = p.y >> shift;
    }
    var fraction: u32;
    if (shift >= 32u) {
        fraction = p.y >> (shift - 32u);
    } else {
        fraction = (p.y << (32u - shift)) | (p.x >> shift);
    }
    return MathSplit(i32(n + (fraction >> 31u)), f32(bitcast<i32>(fraction)) * 2.3283064365386963e-10);
}

// x c of a finite |x| < 128, as n + f, for c = constant 2^(k - 31) in [1, 4).
fn math_split_product(x: f32, constant: u32, k: i32) -> MathSplit {
    let parts = math_normalize(x);
    if (parts.y < -3) {
        return MathSplit(0, x * (f32(constant) * 4.656612873077392578125e-10 * f32(1 + k)));
    }
    let split = math_split_fixed(math_mul_wide(bitcast<u32>(parts.x), constant), parts.y + k);
    if (math_is_negative(x)) {
        return MathSplit(-split.n, -split.f);
    }
    return split;
}

// 2^f - 1 for |f| <= 1/2, relative error of the polynomial 2^-26.6.
fn math_exp2m1(f: f32) -> f32 {
    return f * (0.6931472 + f * (0.2402265 + f * (0.05550398 + f * (9.618107e-3 + f * (1.3346551e-3
        + f * (1.5440295e-4 + f * 1.2000349e-5))))));
}

// 2^(x c + k) with c as above.
fn math_exp_product(x: f32, constant: u32, c_exponent: i32, k: i32) -> f32 {
    if (math_is_zero(x)) {
        return math_scale(1.0, k);
    }
    let split = math_split_product(x, constant, c_exponent);
    return math_scale(1.0 + math_exp2m1(split.f), split.n + k);
}

// The result of an exponential of a NaN or of an |x| that is not below what its range needs.
fn math_exp_extreme(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_negative(x)) {
        return 0.0;
    }
    return math_inf();
}

// e^x 2^k, |k| small.
fn math_exp_scaled(x: f32, k: i32) -> f32 {
    if (math_magnitude(x) >= 0x42d20000u) {
        return math_exp_extreme(x);
    }
    return math_exp_product(x, 0xb8aa3b29u, 0, k);
}

fn metal_precise_exp(x: f32) -> f32 {
    return math_exp_scaled(x, 0);
}

fn metal_precise_exp2(x: f32) -> f32 {
    if (math_magnitude(x) >= 0x43200000u) {
        return math_exp_extreme(x);
    }
    let n = metal_rint(x);
    return math_scale(1.0 + math_exp2m1(x - n), i32(n));
}

fn metal_precise_exp10(x: f32) -> f32 {
    if (math_magnitude(x) >= 0x42380000u) {
        return math_exp_extreme(x);
    }
    return math_exp_product(x, 0xd49a784cu, 1, 0);
}

fn c10_metal_expm1(x: f32) -> f32 {
    if (math_is_nan(x) || math_magnitude(x) < 0x33000000u) {
        return x;
    }
    if (math_magnitude(x) < 0x3f000000u) {
        let x3 = x * x * x;
        return x + (0.5 * x * x + x3 * (0.16666667 + x * (0.041666668 + x * (8.3331745e-3
            + x * (1.3888642e-3 + x * (1.996505e-4 + x * 2.4949133e-5))))));
    }
    if (math_magnitude(x) >= 0x42d20000u) {
        if (math_is_negative(x)) {
            return -1.0;
        }
        return math_inf();
    }
    let split = math_split_product(x, 0xb8aa3b29u, 0);
    let r = math_exp2m1(split.f);
    if (split.n > 24) {
        return math_scale(1.0 + r, split.n);
    }
    if (split.n < -25) {
        return -1.0;
    }
    let power = bitcast<f32>(u32(split.n + 127) << 23u);
    return (power - 1.0) + power * r;
}

// f - log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], so that the caller adds f last.
fn math_log_defect(f: f32) -> f32 {
    let p = 0.33333334 + f * (-0.24999975 + f * (0.19999947 + f * (-0.1666898 + f * (0.14288619
        + f * (-0.12433191 + f * (0.11001378 + f * (-0.10738768 + f * (0.107544206 + f * -0.062539436))))))));
    return f * f * (0.5 - f * p);
}

// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), of a finite x > 0; f is exact.
fn math_log_split(x: f32) -> MathSplit {
    let parts = math_normalize(x);
    let m = bitcast<u32>(parts.x) >> 8u;
    if (m >= 0x00b504f3u) {
        return MathSplit(parts.y + 1, f32(i32(m) - 16777216) * 5.9604644775390625e-8);
    }
    return MathSplit(parts.y, f32(i32(m) - 8388608) * 1.1920928955078125e-7);
}

// What is special about the argument of a logarithm: its result where .n is 1.
fn math_log_special(x: f32) -> MathSplit {
    if (math_is_nan(x)) {
        return MathSplit(1, x);
    }
    if (math_is_zero(x)) {
        return MathSplit(1, math_from_bits(0xff800000u));
    }
    if (math_is_negative(x)) {
        return MathSplit(1, math_nan());
    }
    if (math_is_inf(x)) {
        return MathSplit(1, x);
    }
    return MathSplit(0, 0.0);
}

// log(x) + k log(2) of a finite x > 0, plus a small correction.
fn math_log_core(x: f32, k: i32, correction: f32) -> f32 {
    let split = math_log_split(x);
    let n = f32(split.n + k);
    // 0.693359375 has nine bits: the product is exact.
    return n * 0.693359375 + (split.f - (math_log_defect(split.f) + (n * 2.12194440e-4 - correction)));
}

fn metal_precise_log(x: f32) -> f32 {
    let special = math_log_special(x);
    if (special.n != 0) {
        return special.f;
    }
    return math_log_core(x, 0, 0.0);
}

fn metal_precise_log2(x: f32) -> f32 {
    let special = math_log_special(x);
    if (special.n != 0) {
        return special.f;
    }
    let split = math_log_split(x);
    return f32(split.n) + (split.f - math_log_defect(split.f)) * 1.442695;
}

fn metal_precise_log10(x: f32) -> f32 {
    let special = math_log_special(x);
    if (special.n != 0) {
        return special.f;
    }
    let split = math_log_split(x);
    let n = f32(split.n);
    // log10(2) = 0.30078125 + 2.4874566e-4, the first of eight bits.
    return n * 0.30078125 + ((split.f - math_log_defect(split.f)) * 0.4342945 + n * 2.4874566e-4);
}

fn c10_metal_log1p(x: f32) -> f32 {
    if (math_is_nan(x) || math_magnitude(x) < 0x33000000u) {
        return x;
    }
    if (math_is_negative(x) && math_magnitude(x) >= 0x3f800000u) {
        if (math_magnitude(x) == 0x3f800000u) {
            return math_from_bits(0xff800000u);
        }
        return math_nan();
    }
    if (math_is_inf(x)) {
        return x;
    }
    if (x > -0.29 && x < 0.41) {
        return x - math_log_defect(x);
    }
    let u = 1.0 + x;
    // What rounding took from 1 + x.
    var lost = x - (u - 1.0);
    if (x > 1.0) {
        lost = 1.0 - (u - x);
    }
    return math_log_core(u, 0, lost / min(u, 1e30));
}

// -log2(r / 256) with 54 fraction bits (high, low) after r: r approximates 1 / m for m in [1, 1.4375)
// by sixteenths, then 2 / m.
fn math_pow_table(i: u32) -> vec3<u32> {
    var table = array<vec3<u32>, 16>(
        vec3<u32>(256u, 0x00000000u, 0x00000000u),
        vec3<u32>(234u, 0x00084bf1u, 0xc6730325u),
        vec3<u32>(221u, 0x000d9301u, 0x24bea9a3u),
        vec3<u32>(210u, 0x001249cdu, 0x2b13cd6cu),
        vec3<u32>(200u, 0x0016cb0fu, 0x6865c8eau),
        vec3<u32>(191u, 0x001b0b67u, 0xf4f46810u),
        vec3<u32>(182u, 0x001f804au, 0xe8d0cd02u),
        vec3<u32>(349u, 0xffe362fdu, 0x0935b84cu),
        vec3<u32>(334u, 0xffe77163u, 0x8d1f4ddau),
        vec3<u32>(321u, 0xffeb1bc7u, 0x7f170496u),
        vec3<u32>(309u, 0xffeea059u, 0x8944f701u),
        vec3<u32>(298u, 0xfff1f924u, 0x99135909u),
        vec3<u32>(287u, 0xfff5722au, 0x37c2d1bbu),
        vec3<u32>(278u, 0xfff86344u, 0xfba01693u),
        vec3<u32>(269u, 0xfffb6d29u, 0x207b2971u),
        vec3<u32>(256u, 0x00000000u, 0x00000000u),
    );
    return table[i];
}

fn math_negate_wide(v: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(0u - v.x, ~v.y + select(0u, 1u, v.x == 0u));
}

// |x|^y 2^k for finite x and y, neither zero: the logarithm to 2^-31, relative, as an integer.
fn math_pow_scaled(x: f32, y: f32, k: i32) -> f32 {
    let parts = math_normalize(x);
    let m = bitcast<u32>(parts.x) >> 8u;
    let i = (m >> 19u) & 15u;
    let entry = math_pow_table(i);
    var e = parts.y;
    // d = m r - 1 (or m r / 2 - 1) with 32 fraction bits, exact.
    var d = bitcast<i32>(m * entry.x);
    if (i >= 7u) {
        e += 1;
    } else {
        d = bitcast<i32>((bitcast<u32>(d) - 0x80000000u) << 1u);
    }
    // log2(1 + d) / d with 30 fraction bits.
    var g = -241147463;
    g = 310035760 + math_mul_high_signed(g, d);
    g = -387303279 + math_mul_high_signed(g, d);
    g = 516360699 + math_mul_high_signed(g, d);
    g = -774540989 + math_mul_high_signed(g, d);
    g = 1549082005 + math_mul_high_signed(g, d);
    var l = math_mul_wide(u32(abs(d)), u32(g));
    var negative = d < 0;
    var exponent = 1;
    if (e != 0 || (entry.y | entry.z) != 0u) {
        exponent = 9;
        l = vec2<u32>((l.x >> 8u) | (l.y << 24u), l.y >> 8u);
        if (negative) {
            l = math_negate_wide(l);
        }
        let low = l.x + entry.z;
        let high = l.y + entry.y + select(0u, 1u, low < l.x) + (bitcast<u32>(e) << 22u);
        l = vec2<u32>(low, high);
        negative = (high >> 31u) != 0u;
        if (negative) {
            l = math_negate_wide(l);
        }
    }
    if ((l.x | l.y) == 0u) {
        return math_scale(1.0, k);
    }
    if (l.y == 0u) {
        l = vec2<u32>(0u, l.x);
        exponent -= 32;
    }
    let shift = countLeadingZeros(l.y);
    if (shift > 0u) {
        l.y = (l.y << shift) | (l.x >> (32u - shift));
    }
    exponent -= i32(shift);
    let factor = math_normalize(y);
    let s = exponent + factor.y;
    negative = negative != math_is_negative(y);
    if (s > 8) {
        if (negative) {
            return 0.0;
        }
        return math_inf();
    }
    if (s < -26) {
        return math_scale(1.0, k);
    }
    let split = math_split_fixed(math_mul_wide(l.y, bitcast<u32>(factor.x)), s);
    if (negative) {
        return math_scale(1.0 + math_exp2m1(-split.f), k - split.n);
    }
    return math_scale(1.0 + math_exp2m1(split.f), split.n + k);
}

// 0: y is no integer; 1: odd; 2: even. y is finite.
fn math_parity(y: f32) -> u32 {
    let b = math_magnitude(y);
    let e = i32(b >> 23u) - 127;
    if (e >= 24) {
        return 2u;
    }
    if (e < 0) {
        return select(0u, 2u, b == 0u);
    }
    let m = (b & 0x007fffffu) | 0x00800000u;
    if (e == 23) {
        return 2u - (m & 1u);
    }
    if ((m << u32(9 + e)) != 0u) {
        return 0u;
    }
    return 2u - ((m >> u32(23 - e)) & 1u);
}

// The special cases are those of C99, annex F.
fn metal_precise_pow(x: f32, y: f32) -> f32 {
    let bx = math_magnitude(x);
    let by = math_magnitude(y);
    if (by == 0u || bitcast<u32>(x) == 0x3f800000u) {
        return 1.0;
    }
    if (bx > 0x7f800000u) {
        return x;
    }
    if (by > 0x7f800000u) {
        return y;
    }
    if (by == 0x7f800000u) {
        if (bx == 0x3f800000u) {
            return 1.0;
        }
        return select(0.0, math_inf(), (bx > 0x3f800000u) != math_is_negative(y));
    }
    let parity = math_parity(y);
    let flip = math_is_negative(x) && parity == 1u;
    var result: f32;
    if (bx == 0u || bx == 0x7f800000u) {
        result = select(0.0, math_inf(), (bx != 0u) != math_is_negative(y));
    } else {
        if (math_is_negative(x) && parity == 0u) {
            return math_nan();
        }
        result = math_pow_scaled(x, y, 0);
    }
    if (flip) {
        return math_negate(result);
    }
    return result;
}

fn metal_precise_sinh(x: f32) -> f32 {
    if (math_is_nan(x) || math_is_inf(x) || math_magnitude(x) < 0x39800000u) {
        return x;
    }
    let a = math_abs(x);
    if (a < 1.0) {
        let z = x * x;
        return x + x * (z * (0.16666667 + z * (8.333285e-3 + z * (1.9855688e-4 + z * (2.584741e-6
            + z * 9.519587e-8)))));
    }
    var e = math_exp_scaled(a, -1);
    if (a < 12.0) {
        e -= 0.25 / e;
    }
    return math_with_sign(e, x);
}

fn metal_precise_cosh(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let a = math_abs(x);
    let e = math_exp_scaled(a, -1);
    if (math_magnitude(x) < 0x41400000u) {
        return e + 0.25 / e;
    }
    return e;
}

fn metal_precise_tanh(x: f32) -> f32 {
    if (math_is_nan(x) || math_magnitude(x) < 0x39800000u) {
        return x;
    }
    let magnitude = math_magnitude(x);
    if (magnitude >= 0x41120000u) {
        return math_with_sign(1.0, x);
    }
    if (magnitude < 0x3f200000u) {
        let z = x * x;
        return x + x * (z * (-0.3333333 + z * (0.13333222 + z * (-0.05394846 + z * (0.021708712
            + z * (-8.194965e-3 + z * 2.1575072e-3))))));
    }
    let e = math_exp_scaled(2.0 * math_abs(x), 0);
    return math_with_sign(1.0 - 2.0 / (e + 1.0), x);
}

fn metal_precise_asinh(x: f32) -> f32 {
    if (math_is_nan(x) || math_is_inf(x) || math_magnitude(x) < 0x39800000u) {
        return x;
    }
    let a = math_abs(x);
    if (a < 0.5) {
        let z = x * x;
        return x + x * (z * (-0.16666667 + z * (0.07500036 + z * (-0.04465125 + z * (0.030465113
            + z * (-0.022699805 + z * (0.017215578 + z * -9.311403e-3)))))));
    }
    if (a < 4096.0) {
        let z = a * a;
        return math_with_sign(c10_metal_log1p(a + z / (1.0 + metal_precise_sqrt(1.0 + z))), x);
    }
    return math_with_sign(math_log_core(a, 1, 0.0), x);
}

fn metal_precise_acosh(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_negative(x) || math_magnitude(x) < 0x3f800000u) {
        return math_nan();
    }
    if (math_is_inf(x)) {
        return x;
    }
    if (x < 4096.0) {
        let t = x - 1.0;
        return c10_metal_log1p(t + metal_precise_sqrt(t * (t + 2.0)));
    }
    return math_log_core(x, 1, 0.0);
}

fn metal_precise_atanh(x: f32) -> f32 {
    if (math_is_nan(x) || math_magnitude(x) < 0x39800000u) {
        return x;
    }
    let a = math_abs(x);
    if (math_magnitude(x) >= 0x3f800000u) {
        if (math_magnitude(x) == 0x3f800000u) {
            return math_with_sign(math_inf(), x);
        }
        return math_nan();
    }
    if (a < 0.5) {
        let z = x * x;
        return x + x * (z * (0.33333334 + z * (0.19999905 + z * (0.14288704 + z * (0.11068311
            + z * (0.09393302 + z * (0.06748952 + z * (0.06841103 + z * 0.10894882))))))));
    }
    return math_with_sign(0.5 * c10_metal_log1p(2.0 * a / (1.0 - a)), x);
}

fn metal_exp(x: f32) -> f32 {
    return metal_precise_exp(x);
}

fn metal_exp2(x: f32) -> f32 {
    return metal_precise_exp2(x);
}

fn metal_exp10(x: f32) -> f32 {
    return metal_precise_exp10(x);
}

fn metal_log(x: f32) -> f32 {
    return metal_precise_log(x);
}

fn metal_log2(x: f32) -> f32 {
    return metal_precise_log2(x);
}

fn metal_log10(x: f32) -> f32 {
    return metal_precise_log10(x);
}

fn metal_pow(x: f32, y: f32) -> f32 {
    return metal_precise_pow(x, y);
}

fn c10_metal_pow(x: f32, y: f32) -> f32 {
    return metal_precise_pow(x, y);
}

fn metal_sinh(x: f32) -> f32 {
    return metal_precise_sinh(x);
}

fn metal_cosh(x: f32) -> f32 {
    return metal_precise_cosh(x);
}

fn metal_tanh(x: f32) -> f32 {
    return metal_precise_tanh(x);
}

fn metal_asinh(x: f32) -> f32 {
    return metal_precise_asinh(x);
}

fn metal_acosh(x: f32) -> f32 {
    return metal_precise_acosh(x);
}

fn metal_atanh(x: f32) -> f32 {
    return metal_precise_atanh(x);
}
