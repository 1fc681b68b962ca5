// Orthogonal polynomials of an integer degree. Uses core.wgsl, exponential.wgsl and trigonometric.wgsl.
//
// Inside (-1, 1) Chebyshev's by their angle (DLMF 18.5), but for low degrees; elsewhere the recurrence
// (DLMF 18.9), whose values are NaN from two steps past the range on, as PyTorch has them. A negative degree
// gives 0.

// (-1)^n value.
fn math_alternate(value: f32, n: i32) -> f32 {
    return select(value, math_negate(value), (n & 1) == 1);
}

// The kinds T, U, V, W are 0, 1, 2, 3. At -1 V is what W is at 1, and all alternate.
fn math_chebyshev_end(kind: u32, n: i32, negative: bool) -> f32 {
    let m = f32(n);
    var k = kind;
    if (negative && k >= 2u) {
        k = 5u - k;
    }
    var value = 1.0;
    if (k == 1u) {
        value = m + 1.0;
    } else if (k == 3u) {
        value = 2.0 * m + 1.0;
    }
    return select(value, math_alternate(value, n), negative);
}

// -1 < x < 1, t = (1 - |x|) / 2. From the end that is nearer, so that the angle keeps its relative accuracy, or
// from the middle, whose angle is known as a quadrant.
fn math_chebyshev_inside(kind: u32, n: i32, x: f32, t: f32) -> f32 {
    let m = f32(n);
    var k = kind;
    if (math_is_negative(x) && k >= 2u) {
        k = 5u - k;
    }
    var value: f32;
    if (k < 2u && math_abs(x) < 0.5) {
        let y = math_abs(x);
        let angle = math_reduce_angle((m + f32(k)) * metal_precise_asin(y));
        value = math_sin_of(MathAngle((bitcast<u32>(n) + 1u - angle.quadrant) & 3u, -angle.r));
        if (k == 1u) {
            value = value * metal_precise_rsqrt((1.0 - y) * (1.0 + y));
        }
    } else {
        let root = metal_precise_sqrt(t);
        let half = metal_precise_asin(root);
        if (k == 0u) {
            value = metal_precise_cos(2.0 * m * half);
        } else if (k == 1u) {
            value = metal_precise_sin((2.0 * m + 2.0) * half) / (2.0 * root * metal_precise_sqrt(1.0 - t));
        } else if (k == 2u) {
            value = metal_precise_cos((2.0 * m + 1.0) * half) / metal_precise_sqrt(1.0 - t);
        } else {
            value = metal_precise_sin((2.0 * m + 1.0) * half) / root;
        }
    }
    return select(value, math_alternate(value, n), math_is_negative(x));
}

// |x| < 1, by the recurrence from r(0) = 1 and r(1) = x, 2 x, 2 x - 1 or 2 x + 1; n >= 0.
fn math_chebyshev_low(kind: u32, n: i32, x: f32) -> f32 {
    var p = 1.0;
    if (n == 0) {
        return p;
    }
    let c = x + x;
    var q = c;
    if (kind == 0u) {
        q = x;
    } else if (kind == 2u) {
        q = c - 1.0;
    } else if (kind == 3u) {
        q = c + 1.0;
    }
    for (var k = 2; k <= n; k++) {
        let r = c * q - p;
        p = q;
        q = r;
    }
    return q;
}

// |x| > 1, e = 2 |x| - 2: at |x| the differences d(k) = d(k - 1) + e r(k - 1) are all positive.
fn math_chebyshev_outside(kind: u32, n: i32, negative: bool, e: f32) -> f32 {
    var k = kind;
    if (negative && k >= 2u) {
        k = 5u - k;
    }
    var d = e;
    if (k == 0u) {
        d = 0.5 * e;
    } else if (k == 1u) {
        d = 1.0 + e;
    } else if (k == 3u) {
        d = 2.0 + e;
    }
    var p = 0.0;
    var q = 1.0;
    for (var i = 1; i <= n; i++) {
        if (math_is_inf(q) && math_is_inf(p)) {
            return math_nan();
        }
        if (i > 1) {
            d += e * q;
        }
        p = q;
        q += d;
    }
    return select(q, math_alternate(q, n), negative);
}

fn math_chebyshev(kind: u32, x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    let y = math_abs(x);
    if (y == 1.0) {
        return math_chebyshev_end(kind, n, math_is_negative(x));
    }
    if (n > 6 && y < 1.0) {
        return math_chebyshev_inside(kind, n, x, 0.5 * (1.0 - y));
    }
    if (y < 1.0) {
        return math_chebyshev_low(kind, n, x);
    }
    return math_chebyshev_outside(kind, n, math_is_negative(x), 2.0 * (y - 1.0));
}

// The polynomial at 2 x - 1, whose distance from the ends is x or 1 - x.
fn math_chebyshev_shifted(kind: u32, x: f32, n: i32) -> f32 {
    if (n < 0) {
        return 0.0;
    }
    if (math_is_nan(x)) {
        return select(x, 1.0, n == 0);
    }
    // A denormal, which a root may take for zero, is as good as the end.
    let at_zero = math_magnitude(x) < 0x00800000u;
    if (x == 1.0 || at_zero) {
        return math_chebyshev_end(kind, n, at_zero);
    }
    if (math_is_negative(x)) {
        return math_chebyshev_outside(kind, n, true, -4.0 * x);
    }
    if (x > 1.0) {
        return math_chebyshev_outside(kind, n, false, 4.0 * (x - 1.0));
    }
    let y = (x - 0.5) + (x - 0.5);
    if (n > 1) {
        return math_chebyshev_inside(kind, n, y, min(x, 1.0 - x));
    }
    return math_chebyshev_low(kind, n, y);
}

fn c10_metal_chebyshev_polynomial_t_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev(0u, x, n);
}

fn c10_metal_chebyshev_polynomial_u_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev(1u, x, n);
}

fn c10_metal_chebyshev_polynomial_v_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev(2u, x, n);
}

fn c10_metal_chebyshev_polynomial_w_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev(3u, x, n);
}

fn c10_metal_shifted_chebyshev_polynomial_t_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_shifted(0u, x, n);
}

fn c10_metal_shifted_chebyshev_polynomial_u_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_shifted(1u, x, n);
}

fn c10_metal_shifted_chebyshev_polynomial_v_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_shifted(2u, x, n);
}

fn c10_metal_shifted_chebyshev_polynomial_w_forward(x: f32, n: i32) -> f32 {
    return math_chebyshev_shifted(3u, x, n);
}

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
