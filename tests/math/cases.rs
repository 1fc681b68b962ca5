//! Each function with its reference, the values it is tried at and the bound it is held to.

use crate::{random, special};

/// How a function is called: `Degree` is `f(x, n)`, `Order` is `f(n, x)`, with an integer n.
#[derive(Clone, Copy)]
pub enum Shape {
    Unary(fn(f64) -> f64),
    Predicate(fn(f32) -> bool),
    Binary(fn(f64, f64) -> f64),
    Degree(fn(i32, f64) -> f64),
    Order(fn(i32, f64) -> f64),
    /// The f32 that an expression of the words `a` and `b` gives.
    Seeded(&'static str, fn(u32, u32) -> f64),
    /// The u32 that an expression of the words `a` and `b` gives.
    Words(&'static str, fn(u32, u32) -> u32),
}

impl Shape {
    pub fn uses_second(&self) -> bool {
        !matches!(self, Shape::Unary(_) | Shape::Predicate(_))
    }
}

pub struct Case {
    pub name: &'static str,
    pub shape: Shape,
    /// The error may be `ulps` units in the last place of the reference,
    pub ulps: f64,
    /// plus 2^-24 of this size (of both arguments), where larger numbers than the result cancel,
    pub size: Option<fn(f64, f64) -> f64>,
    /// plus what the neighbours of the argument differ by, where the function is ill-conditioned.
    pub conditioned: bool,
    /// Where random first and second arguments are drawn, beside those of the whole range.
    pub range: (f64, f64),
    pub second: (f64, f64),
    pub signed_zero: bool,
}

impl Case {
    fn new(name: &'static str, shape: Shape, ulps: f64, range: (f64, f64)) -> Self {
        Case {
            name,
            shape,
            ulps,
            size: None,
            conditioned: false,
            range,
            second: (0.0, 1.0),
            signed_zero: true,
        }
    }

    /// An expression of words, to be run for its own sake.
    pub fn words(name: &'static str, call: &'static str) -> Self {
        Case::new(name, Shape::Words(call, |_, _| 0), 0.0, (0.0, 1.0))
    }

    fn size(mut self, size: fn(f64, f64) -> f64) -> Self {
        self.size = Some(size);
        self
    }

    fn conditioned(mut self) -> Self {
        self.conditioned = true;
        self
    }

    /// Which zero is not promised.
    fn any_zero(mut self) -> Self {
        self.signed_zero = false;
        self
    }

    fn second(mut self, low: f64, high: f64) -> Self {
        self.second = (low, high);
        self
    }
}

fn round_half_even(x: f64) -> f64 {
    x.round_ties_even()
}

/// Metal's: NaN gives 0.
fn sign(x: f64) -> f64 {
    if x.is_nan() {
        0.0
    } else if x == 0.0 {
        x
    } else {
        1f64.copysign(x)
    }
}

fn reduced_half_turns(x: f64) -> f64 {
    x % 2.0
}

fn sinpi(x: f64) -> f64 {
    if x % 1.0 == 0.0 {
        0f64.copysign(x)
    } else {
        (reduced_half_turns(x) * std::f64::consts::PI).sin()
    }
}

fn cospi(x: f64) -> f64 {
    if x.abs() % 1.0 == 0.5 { 0.0 } else { (reduced_half_turns(x) * std::f64::consts::PI).cos() }
}

fn elementary() -> Vec<Case> {
    use Shape::{Binary, Predicate, Unary};
    let wide = (-100.0, 100.0);
    vec![
        Case::new("metal_isnan", Predicate(f32::is_nan), 0.0, wide),
        Case::new("metal_isinf", Predicate(f32::is_infinite), 0.0, wide),
        Case::new("metal_isfinite", Predicate(f32::is_finite), 0.0, wide),
        Case::new("metal_signbit", Predicate(f32::is_sign_negative), 0.0, wide),
        Case::new("metal_max", Binary(f64::max), 0.0, wide).second(-100.0, 100.0).any_zero(),
        Case::new("metal_min", Binary(f64::min), 0.0, wide).second(-100.0, 100.0).any_zero(),
        Case::new("c10_metal_max", Binary(special::max_or_nan), 0.0, wide)
            .second(-100.0, 100.0)
            .any_zero(),
        Case::new("c10_metal_min", Binary(special::min_or_nan), 0.0, wide)
            .second(-100.0, 100.0)
            .any_zero(),
        Case::new("metal_fract", Unary(special::fract), 0.5, wide).any_zero(),
        Case::new("metal_precise_divide", Binary(|x, y| x / y), 0.5, wide).second(-100.0, 100.0),
        Case::new("c10_metal_floor_divide", Binary(special::floor_divide), 0.0, wide)
            .second(-3.0, 3.0),
        Case::new("metal_abs", Unary(f64::abs), 0.0, wide),
        Case::new("metal_sign", Unary(sign), 0.0, wide),
        Case::new("metal_trunc", Unary(f64::trunc), 0.0, wide),
        Case::new("metal_floor", Unary(f64::floor), 0.0, wide),
        Case::new("metal_ceil", Unary(f64::ceil), 0.0, wide),
        Case::new("metal_rint", Unary(round_half_even), 0.0, wide),
        Case::new("metal_round", Unary(f64::round), 0.0, wide),
        Case::new("metal_fmod", Binary(|x, y| x % y), 0.0, wide).second(-3.0, 3.0),
        Case::new("metal_copysign", Binary(f64::copysign), 0.0, wide).second(-3.0, 3.0),
        Case::new("metal_precise_sqrt", Unary(f64::sqrt), 0.5, (0.0, 100.0)),
        Case::new("metal_precise_rsqrt", Unary(|x| 1.0 / x.sqrt()), 0.52, (0.0, 100.0)),
        Case::new("metal_precise_exp", Unary(f64::exp), 1.5, (-105.0, 90.0)),
        Case::new("metal_precise_exp2", Unary(f64::exp2), 1.5, (-151.0, 129.0)),
        Case::new("metal_precise_exp10", Unary(|x| 10f64.powf(x)), 1.5, (-46.0, 39.0)),
        Case::new("c10_metal_expm1", Unary(f64::exp_m1), 2.0, (-2.0, 2.0)),
        Case::new("metal_precise_log", Unary(f64::ln), 2.0, (0.0, 4.0)),
        Case::new("metal_precise_log2", Unary(f64::log2), 2.0, (0.0, 4.0)),
        Case::new("metal_precise_log10", Unary(f64::log10), 2.0, (0.0, 4.0)),
        Case::new("c10_metal_log1p", Unary(f64::ln_1p), 3.0, (-1.0, 3.0)),
        Case::new("metal_precise_pow", Binary(f64::powf), 2.0, (0.0, 10.0)).second(-40.0, 40.0),
        Case::new("metal_precise_sinh", Unary(f64::sinh), 3.0, (-3.0, 3.0)),
        Case::new("metal_precise_cosh", Unary(f64::cosh), 3.0, (-3.0, 3.0)),
        Case::new("metal_precise_tanh", Unary(f64::tanh), 3.0, (-3.0, 3.0)),
        Case::new("metal_precise_asinh", Unary(libm::asinh), 3.0, (-3.0, 3.0)),
        Case::new(
            "metal_precise_acosh",
            Unary(|x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
            3.0,
            (1.0, 4.0),
        ),
        Case::new("metal_precise_atanh", Unary(libm::atanh), 3.0, (-1.0, 1.0)),
        Case::new("metal_precise_sin", Unary(f64::sin), 2.0, wide),
        Case::new("metal_precise_cos", Unary(f64::cos), 2.0, wide),
        Case::new("metal_precise_tan", Unary(f64::tan), 4.0, wide),
        Case::new("metal_precise_sinpi", Unary(sinpi), 4.0, wide),
        Case::new("metal_precise_cospi", Unary(cospi), 4.0, wide),
        Case::new("metal_precise_asin", Unary(f64::asin), 3.0, (-1.0, 1.0)),
        Case::new("metal_precise_acos", Unary(f64::acos), 3.0, (-1.0, 1.0)),
        Case::new("metal_precise_atan", Unary(f64::atan), 3.0, (-3.0, 3.0)),
        Case::new("metal_precise_atan2", Binary(f64::atan2), 4.0, (-3.0, 3.0)).second(-3.0, 3.0),
    ]
}

fn special_functions() -> Vec<Case> {
    use Shape::{Binary, Order, Unary};
    let wide = (-20.0, 20.0);
    vec![
        Case::new("c10_metal_erf", Unary(libm::erf), 3.0, (-4.0, 4.0)),
        Case::new("c10_metal_erfc", Unary(libm::erfc), 8.0, (-4.0, 10.5)),
        Case::new("c10_metal_erfcx", Unary(special::erfcx), 8.0, (-9.5, 40.0)),
        Case::new("c10_metal_erfinv", Unary(special::erfinv), 8.0, (-1.0, 1.0)),
        Case::new("c10_metal_entr", Unary(special::entr), 3.0, (0.0, 4.0)),
        Case::new("c10_metal_xlogy", Binary(special::xlogy), 3.0, wide).second(0.0, 4.0).any_zero(),
        Case::new("c10_metal_xlog1py", Binary(special::xlog1py), 4.0, wide)
            .second(-1.0, 4.0)
            .any_zero(),
        Case::new("c10_metal_logaddexp", Binary(special::logaddexp), 3.0, wide)
            .second(-20.0, 20.0)
            .any_zero()
            .size(|a, b| 2.0 * a.abs().max(b.abs()).max(1.0)),
        Case::new("c10_metal_logaddexp2", Binary(special::logaddexp2), 3.0, wide)
            .second(-20.0, 20.0)
            .any_zero()
            .size(|a, b| 2.0 * a.abs().max(b.abs()).max(1.0)),
        Case::new("c10_metal_sinc", Unary(special::sinc), 6.0, wide).any_zero(),
        Case::new("c10_metal_remainder", Binary(special::remainder), 0.5, wide)
            .second(-3.0, 3.0)
            .any_zero(),
        Case::new("c10_metal_hypot", Binary(f64::hypot), 2.0, wide).second(-20.0, 20.0),
        Case::new("c10_metal_log_gamma", Unary(special::log_gamma), 8.0, wide)
            .size(|x, _| if x < 0.0 { 4.0 * x.abs().ln().abs() * (1.0 - x) } else { 0.0 })
            .any_zero(),
        Case::new("c10_metal_gamma", Unary(special::gamma), 16.0, (-10.0, 36.0)),
        Case::new("c10_metal_digamma", Unary(special::digamma), 8.0, wide)
            .size(|x, _| if x < 0.0 { 8.0 + x.abs().ln().abs() } else { 0.0 })
            .conditioned(),
        Case::new("c10_metal_trigamma", Unary(|x| special::polygamma(1, x)), 16.0, wide)
            .conditioned(),
        Case::new("c10_metal_polygamma", Order(special::polygamma), 16.0, wide)
            .second(0.0, 12.0)
            .conditioned(),
        Case::new("c10_metal_zeta", Binary(special::zeta), 16.0, (1.0, 30.0))
            .second(-3.0, 50.0)
            .conditioned(),
        Case::new("c10_metal_igamma", Binary(special::igamma), 64.0, (0.0, 60.0))
            .second(0.0, 80.0)
            .size(|a, x| special::factor_size(a, x) * special::igamma(a, x))
            .conditioned(),
        Case::new("c10_metal_igammac", Binary(special::igammac), 64.0, (0.0, 60.0))
            .second(0.0, 80.0)
            .size(|a, x| special::factor_size(a, x) * special::igammac(a, x))
            .conditioned(),
        Case::new("c10_metal_i0", Unary(special::i0), 6.0, (-95.0, 95.0)),
        Case::new("c10_metal_i0e", Unary(special::i0e), 6.0, wide),
        Case::new("c10_metal_i1", Unary(special::i1), 6.0, (-95.0, 95.0)),
        Case::new("c10_metal_i1e", Unary(special::i1e), 6.0, wide),
        Case::new("c10_metal_spherical_bessel_j0", Unary(special::spherical_bessel_j0), 6.0, wide),
        Case::new("c10_metal_bessel_j0_forward", Unary(special::bessel_j0), 8.0, wide)
            .size(|x, _| 4.0 / (1.0 + x.abs()).sqrt()),
        Case::new("c10_metal_bessel_j1_forward", Unary(special::bessel_j1), 8.0, wide)
            .size(|x, _| 4.0 / (1.0 + x.abs()).sqrt()),
        Case::new("c10_metal_bessel_y0_forward", Unary(special::bessel_y0), 8.0, (0.0, 40.0))
            .size(|x, _| 8.0 / (1.0 + x.abs()).sqrt()),
        Case::new("c10_metal_bessel_y1_forward", Unary(special::bessel_y1), 8.0, (0.0, 40.0))
            .size(|x, _| 12.0 / (1.0 + x.abs()).sqrt()),
        Case::new("c10_metal_modified_bessel_i0_forward", Unary(special::i0), 6.0, wide),
        Case::new("c10_metal_modified_bessel_i1_forward", Unary(special::i1), 6.0, wide),
        Case::new("c10_metal_modified_bessel_k0_forward", Unary(special::k0), 16.0, (0.0, 10.0)),
        Case::new("c10_metal_modified_bessel_k1_forward", Unary(special::k1), 8.0, (0.0, 10.0)),
        Case::new(
            "c10_metal_scaled_modified_bessel_k0_forward",
            Unary(special::k0e),
            16.0,
            (0.0, 10.0),
        ),
        Case::new(
            "c10_metal_scaled_modified_bessel_k1_forward",
            Unary(special::k1e),
            8.0,
            (0.0, 10.0),
        ),
    ]
}

/// Degrees n up to 30, so that the sizes below are those of n and n^2.
fn polynomials() -> Vec<Case> {
    let case = |name, reference: fn(i32, f64) -> f64, size: fn(f64, f64) -> f64| {
        let case = Case::new(name, Shape::Degree(reference), 16.0, (-1.5, 1.5)).second(-1.0, 30.0);
        case.size(size).conditioned().any_zero()
    };
    let first: fn(f64, f64) -> f64 = |_, n| 4.0 * n;
    let other: fn(f64, f64) -> f64 = |_, n| 4.0 * n * n;
    vec![
        case("c10_metal_chebyshev_polynomial_t_forward", special::chebyshev_t, first),
        case("c10_metal_chebyshev_polynomial_u_forward", special::chebyshev_u, other),
        case("c10_metal_chebyshev_polynomial_v_forward", special::chebyshev_v, other),
        case("c10_metal_chebyshev_polynomial_w_forward", special::chebyshev_w, other),
        case(
            "c10_metal_shifted_chebyshev_polynomial_t_forward",
            |n, x| special::chebyshev_t(n, 2.0 * x - 1.0),
            first,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_u_forward",
            |n, x| special::chebyshev_u(n, 2.0 * x - 1.0),
            other,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_v_forward",
            |n, x| special::chebyshev_v(n, 2.0 * x - 1.0),
            other,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_w_forward",
            |n, x| special::chebyshev_w(n, 2.0 * x - 1.0),
            other,
        ),
        case("c10_metal_hermite_polynomial_h_forward", special::hermite_h, special::hermite_h_size),
        case(
            "c10_metal_hermite_polynomial_he_forward",
            special::hermite_he,
            special::hermite_he_size,
        ),
    ]
}

/// Seed and index of 64 bits are made of one word each, here and in `random.rs`.
fn random_numbers() -> Vec<Case> {
    use Shape::{Seeded, Words};
    let whole = (0.0, 1.0);
    let case = |name, shape, ulps| Case::new(name, shape, ulps, whole);
    vec![
        case("c10_metal_rand", Seeded("c10_metal_rand(SEED, INDEX)", random::uniform), 0.0),
        case("c10_metal_randn", Seeded("c10_metal_randn(SEED, INDEX)", random::normal), 6.0)
            .size(|_, _| 16.0),
        case(
            "c10_metal_philox4_rand",
            Words("c10_metal_philox4_rand(SEED, INDEX)[b & 3u]", random::word),
            0.0,
        ),
        case("c10_metal_randint64", Words(random::INTEGER_CALL, random::integer_word), 0.0),
    ]
}

pub fn all() -> Vec<Case> {
    let mut cases = elementary();
    cases.extend(random_numbers());
    cases.extend(special_functions());
    cases.extend(polynomials());
    cases
}
