// Orthogonal polynomials of an integer degree. Uses core.wgsl, exponential.wgsl and trigonometric.wgsl.
//
// As PyTorch has them: inside (-1, 1) Chebyshev's by their angle from some degree on (DLMF 18.5), elsewhere the
// recurrence (DLMF 18.9), whose values are NaN from two steps past the range on. A negative degree gives 0.

// c q - k p, NaN where two steps have left the range.
fn math_recurrence_step(c: f32, q: f32, k: f32, p: f32) -> f32 {
    if (math_is_nan(q) || (math_is_inf(q) && (math_is_inf(p) || math_is_zero(c)))) {
        return math_nan();
    }
    if (math_is_inf(q)) {
        return select(q, math_negate(q), math_is_negative(c));
    }
    return c * q - k * p;
}

// The n-th of r(k) = c r(k - 1) - r(k - 2) after r(0) = 1, r(1) = first; n >= 0.
fn math_chebyshev_recurrence(c: f32, first: f32, n: i32) -> f32 {
    var p = 1.0;
    var q = first;
    if (n == 0) {
        return p;
    }
    for (var k = 2; k <= n; k++) {
        let r = math_recurrence_step(c, q, 1.0, p);
        p = q;
        q = r;
        if (math_is_nan(q)) {
            break;
        }
    }
    return q;
}

// (-1)^n value.
fn math_alternate(value: f32, n: i32) -> f32 {
    return select(value, math_negate(value), (n & 1) == 1);
}

fn math_chebyshev_t(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    if (math_magnitude(x) == 0x3f800000u) {
        return select(1.0, math_alternate(1.0, n), math_is_negative(x));
    }
    if (n > 6 && math_abs(x) < 1.0) {
        return metal_precise_cos(f32(n) * metal_precise_acos(x));
    }
    return math_chebyshev_recurrence(x + x, x, n);
}

fn math_chebyshev_u(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    if (math_magnitude(x) == 0x3f800000u) {
        let end = f32(n) + 1.0;
        return select(end, math_alternate(end, n), math_is_negative(x));
    }
    if (n > 8 && math_abs(x) < 1.0) {
        let angle = metal_precise_acos(x);
        return metal_precise_sin((f32(n) + 1.0) * angle) / metal_precise_sin(angle);
    }
    return math_chebyshev_recurrence(x + x, x + x, n);
}

fn math_chebyshev_v(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    if (math_magnitude(x) == 0x3f800000u) {
        return select(1.0, math_alternate(2.0 * f32(n) + 1.0, n), math_is_negative(x));
    }
    if (n > 8 && math_abs(x) < 1.0) {
        let angle = metal_precise_acos(x);
        return metal_precise_cos((f32(n) + 0.5) * angle) / metal_precise_cos(0.5 * angle);
    }
    return math_chebyshev_recurrence(x + x, (x + x) - 1.0, n);
}

fn math_chebyshev_w(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    if (math_magnitude(x) == 0x3f800000u) {
        return select(2.0 * f32(n) + 1.0, math_alternate(1.0, n), math_is_negative(x));
    }
    if (n > 8 && math_abs(x) < 1.0) {
        let angle = metal_precise_acos(x);
        return metal_precise_sin((f32(n) + 0.5) * angle) / metal_precise_sin(0.5 * angle);
    }
    return math_chebyshev_recurrence(x + x, (x + x) + 1.0, n);
}

fn c10_metal_chebyshev_polynomial_t_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_t(x, n);
}

fn c10_metal_chebyshev_polynomial_u_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_u(x, n);
}

fn c10_metal_chebyshev_polynomial_v_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_v(x, n);
}

fn c10_metal_chebyshev_polynomial_w_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_w(x, n);
}

fn c10_metal_shifted_chebyshev_polynomial_t_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_t((x - 0.5) + (x - 0.5), n);
}

fn c10_metal_shifted_chebyshev_polynomial_u_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_u((x - 0.5) + (x - 0.5), n);
}

fn c10_metal_shifted_chebyshev_polynomial_v_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_v((x - 0.5) + (x - 0.5), n);
}

fn c10_metal_shifted_chebyshev_polynomial_w_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_w((x - 0.5) + (x - 0.5), n);
}

// The physicists' polynomial; PyTorch gives NaN for a degree above 128.
fn c10_metal_hermite_polynomial_h_forward(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (n == 0) {
        return 1.0;
    }
    if (math_is_nan(x)) {
        return x;
    }
    if (n > 128) {
        return math_nan();
    }
    var p = 1.0;
    var q = x + x;
    for (var k = 1; k < n; k++) {
        let r = math_recurrence_step(x + x, q, 2.0 * f32(k), p);
        p = q;
        q = r;
    }
    return q;
}

// The probabilists' polynomial; PyTorch gives NaN for a degree above 128.
fn c10_metal_hermite_polynomial_he_forward(x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (n == 0) {
        return 1.0;
    }
    if (math_is_nan(x)) {
        return x;
    }
    if (n > 128) {
        return math_nan();
    }
    var p = 1.0;
    var q = x;
    for (var k = 1; k < n; k++) {
        let r = math_recurrence_step(x, q, f32(k), p);
        p = q;
        q = r;
    }
    return q;
}
