// The error function and its relatives. Uses core.wgsl and exponential.wgsl.
//
// Polynomials are minimax fits: erf(x)/x - 1 in x^2; log(erfc(x))/x in x (after N. Juffa's erff);
// (1 + 2 x) exp(x^2) erfc(x) in (x - 4)/(x + 4) (Shepherd and Laframboise, Mathematics of Computation 36,
// 1981); erfinv(x)/x in w = -log(1 - x^2) (M. Giles, Approximating the erfinv function, 2010).

// erf(x)/x - 1 for |x| < 0.93, z = x^2.
fn math_erf_kernel(z: f32) -> f32 {
    return 0.12837915 + z * (-0.37612498 + z * (0.11281827 + z * (-0.026766231 + z * (4.991762e-3
        + z * -5.980214e-4))));
}

fn c10_metal_erf(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_magnitude(x) < 0x3f6d0000u) {
        if (math_magnitude(x) < 0x39800000u) {
            return x + 0.12837917 * x;
        }
        return x + x * math_erf_kernel(x * x);
    }
    if (math_magnitude(x) >= 0x40800000u) {
        return math_with_sign(1.0, x);
    }
    let t = math_abs(x);
    let log_erfc = t * (-1.1285449 + t * (-0.6356564 + t * (-0.10520308 + t * (0.022612128
        + t * (-2.8923322e-3 + t * (3.6057787e-5 + t * (4.820787e-5 + t * -5.1517527e-6)))))));
    return math_with_sign(1.0 - math_exp_scaled(log_erfc, 0), x);
}

// exp(x^2) erfc(x) for x >= 0.4.
fn math_erfcx_positive(x: f32) -> f32 {
    if (x > 10.0) {
        if (math_magnitude(x) > 0x4b000000u) {
            return 0.5641896 / x;
        }
        let z = 1.0 / (x * x);
        return (0.5641896 + z * (-0.28214142 + z * (0.43407047 + z * -1.670226))) / x;
    }
    let q = (x - 4.0) / (x + 4.0);
    let p = 1.2329952 + q * (-0.13962112 + q * (0.015378801 + q * (0.06809887 + q * (-0.10104148
        + q * (0.09370497 + q * (-0.06626244 + q * (0.037309296 + q * (-0.016459748 + q * (4.740617e-3
        + q * -4.0165015e-4)))))))));
    return p / (1.0 + 2.0 * x);
}

// exp(s x^2) for s = 1 or -1: the square as an exact part and a rest.
fn math_exp_square(x: f32, s: f32) -> f32 {
    let head = math_head(x);
    return math_exp_scaled(s * head * head, 0) * math_exp_scaled(s * (x - head) * (x + head), 0);
}

fn c10_metal_erfc(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_magnitude(x) < 0x3f000000u) {
        return 1.0 - c10_metal_erf(x);
    }
    if (math_is_negative(x)) {
        return 1.0 - c10_metal_erf(x);
    }
    if (math_magnitude(x) >= 0x41280000u) {
        return 0.0;
    }
    // The last product may be a denormal, which only an integer rounding keeps on every device.
    let head = math_head(x);
    let rest = math_exp_scaled((head - x) * (x + head), 0) * math_erfcx_positive(x);
    let scaled = math_exp_scaled(-head * head, 40) * rest;
    return math_scale(scaled, -40);
}

fn c10_metal_erfcx(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (x >= 0.5) {
        return math_erfcx_positive(x);
    }
    if (x > -9.5) {
        return math_exp_square(x, 1.0) * c10_metal_erfc(x);
    }
    return math_inf();
}

fn c10_metal_erfinv(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let magnitude = math_magnitude(x);
    if (magnitude >= 0x3f800000u) {
        if (magnitude == 0x3f800000u) {
            return math_with_sign(math_inf(), x);
        }
        return math_nan();
    }
    if (magnitude < 0x39800000u) {
        return x * 0.88622693;
    }
    let a = math_abs(x);
    // 1 - a is exact where the logarithm is large.
    var w = -c10_metal_log1p(-(x * x));
    if (a > 0.5) {
        w = -math_log_core((1.0 - a) * (1.0 + a), 0, 0.0);
    }
    if (w < 5.0) {
        let t = w - 2.5;
        return x * (1.5014094 + t * (0.24664067 + t * (-4.1774837e-3 + t * (-1.2536603e-3
            + t * (2.1840043e-4 + t * (-4.4081166e-6 + t * (-3.4750126e-6 + t * (3.4457398e-7
            + t * 2.4136847e-8))))))));
    }
    let t = metal_precise_sqrt(w) - 3.0;
    return x * (2.832977 + t * (1.0016754 + t * (9.434649e-3 + t * (-7.6375804e-3 + t * (5.770071e-3
        + t * (-3.6241498e-3 + t * (1.2741026e-3 + t * (5.442877e-5 + t * -1.3998846e-4))))))));
}

// -x log(x).
fn c10_metal_entr(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_zero(x)) {
        return 0.0;
    }
    if (math_is_negative(x)) {
        return math_from_bits(0xff800000u);
    }
    if (math_is_inf(x)) {
        return math_from_bits(0xff800000u);
    }
    return -x * metal_precise_log(x);
}

// x l for a logarithm l, which may be infinite; x is not zero.
fn math_times_log(x: f32, l: f32) -> f32 {
    if (math_is_nan(x) || math_is_nan(l)) {
        return math_nan();
    }
    if (math_is_inf(x) || math_is_inf(l)) {
        if (math_is_zero(l)) {
            return math_nan();
        }
        return bitcast<f32>(0x7f800000u ^ ((bitcast<u32>(x) ^ bitcast<u32>(l)) & 0x80000000u));
    }
    return x * l;
}

fn c10_metal_xlogy(x: f32, y: f32) -> f32 {
    if (math_is_nan(y)) {
        return y;
    }
    if (math_is_zero(x)) {
        return x;
    }
    return math_times_log(x, metal_precise_log(y));
}

fn c10_metal_xlog1py(x: f32, y: f32) -> f32 {
    if (math_is_nan(y)) {
        return y;
    }
    if (math_is_zero(x)) {
        return x;
    }
    return math_times_log(x, c10_metal_log1p(y));
}

// The larger of two and the distance between them, where their sum of exponentials is not one of them:
// .n is 1 where .f is the result.
fn math_log_add_split(a: f32, b: f32) -> MathSplit {
    if (math_is_nan(a)) {
        return MathSplit(1, a);
    }
    if (math_is_nan(b)) {
        return MathSplit(1, b);
    }
    let larger = c10_metal_max(a, b);
    if (math_is_inf(a) || math_is_inf(b)) {
        return MathSplit(1, larger);
    }
    return MathSplit(0, larger);
}

fn c10_metal_logaddexp(a: f32, b: f32) -> f32 {
    let split = math_log_add_split(a, b);
    if (split.n != 0) {
        return split.f;
    }
    return split.f + c10_metal_log1p(metal_precise_exp(-math_abs(a - b)));
}

fn c10_metal_logaddexp2(a: f32, b: f32) -> f32 {
    let split = math_log_add_split(a, b);
    if (split.n != 0) {
        return split.f;
    }
    return split.f + c10_metal_log1p(metal_precise_exp2(-math_abs(a - b))) * 1.442695;
}

// sin(pi x) / (pi x).
fn c10_metal_sinc(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    if (math_magnitude(x) < 0x39000000u) {
        return 1.0;
    }
    return metal_precise_sinpi(x) / x * 0.31830987;
}

// x - y floor(x / y), exact: zero or of the sign of y.
fn c10_metal_remainder(x: f32, y: f32) -> f32 {
    let r = metal_fmod(x, y);
    if (math_is_nan(r) || math_is_zero(r) || math_is_negative(r) == math_is_negative(y)) {
        return r;
    }
    return r + y;
}

// A quotient a little below an integer would be floored to the one before.
fn c10_metal_floor_divide(x: f32, y: f32) -> f32 {
    return metal_floor(metal_precise_divide(x, y));
}

fn c10_metal_fmod(x: f32, y: f32) -> f32 {
    return metal_fmod(x, y);
}

// The larger leg is scaled to [1, 2).
fn c10_metal_hypot(x: f32, y: f32) -> f32 {
    if (math_is_inf(x) || math_is_inf(y)) {
        return math_inf();
    }
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(y)) {
        return y;
    }
    let bx = math_magnitude(x);
    let by = math_magnitude(y);
    let large = bitcast<f32>(max(bx, by));
    let small = bitcast<f32>(min(bx, by));
    if (math_is_zero(small)) {
        return large;
    }
    let p = math_normalize(large);
    let q = math_normalize(small);
    let l = f32(bitcast<u32>(p.x)) * 4.656612873077392578125e-10;
    if (p.y - q.y > 25) {
        return large;
    }
    let s = math_scale(f32(bitcast<u32>(q.x)), q.y - p.y - 31);
    return math_scale(metal_precise_sqrt(l * l + s * s), p.y);
}
