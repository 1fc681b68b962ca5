// Gamma and what is made of it: log_gamma, digamma, polygamma, zeta. Uses core.wgsl, exponential.wgsl and
// trigonometric.wgsl.
//
// Polynomials are minimax fits with the roots taken out, so that the error stays relative near 1, 2 and the
// root of digamma. Asymptotic series: NIST Digital Library of Mathematical Functions (DLMF) 5.11; reflections
// DLMF 5.5; Hurwitz's zeta by Euler and Maclaurin's formula, DLMF 25.11.

// log(gamma(1 + t)) for -1/4 <= t <= 3/2.
fn math_log_gamma_1p(t: f32) -> f32 {
    if (t < 0.5) {
        return t * (-0.5772157 + t * (0.822467 + t * (-0.40068328 + t * (0.27057973 + t * (-0.20751855
            + t * (0.16971649 + t * (-0.14152478 + t * (0.12085076 + t * (-0.12780145 + t * (0.14261548
            + t * -0.081760086))))))))));
    }
    let u = t - 1.0;
    return u * (0.42278433 + u * (0.32246703 + u * (-0.067351446 + u * (0.020580994 + u * (-7.402855e-3
        + u * (2.888388e-3 + u * (-1.0792274e-3 + u * (5.1793206e-4 + u * (-4.6689544e-4
        + u * 9.497548e-5)))))))));
}

// The argument is a finite x > 0.
fn math_log_gamma_positive(x: f32) -> f32 {
    if (x < 0.75) {
        return math_log_gamma_1p(x) - math_log_core(x, 0, 0.0);
    }
    if (x < 2.5) {
        return math_log_gamma_1p(x - 1.0);
    }
    if (x < 8.0) {
        var y = x;
        var product = 1.0;
        for (var i = 0; i < 7 && y >= 2.5; i++) {
            y -= 1.0;
            product *= y;
        }
        return math_log_core(product, 0, 0.0) + math_log_gamma_1p(y - 1.0);
    }
    let r = 1.0 / min(x, 1e18);
    let z = r * r;
    let tail = r * (0.083333336 + z * (-2.7777778e-3 + z * (7.9365081e-4 + z * -5.952381e-4)));
    // 0.41893853 is log(2 pi)/2 - 1/2.
    let l = math_log_core(x, 0, 0.0) - 1.0;
    if (math_magnitude(x) >= 0x7b800000u && l * (x * 5.877472e-39) > 1.9999999) {
        return math_inf();
    }
    return (x - 0.5) * l + (0.41893853 + tail);
}

fn c10_metal_log_gamma(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x) || math_is_zero(x)) {
        return math_inf();
    }
    let a = math_abs(x);
    if (!math_is_negative(x)) {
        return math_log_gamma_positive(a);
    }
    let s = math_abs(metal_precise_sinpi(a));
    if (math_is_zero(s)) {
        return math_inf();
    }
    if (a < 0.25) {
        // pi / (a sin(pi a)) may overflow: log(gamma(1 - a) / a), less where sin(pi a) departs.
        return math_log_gamma_1p(-a) - math_log_core(a, 0, 0.0);
    }
    return 1.1447299 - math_log_core(a * s, 0, 0.0) - math_log_gamma_positive(a);
}

fn metal_lgamma(x: f32) -> f32 {
    return c10_metal_log_gamma(x);
}

// gamma(1.5 + t) for |t| <= 1/2.
fn math_gamma_kernel(t: f32) -> f32 {
    return 0.88622695 + t * (0.03233819 + t * (0.41480765 + t * (-0.10728075 + t * (0.14483085
        + t * (-0.07779383 + t * (0.05658277 + t * (-0.03586415 + t * (0.034577943
        + t * -0.024450678))))))));
}

// The argument is x > 0.
fn math_gamma_positive(x: f32) -> f32 {
    if (x >= 36.0) {
        return math_inf();
    }
    if (x < 1.0) {
        return math_gamma_kernel(x - 0.5) / x;
    }
    // The least factor first: it may keep the others from leaving the range.
    let whole = min(metal_floor(x), 35.0) - 1.0;
    var y = x - whole;
    var product = math_gamma_kernel(y - 1.5);
    for (var i = 0; i < i32(whole); i++) {
        product *= y;
        y += 1.0;
    }
    return product;
}

fn c10_metal_gamma(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_zero(x)) {
        return math_with_sign(math_inf(), x);
    }
    if (math_magnitude(x) < 0x32000000u) {
        return metal_precise_divide(1.0, x);
    }
    if (!math_is_negative(x)) {
        return math_gamma_positive(x);
    }
    if (math_is_zero(metal_fmod(x, 1.0)) || math_is_inf(x)) {
        return math_nan();
    }
    if (x > -0.5) {
        return math_gamma_kernel(x + 0.5) / (1.0 + x) / x;
    }
    let a = math_abs(x);
    if (a > 42.5) {
        return math_with_sign(0.0, metal_precise_sinpi(x));
    }
    var result = 3.1415927 / (a * metal_precise_sinpi(x));
    if (a < 34.0) {
        return result / math_gamma_positive(a);
    }
    // By ten factors of gamma(a), which is out of range itself.
    result /= math_gamma_positive(a - 10.0);
    for (var i = 10; i > 0; i--) {
        result /= a - f32(i);
    }
    return result;
}

// The argument is a finite x > 0.
fn math_digamma_positive(x: f32) -> f32 {
    var y = x;
    var sum = 0.0;
    if (x < 1.0) {
        sum = -1.0 / x;
        y = x + 1.0;
    }
    if (y < 6.0) {
        for (var i = 0; i < 5 && y > 2.0; i++) {
            y -= 1.0;
            sum += 1.0 / y;
        }
        // The root 1.4616321 + 1.243815e-8.
        let t = y - 1.5;
        let p = 0.9510559 + t * (-0.42362756 + t * (0.2405391 + t * (-0.1483956 + t * (0.09510701
            + t * (-0.06210442 + t * (0.03941738 + t * (-0.025523594 + t * (0.023825832
            + t * -0.016847808))))))));
        return sum + ((y - 1.4616321) - 1.243815e-8) * p;
    }
    let r = 1.0 / min(y, 1e18);
    let z = r * r;
    let tail = z * (0.083333336 + z * (-8.3333333e-3 + z * (3.9682540e-3 + z * -4.1666667e-3)));
    return math_log_core(y, 0, 0.0) - (0.5 * r + tail);
}

// At a pole NaN, at zero the infinity of the other sign, as PyTorch has it.
fn c10_metal_digamma(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_zero(x)) {
        return math_negate(math_with_sign(math_inf(), x));
    }
    if (!math_is_negative(x)) {
        if (math_is_inf(x)) {
            return x;
        }
        if (math_magnitude(x) < 0x32000000u) {
            return metal_precise_divide(-1.0, x);
        }
        return math_digamma_positive(x);
    }
    if (math_is_inf(x) || math_is_zero(metal_fmod(x, 1.0))) {
        return math_nan();
    }
    if (math_magnitude(x) < 0x38800000u) {
        return metal_precise_divide(-1.0, x) - 0.5772157;
    }
    // pi / tan(pi x) by the distance to the nearest integer.
    let d = x - metal_rint(x);
    let cotangent = 3.1415927 / math_tan_of(math_reduce_half_turns(d));
    return math_digamma_positive(1.0 - x) - cotangent;
}

// 2^scale times the sum over k >= 0 of (q + k)^(-s) for s > 1, q > 0.
fn math_zeta_scaled(s: f32, q: f32, scale: i32) -> f32 {
    if (q > 1e4) {
        // The integral apart from the first term, which leaves the range before it.
        return math_pow_scaled(q, 1.0 - s, scale) / (s - 1.0) + math_pow_scaled(q, -s, scale) * (0.5 + s / (12.0 * q));
    }
    var a = q;
    var term = math_pow_scaled(q, -s, scale);
    var sum = term;
    for (var i = 0; i < 9; i++) {
        a += 1.0;
        term = math_pow_scaled(a, -s, scale);
        sum += term;
        if (term <= sum * 1e-9 || math_is_inf(sum)) {
            return sum;
        }
    }
    // The integral, half the last term, and Bernoulli's numbers: B2/2!, B4/4!, ...
    let r = 1.0 / a;
    let c1 = s * r;
    let c2 = c1 * ((s + 1.0) * r) * ((s + 2.0) * r);
    let c3 = c2 * ((s + 3.0) * r) * ((s + 4.0) * r);
    let c4 = c3 * ((s + 5.0) * r) * ((s + 6.0) * r);
    let tail = 0.083333336 * c1 - 1.3888889e-3 * c2 + 3.3068784e-5 * c3 - 8.2671957e-7 * c4;
    return sum + term * (a / (s - 1.0) - 0.5 + tail);
}

// The terms of a sum of small ones are kept from the denormals, which a device may take for zero.
fn math_zeta_positive(s: f32, q: f32) -> f32 {
    if (q > 1.0) {
        return math_scale(math_zeta_scaled(s, q, 64), -64);
    }
    return math_zeta_scaled(s, q, 0);
}

// Hurwitz's zeta; its poles and the arguments without a value are PyTorch's.
fn c10_metal_zeta(x: f32, q: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_nan(q)) {
        return q;
    }
    if (bitcast<u32>(x) == 0x3f800000u) {
        return math_inf();
    }
    if (math_is_negative(x) || math_magnitude(x) < 0x3f800000u) {
        return math_nan();
    }
    if (math_is_zero(q)) {
        return math_inf();
    }
    if (!math_is_negative(q)) {
        if (math_is_inf(q)) {
            return 0.0;
        }
        if (math_is_inf(x)) {
            return metal_precise_pow(q, -x);
        }
        return math_zeta_positive(x, q);
    }
    if (math_is_inf(q) || math_is_zero(metal_fmod(q, 1.0))) {
        return math_inf();
    }
    if (math_is_inf(x) || !math_is_zero(metal_fmod(x, 1.0))) {
        return math_nan();
    }
    // The sum over all integers less that over those below q: no loop as long as -q.
    // The distance to the nearest integer is exact, and it is what decides.
    var d = q;
    if (q < -0.5) {
        d = q - metal_rint(q);
    }
    let near = math_abs(d);
    let odd = math_parity(x) == 1u;
    let rest = math_zeta_positive(x, 1.0 - q);
    if (odd && near == 0.5) {
        return rest;
    }
    let close = math_zeta_positive(x, near);
    let far = math_zeta_positive(x, 1.0 - near);
    if (math_is_inf(close)) {
        return select(close, math_negate(close), odd && math_is_negative(d));
    }
    if (!odd) {
        return close + (far - rest);
    }
    return select(far - close, close - far, !math_is_negative(d)) + rest;
}

// n! q^(-n - 1) q^(n + 1) zeta(n + 1, q) where n! or the power leaves the range.
fn math_polygamma_large(n: i32, q: f32) -> f32 {
    let s = f32(n) + 1.0;
    var factor: f32;
    if (q > 2.0 * s) {
        // Too slow a sum: Euler and Maclaurin's formula from its first term, over q.
        factor = 1.0 / f32(n) + (0.5 + s / (12.0 * q)) / q;
    } else {
        var sum = 1.0;
        for (var k = 1; k < 64; k++) {
            let term = metal_precise_pow(q / (q + f32(k)), s);
            sum += term;
            if (term < 1e-9 * sum) {
                break;
            }
        }
        factor = sum / q;
    }
    for (var k = 1; k <= n && k < 1024; k++) {
        factor *= f32(k) / q;
        if (math_is_inf(factor) || math_is_zero(factor)) {
            break;
        }
    }
    return factor;
}

// The n-th derivative of digamma.
fn c10_metal_polygamma(n: i32, x: f32) -> f32 {
    if (n == 0) {
        return c10_metal_digamma(x);
    }
    if (n < 0 || math_is_nan(x)) {
        return math_nan();
    }
    let s = f32(n) + 1.0;
    var result: f32;
    if (x > 1.0 && !math_is_inf(x) && (n > 33 || s * metal_precise_log2(x) > 60.0)) {
        result = math_polygamma_large(n, x);
    } else {
        result = c10_metal_zeta(s, x);
        if (!math_is_inf(result) && !math_is_nan(result) && !math_is_zero(result)) {
            result *= math_gamma_positive(s);
        }
    }
    return select(math_negate(result), result, (n & 1) == 1);
}

fn c10_metal_trigamma(x: f32) -> f32 {
    return c10_metal_polygamma(1, x);
}
