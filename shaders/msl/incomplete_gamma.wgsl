// The regularized incomplete gamma functions. Uses core.wgsl, exponential.wgsl, error.wgsl and gamma.wgsl.
//
// The choice of series (DLMF 8.11.4, 8.7.3), continued fraction (DLMF 8.9.2) and Temme's uniform expansion
// (DLMF 8.12) is that of Cephes' igam.c and igamc.c as SciPy extends them; the coefficients of the expansion
// are tabulated there (SciPy, xsf/cephes/igam.h).

// x^a exp(-x) / gamma(a).
fn math_igamma_factor(a: f32, x: f32) -> f32 {
    if (a < 10.0) {
        // exp(-x) in halves, so that the product leaves the range only if the result does.
        let half = math_exp_scaled(-0.5 * x, 0);
        if (math_is_zero(half)) {
            return 0.0;
        }
        let power = metal_precise_pow(x, a);
        if (a < 1.0) {
            return power * half * half * a / math_gamma_positive(a + 1.0);
        }
        return power * half * (half / math_gamma_positive(a));
    }
    let mu = (x - a) / a;
    var phi: f32;
    if (mu > -0.29 && mu < 0.41) {
        phi = math_log_defect(mu);
    } else {
        phi = mu - math_log_core(x / a, 0, 0.0);
    }
    let r = 1.0 / a;
    let stirling = r * (0.083333336 - r * r * 2.7777778e-3);
    return metal_precise_sqrt(a * 0.15915494) * math_exp_scaled(-a * phi - stirling, 0);
}

// The lower function by its power series.
fn math_igamma_series(a: f32, x: f32) -> f32 {
    var factor: f32;
    if (a < 1.0) {
        factor = metal_precise_pow(x, a) * math_exp_scaled(-x, 0) / math_gamma_positive(a + 1.0);
    } else {
        factor = math_igamma_factor(a, x) / a;
    }
    if (math_is_zero(factor)) {
        return 0.0;
    }
    var r = a;
    var c = 1.0;
    var sum = 1.0;
    for (var i = 0; i < 2000; i++) {
        r += 1.0;
        c *= x / r;
        sum += c;
        if (c <= sum * 5.9604645e-8) {
            break;
        }
    }
    return sum * factor;
}

// The upper function by its power series, for small a and x.
fn math_igammac_series(a: f32, x: f32) -> f32 {
    var c = 1.0;
    var sum = 0.0;
    for (var n = 1; n < 200; n++) {
        c *= -x / f32(n);
        let term = c / (a + f32(n));
        sum += term;
        if (math_abs(term) <= math_abs(sum) * 5.9604645e-8) {
            break;
        }
    }
    let l = a * math_log_core(x, 0, 0.0) - math_log_gamma_1p(a);
    return -c10_metal_expm1(l) - math_exp_scaled(l, 0) * a * sum;
}

// The upper function by its continued fraction (Lentz's method as Thompson and Barnett modified it).
fn math_igammac_fraction(a: f32, x: f32) -> f32 {
    let factor = math_igamma_factor(a, x);
    if (math_is_zero(factor)) {
        return 0.0;
    }
    var b = x + 1.0 - a;
    var c = 1e30;
    var d = 1.0 / b;
    var h = d;
    for (var i = 1; i < 2000; i++) {
        let n = f32(i);
        let an = n * (a - n);
        b += 2.0;
        d = an * d + b;
        if (math_abs(d) < 1e-30) {
            d = 1e-30;
        }
        c = b + an / c;
        if (math_abs(c) < 1e-30) {
            c = 1e-30;
        }
        d = 1.0 / d;
        let delta = d * c;
        h *= delta;
        if (math_abs(delta - 1.0) <= 1.1920929e-7) {
            break;
        }
    }
    return factor * h;
}

// Temme's expansion of the upper (s = 1) or lower (s = -1) function for a > 20, |x - a| < 0.3 a.
fn math_igamma_uniform(a: f32, x: f32, s: f32) -> f32 {
    let mu = (x - a) / a;
    let phi = math_log_defect(mu);
    let eta = math_with_sign(metal_precise_sqrt(2.0 * phi), mu);
    let d0 = -0.33333334 + eta * (0.083333336 + eta * (-0.014814815 + eta * (1.1574074e-3
        + eta * (3.527336860670194e-4 + eta * (-1.7875514e-4 + eta * (3.9192632e-5
        + eta * (-2.1854485e-6 + eta * -1.8540622e-6)))))));
    let d1 = -1.8518519e-3 + eta * (-3.4722222e-3 + eta * (2.6455026e-3 + eta * (-9.9022634e-4
        + eta * (2.0576132e-4 + eta * (-4.0187757e-7 + eta * -1.809855e-5)))));
    let d2 = 4.1335979e-3 + eta * (-2.6813271e-3 + eta * (7.7160494e-4 + eta * (2.0093879e-6
        + eta * -1.0736653e-4)));
    let d3 = 6.4943416e-4 + eta * (2.2947209e-4 + eta * -4.6918949e-4);
    let r = 1.0 / a;
    let sum = d0 + r * (d1 + r * (d2 + r * d3));
    let correction = math_exp_scaled(-a * phi, 0) * sum * metal_precise_rsqrt(a) * 0.3989423;
    return 0.5 * c10_metal_erfc(s * eta * metal_precise_sqrt(0.5 * a)) + s * correction;
}

fn math_igammac_inside(a: f32, x: f32) -> f32 {
    if (a > 20.0 && math_abs(x - a) < 0.3 * a) {
        return math_igamma_uniform(a, x, 1.0);
    }
    if (x > 1.1) {
        if (x < a) {
            return 1.0 - math_igamma_series(a, x);
        }
        return math_igammac_fraction(a, x);
    }
    var bound = x * 1.1;
    if (x <= 0.5) {
        bound = -0.4 / math_log_core(x, 0, 0.0);
    }
    if (bound < a) {
        return 1.0 - math_igamma_series(a, x);
    }
    return math_igammac_series(a, x);
}

// The value of the lower function where an argument lies on the border of its domain or outside: .n is 1
// where there is such a value.
fn math_igamma_border(a: f32, x: f32) -> MathSplit {
    if (math_is_nan(a) || math_is_nan(x)) {
        return MathSplit(1, math_nan());
    }
    let a_zero = math_is_zero(a);
    let x_zero = math_is_zero(x);
    if ((math_is_negative(a) && !a_zero) || (math_is_negative(x) && !x_zero)) {
        return MathSplit(1, math_nan());
    }
    if (a_zero) {
        if (x_zero) {
            return MathSplit(1, math_nan());
        }
        return MathSplit(1, 1.0);
    }
    if (x_zero) {
        return MathSplit(1, 0.0);
    }
    if (math_is_inf(a)) {
        if (math_is_inf(x)) {
            return MathSplit(1, math_nan());
        }
        return MathSplit(1, 0.0);
    }
    if (math_is_inf(x)) {
        return MathSplit(1, 1.0);
    }
    return MathSplit(0, 0.0);
}

fn c10_metal_igamma(a: f32, x: f32) -> f32 {
    let border = math_igamma_border(a, x);
    if (border.n != 0) {
        return border.f;
    }
    if (a > 20.0 && math_abs(x - a) < 0.3 * a) {
        return math_igamma_uniform(a, x, -1.0);
    }
    if (x > 1.0 && x > a) {
        return 1.0 - math_igammac_inside(a, x);
    }
    return math_igamma_series(a, x);
}

fn c10_metal_igammac(a: f32, x: f32) -> f32 {
    let border = math_igamma_border(a, x);
    if (border.n != 0) {
        if (math_is_nan(border.f)) {
            return border.f;
        }
        return 1.0 - border.f;
    }
    return math_igammac_inside(a, x);
}
