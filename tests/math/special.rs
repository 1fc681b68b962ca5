//! f64 references of special functions that neither the standard library nor `libm` has: by series, integrals
//! and recurrences other than those of the shaders. `tables.rs` holds them to values of 17 digits.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

const INF: f64 = f64::INFINITY;

/// The values of a shader's f32 overflow where an f64 does not.
fn as_f32_range(x: f64) -> f64 {
    if x.abs() > f64::from(f32::MAX) { INF.copysign(x) } else { x }
}

pub fn log_gamma(x: f64) -> f64 {
    if x.is_infinite() || (x <= 0.0 && x.fract() == 0.0) { INF } else { libm::lgamma(x) }
}

pub fn gamma(x: f64) -> f64 {
    if x == 0.0 {
        INF.copysign(x)
    } else if x < 0.0 && (x.fract() == 0.0 || x.is_infinite()) {
        f64::NAN
    } else {
        libm::tgamma(x)
    }
}

/// DLMF 5.11.2 after the recurrence, with the reflection for negative arguments.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -INF.copysign(x);
    }
    if x < 0.0 {
        if x.fract() == 0.0 {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 16.0 {
        sum -= 1.0 / y;
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    let tail =
        z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z / 132.0))));
    sum + y.ln() - 0.5 / y - tail
}

/// Bernoulli's numbers B(2 k) over (2 k)!.
const BERNOULLI: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
];

fn zeta_positive(s: f64, q: f64) -> f64 {
    let (mut a, mut sum) = (q, 0.0);
    for _ in 0..40 {
        sum += a.powf(-s);
        a += 1.0;
    }
    let mut term = a.powf(-s);
    if term <= sum * 1e-20 {
        return sum;
    }
    sum += term * (a / (s - 1.0) + 0.5);
    let mut factor = s;
    for (k, b) in BERNOULLI.iter().enumerate() {
        term /= a;
        sum += b * factor * term;
        let j = 2.0 * k as f64;
        factor *= (s + j + 1.0) * (s + j + 2.0);
        term /= a;
    }
    sum
}

pub fn zeta(s: f64, q: f64) -> f64 {
    if s.is_nan() || q.is_nan() {
        f64::NAN
    } else if s == 1.0 {
        INF
    } else if s < 1.0 {
        f64::NAN
    } else if q <= 0.0 && q.trunc() == q {
        INF
    } else if q < 0.0 && (s.is_infinite() || s.trunc() != s) {
        f64::NAN
    } else if q < 0.0 {
        let (d, odd) = (q - q.round(), s % 2.0 != 0.0);
        if odd && d.abs() == 0.5 {
            return zeta_positive(s, 1.0 - q);
        }
        if s > 1000.0 {
            return d.abs().powf(-s) * if odd { d.signum() } else { 1.0 };
        }
        // Term by term up to a positive argument, or the sum over all integers.
        if q > -1000.0 {
            let mut a = q;
            let mut sum = 0.0;
            while a < 0.0 {
                sum += a.powi(-(s as i32));
                a += 1.0;
            }
            return sum + zeta_positive(s, a);
        }
        let d = q - q.floor();
        let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
        zeta_positive(s, d) + sign * (zeta_positive(s, 1.0 - d) - zeta_positive(s, 1.0 - q))
    } else if q.is_infinite() {
        0.0
    } else if s.is_infinite() {
        if q > 1.0 {
            0.0
        } else if q == 1.0 {
            1.0
        } else {
            INF
        }
    } else {
        zeta_positive(s, q)
    }
}

pub fn polygamma(n: i32, x: f64) -> f64 {
    match n {
        0 => digamma(x),
        ..0 => f64::NAN,
        _ => {
            let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
            sign * libm::tgamma(f64::from(n) + 1.0) * zeta(f64::from(n) + 1.0, x)
        }
    }
}

/// exp(a log(x) - x - log(gamma(a))), by Stirling's error where a is large.
fn igamma_factor(a: f64, x: f64) -> f64 {
    if a < 30.0 {
        return (a * x.ln() - x - libm::lgamma(a)).exp();
    }
    let mu = (x - a) / a;
    // mu - log(1 + mu) without cancellation near 0.
    let phi = if mu.abs() < 0.1 {
        let mut sum = 0.0;
        for k in (2..24).rev() {
            sum += (-mu).powi(k) / f64::from(k);
        }
        sum
    } else {
        mu - mu.ln_1p()
    };
    let r = 1.0 / a;
    let stirling = r / 12.0 - r.powi(3) / 360.0 + r.powi(5) / 1260.0;
    (a / (2.0 * PI)).sqrt() * (-a * phi - stirling).exp()
}

/// The upper function for a > 1e5: the two leading terms of DLMF 8.12.
fn upper_uniform(a: f64, x: f64) -> f64 {
    let mu = (x - a) / a;
    let phi = if mu.abs() < 1e-2 {
        (2..12).rev().map(|k| (-mu).powi(k) / f64::from(k)).sum()
    } else {
        mu - mu.ln_1p()
    };
    let eta = (2.0 * phi).sqrt().copysign(mu);
    let c0 = if eta.abs() < 1e-3 { -1.0 / 3.0 + eta / 12.0 } else { 1.0 / mu - 1.0 / eta };
    let rest = (-a * phi).exp() / (2.0 * PI * a).sqrt() * (c0 - 1.85e-3 / a);
    0.5 * libm::erfc(eta * (a / 2.0).sqrt()) + rest
}

/// The lower and the upper function, the smaller one computed.
fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if a > 1e5 {
        let upper = upper_uniform(a, x);
        return (1.0 - upper, upper);
    }
    if x < a + 1.0 {
        // x^a exp(-x) / gamma(a + 1) sum of x^n / ((a + 1) ... (a + n)).
        let (mut term, mut sum, mut r) = (1.0, 1.0, a);
        for _ in 0..200_000 {
            r += 1.0;
            term *= x / r;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        let factor = if a < 1.0 {
            (a * x.ln() - x - libm::lgamma(a + 1.0)).exp()
        } else {
            igamma_factor(a, x) / a
        };
        let lower = sum * factor;
        if a >= 1.0 || lower < 0.9 {
            return (lower, 1.0 - lower);
        }
        // 1 - x^a / gamma(1 + a) (1 + a sum of (-x)^n / (n! (a + n))), for a small a.
        let (mut c, mut rest) = (1.0, 0.0);
        for n in 1..200 {
            c *= -x / f64::from(n);
            rest += c / (a + f64::from(n));
        }
        let l = a * x.ln() - lgamma_1p(a);
        return (lower, -l.exp_m1() - l.exp() * a * rest);
    }
    let (mut b, mut c) = (x + 1.0 - a, 1e300);
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..200_000 {
        let an = f64::from(i) * (a - f64::from(i));
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    let upper = igamma_factor(a, x) * h;
    (1.0 - upper, upper)
}

/// log(gamma(1 + a)), relative for small a.
fn lgamma_1p(a: f64) -> f64 {
    if a.abs() > 1e-3 {
        return libm::lgamma(1.0 + a);
    }
    let (g, z2, z3, z4) = (
        0.577_215_664_901_532_9,
        1.644_934_066_848_226_4,
        1.202_056_903_159_594_3,
        1.082_323_233_711_138_2,
    );
    a * (-g + a * (z2 / 2.0 - a * (z3 / 3.0 - a * z4 / 4.0)))
}

/// What cancels in the exponent of the common factor: a log(x / a) and a - x.
pub fn factor_size(a: f64, x: f64) -> f64 {
    4.0 * (a * (x / a).ln().abs() + (a - x).abs())
}

fn igamma_border(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        Some(f64::NAN)
    } else if a == 0.0 {
        Some(if x > 0.0 { 1.0 } else { f64::NAN })
    } else if x == 0.0 {
        Some(0.0)
    } else if a.is_infinite() {
        Some(if x.is_infinite() { f64::NAN } else { 0.0 })
    } else if x.is_infinite() {
        Some(1.0)
    } else {
        None
    }
}

pub fn igamma(a: f64, x: f64) -> f64 {
    igamma_border(a, x).unwrap_or_else(|| incomplete_gamma(a, x).0)
}

pub fn igammac(a: f64, x: f64) -> f64 {
    igamma_border(a, x).map_or_else(|| incomplete_gamma(a, x).1, |p| 1.0 - p)
}

/// By Newton's method on erf, or erfc near 1.
pub fn erfinv(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return if x.abs() == 1.0 { INF.copysign(x) } else { f64::NAN };
    }
    let a = x.abs();
    if a < 1e-9 {
        return x / FRAC_2_SQRT_PI;
    }
    let mut y = (-(-(a * a)).ln_1p()).sqrt() * 0.8862;
    for _ in 0..60 {
        let error = if a < 0.5 { libm::erf(y) - a } else { (1.0 - a) - libm::erfc(y) };
        y -= error / (FRAC_2_SQRT_PI * (-y * y).exp());
    }
    y.copysign(x)
}

pub fn erfcx(x: f64) -> f64 {
    if x > 25.0 {
        let z = 1.0 / (x * x);
        return FRAC_2_SQRT_PI * 0.5 / x * (1.0 - 0.5 * z * (1.0 - 1.5 * z * (1.0 - 2.5 * z)));
    }
    (x * x).exp() * libm::erfc(x)
}

/// exp(-x) I(order, x): the mean of exp(x (cos t - 1)) cos(order t), or the asymptotic series.
fn bessel_ie(order: f64, x: f64) -> f64 {
    if x < 30.0 {
        let (z, mut term, mut sum) = (x * x / 4.0, 1.0, 1.0);
        for k in 1..200 {
            term *= z / (f64::from(k) * (f64::from(k) + order));
            sum += term;
        }
        return (-x).exp() * sum * (x / 2.0).powf(order);
    }
    let mu = 4.0 * order * order;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..25 {
        let odd = f64::from(2 * k - 1);
        term *= -(mu - odd * odd) / (f64::from(k) * 8.0 * x);
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

pub fn i0e(x: f64) -> f64 {
    if x.is_nan() { x } else { bessel_ie(0.0, x.abs()) }
}

pub fn i1e(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 { x } else { bessel_ie(1.0, x.abs()).copysign(x) }
}

pub fn i0(x: f64) -> f64 {
    if x.abs() > 700.0 { INF } else { i0e(x) * x.abs().exp() }
}

pub fn i1(x: f64) -> f64 {
    if x.abs() > 700.0 { INF.copysign(x) } else { i1e(x) * x.abs().exp() }
}

/// exp(x) K(order, x): the integral of exp(-x (cosh t - 1)) cosh(order t) over t > 0, by the trapezoidal rule.
fn bessel_ke(order: f64, x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return INF;
    }
    if x.is_infinite() {
        return 0.0;
    }
    let end = 2.0 * (400.0 / x).sqrt().asinh();
    let steps = 500;
    let h = end / f64::from(steps);
    let mut sum = 0.5;
    for i in 1..=steps {
        let t = h * f64::from(i);
        let s = (0.5 * t).sinh();
        sum += (-2.0 * x * s * s).exp() * (order * t).cosh();
    }
    sum * h
}

pub fn k0e(x: f64) -> f64 {
    bessel_ke(0.0, x)
}

pub fn k1e(x: f64) -> f64 {
    bessel_ke(1.0, x)
}

pub fn k0(x: f64) -> f64 {
    if x.is_infinite() && x > 0.0 { 0.0 } else { bessel_ke(0.0, x) * (-x).exp() }
}

pub fn k1(x: f64) -> f64 {
    if x.is_infinite() && x > 0.0 { 0.0 } else { bessel_ke(1.0, x) * (-x).exp() }
}

pub fn bessel_j0(x: f64) -> f64 {
    if x.is_infinite() { 0.0 } else { libm::j0(x) }
}

pub fn bessel_j1(x: f64) -> f64 {
    if x.is_infinite() { 0.0 } else { libm::j1(x) }
}

fn second_kind(x: f64, f: fn(f64) -> f64) -> f64 {
    if x == 0.0 {
        -INF
    } else if x.is_nan() || x < 0.0 {
        f64::NAN
    } else if x.is_infinite() {
        0.0
    } else {
        f(x)
    }
}

pub fn bessel_y0(x: f64) -> f64 {
    second_kind(x, libm::y0)
}

pub fn bessel_y1(x: f64) -> f64 {
    second_kind(x, libm::y1)
}

pub fn spherical_bessel_j0(x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x == 0.0 {
        1.0
    } else {
        x.sin() / x
    }
}

pub fn sinc(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x == 0.0 {
        return 1.0;
    }
    if x % 1.0 == 0.0 { 0.0 } else { (PI * (x % 2.0)).sin() / (PI * x) }
}

pub fn entr(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        -x * x.ln()
    } else if x == 0.0 {
        0.0
    } else {
        -INF
    }
}

pub fn xlogy(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        y
    } else if x == 0.0 {
        x
    } else {
        x * y.ln()
    }
}

pub fn xlog1py(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        y
    } else if x == 0.0 {
        x
    } else {
        x * y.ln_1p()
    }
}

pub fn logaddexp(a: f64, b: f64) -> f64 {
    if a.is_infinite() && a == b { a } else { a.max(b) + (-(a - b).abs()).exp().ln_1p() }
}

pub fn logaddexp2(a: f64, b: f64) -> f64 {
    if a.is_infinite() && a == b {
        a
    } else {
        a.max(b) + (-(a - b).abs()).exp2().ln_1p() * std::f64::consts::LOG2_E
    }
}

/// Zero or of the sign of y.
pub fn remainder(x: f64, y: f64) -> f64 {
    let r = x % y;
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}

/// `r(k) = c r(k - 1) - b(k) r(k - 2)` with the range of f32.
fn recurrence(n: i32, first: f64, c: f64, b: fn(i32) -> f64) -> f64 {
    let (mut p, mut q) = (1.0, as_f32_range(first));
    if n <= 0 {
        return if n < 0 { 0.0 } else { 1.0 };
    }
    for k in 2..=n {
        let r = as_f32_range(c * q - b(k) * p);
        p = q;
        q = r;
    }
    q
}

pub fn chebyshev_t(n: i32, x: f64) -> f64 {
    recurrence(n, x, 2.0 * x, |_| 1.0)
}

pub fn chebyshev_u(n: i32, x: f64) -> f64 {
    recurrence(n, 2.0 * x, 2.0 * x, |_| 1.0)
}

pub fn chebyshev_v(n: i32, x: f64) -> f64 {
    recurrence(n, 2.0 * x - 1.0, 2.0 * x, |_| 1.0)
}

pub fn chebyshev_w(n: i32, x: f64) -> f64 {
    recurrence(n, 2.0 * x + 1.0, 2.0 * x, |_| 1.0)
}

pub fn hermite_h(n: i32, x: f64) -> f64 {
    if n > 128 { f64::NAN } else { recurrence(n, 2.0 * x, 2.0 * x, |k| 2.0 * f64::from(k - 1)) }
}

pub fn hermite_he(n: i32, x: f64) -> f64 {
    if n > 128 { f64::NAN } else { recurrence(n, x, x, |k| f64::from(k - 1)) }
}

/// The sum of the magnitudes of the terms, one rounding a step: it is the polynomial of i x but for a power of i.
pub fn hermite_h_size(x: f64, n: f64) -> f64 {
    let x = x.abs();
    n * recurrence(n as i32, 2.0 * x, 2.0 * x, |k| -2.0 * f64::from(k - 1))
}

pub fn hermite_he_size(x: f64, n: f64) -> f64 {
    let x = x.abs();
    n * recurrence(n as i32, x, x, |k| -f64::from(k - 1))
}

pub fn max_or_nan(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }
}

pub fn min_or_nan(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }
}

/// Below 1, as Metal has it.
pub fn fract(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x.is_infinite() {
        0.0
    } else {
        (x - x.floor()).min(f64::from(1f32.next_down()))
    }
}

/// Of the quotient rounded to f32, which is PyTorch's formula.
pub fn floor_divide(x: f64, y: f64) -> f64 {
    f64::from((x as f32 / y as f32).floor())
}
