//! Each function with its reference, the values it is tried at and the bound it is held to.

use crate::special;

/// How a function is called: `Degree` is `f(x, n)`, `Order` is `f(n, x)`, with an integer n.
#[derive(Clone, Copy)]
pub enum Shape {
    Unary(fn(f64) -> f64),
    Predicate(fn(f32) -> bool),
    Binary(fn(f64, f64) -> f64),
    Degree(fn(i32, f64) -> f64),
    Order(fn(i32, f64) -> f64),
}

impl Shape {
    pub fn uses_second(&self) -> bool {
        !matches!(self, Shape::Unary(_) | Shape::Predicate(_))
    }
}

pub struct Case {
    pub name: &'static str,
    pub shape: Shape,
    /// The error may be `ulps` units in the last place of the reference plus `absolute`.
    pub ulps: f64,
    pub absolute: f64,
    /// Where random first and second arguments are drawn, beside those of the whole range.
    pub range: (f64, f64),
    pub second: (f64, f64),
    pub signed_zero: bool,
}

impl Case {
    fn new(name: &'static str, shape: Shape, ulps: f64, range: (f64, f64)) -> Self {
        Case { name, shape, ulps, absolute: 0.0, range, second: (0.0, 1.0), signed_zero: true }
    }

    /// Where the result is ill-conditioned: near a root, or for a large degree.
    fn or_absolute(mut self, absolute: f64) -> Self {
        self.absolute = absolute;
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
            .any_zero(),
        Case::new("c10_metal_logaddexp2", Binary(special::logaddexp2), 3.0, wide)
            .second(-20.0, 20.0)
            .any_zero(),
        Case::new("c10_metal_sinc", Unary(special::sinc), 6.0, wide).any_zero(),
        Case::new("c10_metal_remainder", Binary(special::remainder), 0.5, wide)
            .second(-3.0, 3.0)
            .any_zero(),
        Case::new("c10_metal_hypot", Binary(f64::hypot), 2.0, wide).second(-20.0, 20.0),
        Case::new("c10_metal_log_gamma", Unary(special::log_gamma), 8.0, wide),
        Case::new("c10_metal_gamma", Unary(special::gamma), 16.0, (-10.0, 36.0)),
        Case::new("c10_metal_digamma", Unary(special::digamma), 8.0, wide),
        Case::new("c10_metal_trigamma", Unary(|x| special::polygamma(1, x)), 16.0, wide),
        Case::new("c10_metal_polygamma", Order(special::polygamma), 16.0, wide).second(0.0, 12.0),
        Case::new("c10_metal_zeta", Binary(special::zeta), 16.0, (1.0, 30.0)).second(-3.0, 50.0),
        Case::new("c10_metal_igamma", Binary(special::igamma), 64.0, (0.0, 60.0)).second(0.0, 80.0),
        Case::new("c10_metal_igammac", Binary(special::igammac), 64.0, (0.0, 60.0))
            .second(0.0, 80.0),
        Case::new("c10_metal_i0", Unary(special::i0), 6.0, (-95.0, 95.0)),
        Case::new("c10_metal_i0e", Unary(special::i0e), 6.0, wide),
        Case::new("c10_metal_i1", Unary(special::i1), 6.0, (-95.0, 95.0)),
        Case::new("c10_metal_i1e", Unary(special::i1e), 6.0, wide),
        Case::new("c10_metal_spherical_bessel_j0", Unary(special::spherical_bessel_j0), 6.0, wide),
        Case::new("c10_metal_bessel_j0_forward", Unary(special::bessel_j0), 8.0, wide),
        Case::new("c10_metal_bessel_j1_forward", Unary(special::bessel_j1), 8.0, wide),
        Case::new("c10_metal_bessel_y0_forward", Unary(special::bessel_y0), 8.0, (0.0, 40.0)),
        Case::new("c10_metal_bessel_y1_forward", Unary(special::bessel_y1), 8.0, (0.0, 40.0)),
        Case::new("c10_metal_modified_bessel_i0_forward", Unary(special::i0), 6.0, wide),
        Case::new("c10_metal_modified_bessel_i1_forward", Unary(special::i1), 6.0, wide),
        Case::new("c10_metal_modified_bessel_k0_forward", Unary(special::k0), 8.0, (0.0, 10.0)),
        Case::new("c10_metal_modified_bessel_k1_forward", Unary(special::k1), 8.0, (0.0, 10.0)),
        Case::new(
            "c10_metal_scaled_modified_bessel_k0_forward",
            Unary(special::k0e),
            8.0,
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

fn polynomials() -> Vec<Case> {
    let case = |name, reference: fn(i32, f64) -> f64, degree| {
        Case::new(name, Shape::Degree(reference), 16.0, (-1.5, 1.5)).second(-1.0, degree).any_zero()
    };
    vec![
        case("c10_metal_chebyshev_polynomial_t_forward", special::chebyshev_t, 30.0),
        case("c10_metal_chebyshev_polynomial_u_forward", special::chebyshev_u, 30.0),
        case("c10_metal_chebyshev_polynomial_v_forward", special::chebyshev_v, 30.0),
        case("c10_metal_chebyshev_polynomial_w_forward", special::chebyshev_w, 30.0),
        case(
            "c10_metal_shifted_chebyshev_polynomial_t_forward",
            |n, x| special::chebyshev_t(n, 2.0 * x - 1.0),
            30.0,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_u_forward",
            |n, x| special::chebyshev_u(n, 2.0 * x - 1.0),
            30.0,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_v_forward",
            |n, x| special::chebyshev_v(n, 2.0 * x - 1.0),
            30.0,
        ),
        case(
            "c10_metal_shifted_chebyshev_polynomial_w_forward",
            |n, x| special::chebyshev_w(n, 2.0 * x - 1.0),
            30.0,
        ),
        case("c10_metal_hermite_polynomial_h_forward", special::hermite_h, 20.0),
        case("c10_metal_hermite_polynomial_he_forward", special::hermite_he, 20.0),
    ]
}

pub fn all() -> Vec<Case> {
    let mut cases = elementary();
    cases.extend(special_functions());
    cases.extend(polynomials());
    cases
}
