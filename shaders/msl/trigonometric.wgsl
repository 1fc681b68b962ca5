// Trigonometric functions and their inverses. Uses core.wgsl.
//
// Arguments are reduced by Payne and Hanek's method (Radian reduction for trigonometric functions, SIGNUM
// Newsletter 18, 1983) in integers, for every |x| > pi/4: products with 96 bits of 2/pi, taken where the
// exponent of x points, leave the quadrant and 62 bits of the fraction. Polynomials are minimax fits.

struct MathAngle {
    quadrant: u32,
    r: f32,
}

// 32 bits of 2/pi from bit offset on, 64 zero bits before the first.
fn math_two_over_pi(word: u32) -> u32 {
    var table = array<u32, 8>(
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
    );
    return table[word];
}

// The fraction (high, low) of a quarter turn as a signed angle in [-pi/4, pi/4], after its quadrant.
fn math_angle_from_fraction(quadrant: u32, high: u32, low: u32, negative: bool) -> MathAngle {
    var q = quadrant;
    var h = high;
    var l = low;
    var flip = negative;
    if ((h >> 31u) != 0u) {
        q += 1u;
        flip = !flip;
        h = ~h + select(0u, 1u, l == 0u);
        l = 0u - l;
    }
    if (negative) {
        q = 0u - q;
    }
    if (h == 0u) {
        h = l;
        l = 0u;
        if (h == 0u) {
            return MathAngle(q & 3u, 0.0);
        }
        let shift = countLeadingZeros(h);
        let r = f32(math_mul_high(h << shift, 0xc90fdaa2u));
        return MathAngle(q & 3u, math_scale(r, -63 - i32(shift)) * select(1.0, -1.0, flip));
    }
    let shift = countLeadingZeros(h);
    if (shift > 0u) {
        h = (h << shift) | (l >> (32u - shift));
    }
    // pi/2 with 31 fraction bits.
    let r = f32(math_mul_high(h, 0xc90fdaa2u));
    return MathAngle(q & 3u, math_scale(r, -31 - i32(shift)) * select(1.0, -1.0, flip));
}

// x = quadrant pi/2 + r, |r| <= pi/4, of a finite x.
fn math_reduce_angle(x: f32) -> MathAngle {
    if (math_magnitude(x) <= 0x3f490fdau) {
        return MathAngle(0u, x);
    }
    let parts = math_normalize(x);
    let m = bitcast<u32>(parts.x);
    let offset = u32(parts.y + 31);
    let word = offset >> 5u;
    let shift = offset & 31u;
    var w0 = math_two_over_pi(word);
    var w1 = math_two_over_pi(word + 1u);
    var w2 = math_two_over_pi(word + 2u);
    if (shift > 0u) {
        w0 = (w0 << shift) | (w1 >> (32u - shift));
        w1 = (w1 << shift) | (w2 >> (32u - shift));
        w2 = (w2 << shift) | (math_two_over_pi(word + 3u) >> (32u - shift));
    }
    // x 2/pi mod 4 with 94 fraction bits; the last 32 are no more than a carry.
    let middle = math_mul_wide(m, w1);
    let low = middle.x + math_mul_high(m, w2);
    let high = m * w0 + middle.y + select(0u, 1u, low < middle.x);
    return math_angle_from_fraction(high >> 30u, (high << 2u) | (low >> 30u), low << 2u, math_is_negative(x));
}

// |r| <= pi/4.
fn math_sin_kernel(r: f32) -> f32 {
    let z = r * r;
    return r + r * (z * (-0.16666667 + z * (8.33338e-3 + z * (-1.9853504e-4 + z * 2.837391e-6))));
}

fn math_cos_kernel(r: f32) -> f32 {
    let z = r * r;
    return 1.0 - (0.5 * z - z * z * (0.041666668 + z * (-1.3888982e-3 + z * (2.4822975e-5
        + z * -2.8975776e-7))));
}

// sin(r + quadrant pi/2).
fn math_sin_of(angle: MathAngle) -> f32 {
    var result: f32;
    if ((angle.quadrant & 1u) == 0u) {
        result = math_sin_kernel(angle.r);
    } else {
        result = math_cos_kernel(angle.r);
    }
    return select(result, math_negate(result), (angle.quadrant & 2u) != 0u);
}

fn metal_precise_sin(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return math_nan();
    }
    if (math_magnitude(x) < 0x39800000u) {
        return x;
    }
    return math_sin_of(math_reduce_angle(x));
}

fn metal_precise_cos(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return math_nan();
    }
    let angle = math_reduce_angle(x);
    return math_sin_of(MathAngle((angle.quadrant + 1u) & 3u, angle.r));
}

fn math_tan_of(angle: MathAngle) -> f32 {
    let z = angle.r * angle.r;
    let t = angle.r + angle.r * (z * (0.33333352 + z * (0.13332579 + z * (0.054069385 + z * (0.021234222
        + z * (0.010957675 + z * (-6.192128e-5 + z * 4.4495785e-3)))))));
    if ((angle.quadrant & 1u) == 0u) {
        return t;
    }
    return -1.0 / t;
}

fn metal_precise_tan(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return math_nan();
    }
    if (math_magnitude(x) < 0x39800000u) {
        return x;
    }
    return math_tan_of(math_reduce_angle(x));
}

// pi x as an angle: x mod 2 is exact.
fn math_reduce_half_turns(x: f32) -> MathAngle {
    let y = metal_fmod(x, 2.0);
    let q = metal_rint(2.0 * y);
    return MathAngle(bitcast<u32>(i32(q)) & 3u, (y - 0.5 * q) * 3.1415927);
}

// sin(pi x).
fn metal_precise_sinpi(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return math_nan();
    }
    if (math_magnitude(metal_fmod(x, 1.0)) == 0u) {
        return math_with_sign(0.0, x);
    }
    return math_sin_of(math_reduce_half_turns(x));
}

// cos(pi x).
fn metal_precise_cospi(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return math_nan();
    }
    let angle = math_reduce_half_turns(x);
    if ((angle.quadrant & 1u) == 1u && math_is_zero(angle.r)) {
        return 0.0;
    }
    return math_sin_of(MathAngle((angle.quadrant + 1u) & 3u, angle.r));
}

// (asin(sqrt(z)) - sqrt(z)) / sqrt(z) for z <= 1/4.
fn math_asin_kernel(z: f32) -> f32 {
    return z * (0.1666666 + z * (0.07500528 + z * (0.044511557 + z * (0.031858016 + z * (0.014233277
        + z * 0.037821673)))));
}

fn metal_precise_asin(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let magnitude = math_magnitude(x);
    if (magnitude > 0x3f800000u) {
        return math_nan();
    }
    if (magnitude <= 0x3f000000u) {
        return x + x * math_asin_kernel(x * x);
    }
    let z = 0.5 * (1.0 - math_abs(x));
    let s = metal_precise_sqrt(z);
    return math_with_sign(1.5707964 - 2.0 * (s + (s * math_asin_kernel(z) + 2.1855695e-8)), x);
}

fn metal_precise_acos(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let magnitude = math_magnitude(x);
    if (magnitude > 0x3f800000u) {
        return math_nan();
    }
    if (magnitude <= 0x3f000000u) {
        // pi/2 = 1.5707964 - 4.371139e-8.
        return 1.5707964 - (x + (x * math_asin_kernel(x * x) + 4.371139e-8));
    }
    let z = 0.5 * (1.0 - math_abs(x));
    let s = metal_precise_sqrt(z);
    let half = s + s * math_asin_kernel(z);
    if (math_is_negative(x)) {
        return 3.1415927 - 2.0 * (half + 4.371139e-8);
    }
    return 2.0 * half;
}

// atan(t) for 0 <= t <= 1, added to base, by t or (t - 1) / (t + 1).
fn math_atan_unit(t: f32) -> f32 {
    var base = 0.0;
    var u = t;
    if (t > 0.41421357) {
        base = 0.7853982;
        u = (t - 1.0) / (t + 1.0);
    }
    let z = u * u;
    return base + (u + u * (z * (-0.33333316 + z * (0.19998534 + z * (-0.1424455 + z * (0.10600506
        + z * -0.06093625))))));
}

fn metal_precise_atan(x: f32) -> f32 {
    if (math_is_nan(x) || math_magnitude(x) < 0x39800000u) {
        return x;
    }
    let a = math_abs(x);
    if (math_magnitude(x) >= 0x4c000000u) {
        return math_with_sign(1.5707964, x);
    }
    if (a > 1.0) {
        return math_with_sign(1.5707964 - math_atan_unit(1.0 / a), x);
    }
    return math_with_sign(math_atan_unit(a), x);
}

// The special cases are those of C99, annex F.
fn metal_precise_atan2(y: f32, x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(y)) {
        return y;
    }
    let by = math_magnitude(y);
    let bx = math_magnitude(x);
    var angle: f32;
    if (by == 0u) {
        angle = 0.0;
    } else if (bx == 0u) {
        return math_with_sign(1.5707964, y);
    } else if (by == 0x7f800000u) {
        angle = select(1.5707964, 0.7853982, bx == 0x7f800000u);
    } else if (bx == 0x7f800000u) {
        angle = 0.0;
    } else {
        let ny = math_normalize(y);
        let nx = math_normalize(x);
        let gap = ny.y - nx.y;
        let my = f32(bitcast<u32>(ny.x)) * 4.656612873077392578125e-10;
        let mx = f32(bitcast<u32>(nx.x)) * 4.656612873077392578125e-10;
        if (gap > 26) {
            return math_with_sign(1.5707964, y);
        }
        if (gap < -26) {
            // The quotient is the angle; only it can underflow.
            angle = math_scale(my / mx, gap);
        } else if (by > bx) {
            angle = 1.5707964 - math_atan_unit(math_scale(mx / my, -gap));
        } else {
            angle = math_atan_unit(math_scale(my / mx, gap));
        }
    }
    if (math_is_negative(x)) {
        angle = 3.1415927 - (angle + 8.742278e-8);
    }
    return math_with_sign(angle, y);
}

fn metal_sin(x: f32) -> f32 {
    return metal_precise_sin(x);
}

fn metal_cos(x: f32) -> f32 {
    return metal_precise_cos(x);
}

fn metal_tan(x: f32) -> f32 {
    return metal_precise_tan(x);
}

fn metal_sinpi(x: f32) -> f32 {
    return metal_precise_sinpi(x);
}

fn metal_cospi(x: f32) -> f32 {
    return metal_precise_cospi(x);
}

fn metal_asin(x: f32) -> f32 {
    return metal_precise_asin(x);
}

fn metal_acos(x: f32) -> f32 {
    return metal_precise_acos(x);
}

fn metal_atan(x: f32) -> f32 {
    return metal_precise_atan(x);
}

fn metal_atan2(y: f32, x: f32) -> f32 {
    return metal_precise_atan2(y, x);
}
