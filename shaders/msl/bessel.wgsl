// Bessel functions of orders 0 and 1. Uses core.wgsl, exponential.wgsl and trigonometric.wgsl.
//
// Up to 5 (J, Y), 8 (I) or 2 (K) minimax fits in x^2, with the roots of J taken out; beyond, fits of the
// amplitudes of the asymptotic forms (DLMF 10.17, 10.40) in 1/x. Where the split lies is Cephes' choice.

// x^2 - (head + tail)^2, relative near the root.
fn math_root_factor(x: f32, head: f32, tail: f32) -> f32 {
    return ((x - head) - tail) * (x + head);
}

// J0 for 0 <= x <= 5.
fn math_j0_small(x: f32) -> f32 {
    let z = x * x;
    let p = 5.6746933e-3 + z * (-2.5120217e-4 + z * (4.7842573e-6 + z * (-5.315753e-8 + z * (3.9133075e-10
        + z * (-1.9683547e-12 + z * (4.8939073e-15 + z * 1.515632e-17))))));
    return math_root_factor(x, 2.4048254, 1.08705905e-7) * math_root_factor(x, 5.520078, -7.1934148e-8) * p;
}

// J1 for 0 <= x <= 5.
fn math_j1_small(x: f32) -> f32 {
    let z = x * x;
    let p = -0.034055375 + z * (1.9373868e-3 + z * (-4.541613e-5 + z * (6.022281e-7 + z * (-5.2121147e-9
        + z * (3.2791832e-11 + z * (-1.7463988e-13 + z * 7.721461e-16))))));
    return x * math_root_factor(x, 3.831706, -7.685059e-8) * p;
}

// sqrt(2 / (pi x)) (p cos(w) - q sin(w)), or (p sin(w) + q cos(w)) of the second kind, w = x - pi/4 or
// x - 3 pi/4. The angle is reduced before the phase is taken off, so that w is as good as x for large x too.
fn math_bessel_wave(x: f32, p: f32, q: f32, order_one: bool, second_kind: bool) -> f32 {
    let angle = math_reduce_angle(x);
    let s = math_sin_of(angle);
    let c = math_sin_of(MathAngle((angle.quadrant + 1u) & 3u, angle.r));
    // sqrt(2) times cosine and sine of x - pi/4.
    var cosine = c + s;
    var sine = s - c;
    if (order_one) {
        let t = cosine;
        cosine = sine;
        sine = -t;
    }
    var wave = p * cosine - q * sine;
    if (second_kind) {
        wave = p * sine + q * cosine;
    }
    return wave * 0.5641896 * metal_precise_rsqrt(x);
}

// J0 or Y0 for x > 5.
fn math_bessel_0_large(x: f32, second_kind: bool) -> f32 {
    let r = 1.0 / min(x, 1e18);
    let z = r * r;
    let p = 1.0 + z * (-0.07030883 + z * (0.111140914 + z * (-0.47996 + z * 2.0448842)));
    let q = r * (-0.125 + z * (0.073239475 + z * (-0.22599979 + z * (1.572315 + z * (-13.50877
        + z * 71.19981)))));
    return math_bessel_wave(x, p, q, false, second_kind);
}

// J1 or Y1 for x > 5.
fn math_bessel_1_large(x: f32, second_kind: bool) -> f32 {
    let r = 1.0 / min(x, 1e18);
    let z = r * r;
    let p = 1.0 + z * (0.11718334 + z * (-0.14305316 + z * (0.57237333 + z * -2.3744812)));
    let q = r * (0.375 + z * (-0.10253606 + z * (0.2763516 + z * (-1.8221567 + z * (15.30547
        + z * -79.9239)))));
    return math_bessel_wave(x, p, q, true, second_kind);
}

fn c10_metal_bessel_j0_forward(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    let a = math_abs(x);
    if (a <= 5.0) {
        return math_j0_small(a);
    }
    return math_bessel_0_large(a, false);
}

fn c10_metal_bessel_j1_forward(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    let a = math_abs(x);
    var result: f32;
    if (math_magnitude(x) < 0x39800000u) {
        return 0.5 * x;
    }
    if (a <= 5.0) {
        result = math_j1_small(a);
    } else {
        result = math_bessel_1_large(a, false);
    }
    return select(result, math_negate(result), math_is_negative(x));
}

// What is special about the argument of Y and K: the result where .n is 1.
fn math_second_kind_special(x: f32, at_zero: f32) -> MathSplit {
    if (math_is_nan(x)) {
        return MathSplit(1, x);
    }
    if (math_is_zero(x)) {
        return MathSplit(1, at_zero);
    }
    if (math_is_negative(x)) {
        return MathSplit(1, math_nan());
    }
    if (math_is_inf(x)) {
        return MathSplit(1, 0.0);
    }
    return MathSplit(0, 0.0);
}

fn c10_metal_bessel_y0_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_from_bits(0xff800000u));
    if (special.n != 0) {
        return special.f;
    }
    if (x > 5.0) {
        return math_bessel_0_large(x, true);
    }
    let u = x * x - 12.5;
    let p = 0.48372486 + u * (-0.034612466 + u * (-3.0116898e-3 + u * (1.9892039e-4 + u * (-4.567696e-6
        + u * (5.7787656e-8 + u * (-4.7293225e-10 + u * (2.7240044e-12 + u * (-1.0662888e-14
        + u * 4.217285e-17))))))));
    return p + 0.63661975 * math_log_core(x, 0, 0.0) * math_j0_small(x);
}

fn c10_metal_bessel_y1_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_from_bits(0xff800000u));
    if (special.n != 0) {
        return special.f;
    }
    if (x > 5.0) {
        return math_bessel_1_large(x, true);
    }
    if (x < 1e-4) {
        return metal_precise_divide(-0.63661975, x);
    }
    let u = x * x - 12.5;
    let p = x * (0.1397494 + u * (7.2869207e-3 + u * (-1.0439699e-3 + u * (3.3969656e-5 + u * (-5.502128e-7
        + u * (5.467548e-9 + u * (-3.730583e-11 + u * (1.9347508e-13 + u * (1.3023235e-16
        + u * -3.7694617e-17)))))))));
    return p + 0.63661975 * (math_log_core(x, 0, 0.0) * math_j1_small(x) - 1.0 / x);
}

// I0 for |x| <= 8, z = x^2 / 4.
fn math_i0_small(z: f32) -> f32 {
    return 1.0 + z * (1.0 + z * (0.25 + z * (0.027777778 + z * (1.7361107e-3 + z * (6.9444795e-5
        + z * (1.928876e-6 + z * (3.939807e-8 + z * (6.10971e-10 + z * (7.942575e-12 + z * (5.845345e-14
        + z * 1.0945744e-15))))))))));
}

// 2 I1(x) / x for |x| <= 8, z = x^2 / 4.
fn math_i1_small(z: f32) -> f32 {
    return 1.0 + z * (0.5 + z * (0.083333336 + z * (6.944439e-3 + z * (3.472268e-4 + z * (1.1572156e-5
        + z * (2.7603448e-7 + z * (4.8536433e-9 + z * (7.438294e-11 + z * (4.3643594e-13 + z * (1.6195131e-14
        + z * -4.9047777e-17))))))))));
}

// exp(-x) I0(x) for x > 8.
fn math_i0e_large(x: f32) -> f32 {
    let t = 1.0 / min(x, 1e18);
    return metal_precise_rsqrt(x) * (0.39894226 + t * (0.04987428 + t * (0.027606007 + t * (0.04038339
        + t * (-0.074991286 + t * 0.5865015)))));
}

// exp(-x) I1(x) for x > 8.
fn math_i1e_large(x: f32) -> f32 {
    let t = 1.0 / min(x, 1e18);
    return metal_precise_rsqrt(x) * (0.3989423 + t * (-0.14960755 + t * (-0.046444733 + t * (-0.04914654
        + t * (0.037872586 + t * -0.54546094)))));
}

fn c10_metal_i0(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let a = math_abs(x);
    if (math_is_inf(x) || a >= 93.0) {
        return math_inf();
    }
    if (a <= 8.0) {
        return math_i0_small(0.25 * a * a);
    }
    // exp(a) leaves the range before the result does.
    return math_scale(math_exp_scaled(a, -8) * math_i0e_large(a), 8);
}

fn c10_metal_i0e(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let a = math_abs(x);
    if (math_is_inf(x)) {
        return 0.0;
    }
    if (a <= 8.0) {
        return math_exp_scaled(-a, 0) * math_i0_small(0.25 * a * a);
    }
    return math_i0e_large(a);
}

fn c10_metal_i1(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let a = math_abs(x);
    if (math_is_inf(x) || a >= 93.0) {
        return math_with_sign(math_inf(), x);
    }
    if (a <= 8.0) {
        return 0.5 * x * math_i1_small(0.25 * a * a);
    }
    return math_with_sign(math_scale(math_exp_scaled(a, -8) * math_i1e_large(a), 8), x);
}

fn c10_metal_i1e(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    let a = math_abs(x);
    if (math_is_inf(x)) {
        return math_with_sign(0.0, x);
    }
    if (a <= 8.0) {
        return math_exp_scaled(-a, 0) * 0.5 * x * math_i1_small(0.25 * a * a);
    }
    return math_with_sign(math_i1e_large(a), x);
}

fn c10_metal_modified_bessel_i0_forward(x: f32) -> f32 {
    return c10_metal_i0(x);
}

fn c10_metal_modified_bessel_i1_forward(x: f32) -> f32 {
    return c10_metal_i1(x);
}

// K0 for 0 < x <= 2.
fn math_k0_small(x: f32) -> f32 {
    let z = 0.25 * x * x;
    let p = -0.5772157 + z * (0.42278472 + z * (0.23069249 + z * (0.034904666 + z * (2.5951494e-3
        + z * 1.3252575e-4))));
    return p - math_log_core(x, -1, 0.0) * math_i0_small(z);
}

// K1 for 0 < x <= 2.
fn math_k1_small(x: f32) -> f32 {
    if (x < 1e-4) {
        return metal_precise_divide(1.0, x);
    }
    let z = 0.25 * x * x;
    let p = z * (0.15443133 + z * (-0.67278427 + z * (-0.1815755 + z * (-0.019182004 + z * (-1.1139635e-3
        + z * -4.381917e-5)))));
    return (1.0 + p) / x + math_log_core(x, -1, 0.0) * (0.5 * x * math_i1_small(z));
}

// exp(x) K0(x) for x > 2.
fn math_k0e_large(x: f32) -> f32 {
    let t = 1.0 / min(x, 1e18);
    return metal_precise_rsqrt(x) * (1.2533141 + t * (-0.15666418 + t * (0.08811419 + t * (-0.091478385
        + t * (0.13530836 + t * (-0.23281139 + t * (0.37437174 + t * (-0.46028465 + t * (0.35661057
        + t * -0.12627202)))))))));
}

// exp(x) K1(x) for x > 2.
fn math_k1e_large(x: f32) -> f32 {
    let t = 1.0 / min(x, 1e18);
    return metal_precise_rsqrt(x) * (1.2533141 + t * (0.46999264 + t * (-0.14685912 + t * (0.12809695
        + t * (-0.17416485 + t * (0.2853952 + t * (-0.44464403 + t * (0.53447706 + t * (-0.40695137
        + t * 0.14207855)))))))));
}

// exp(-x) f without the loss of a denormal product.
fn math_decayed(x: f32, f: f32) -> f32 {
    if (math_magnitude(x) >= 0x42d20000u) {
        return 0.0;
    }
    return math_scale(math_exp_scaled(-x, 40) * f, -40);
}

fn c10_metal_modified_bessel_k0_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_inf());
    if (special.n != 0) {
        return special.f;
    }
    if (x <= 2.0) {
        return math_k0_small(x);
    }
    return math_decayed(x, math_k0e_large(x));
}

fn c10_metal_modified_bessel_k1_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_inf());
    if (special.n != 0) {
        return special.f;
    }
    if (x <= 2.0) {
        return math_k1_small(x);
    }
    return math_decayed(x, math_k1e_large(x));
}

fn c10_metal_scaled_modified_bessel_k0_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_inf());
    if (special.n != 0) {
        return special.f;
    }
    if (x <= 2.0) {
        return math_k0_small(x) * math_exp_scaled(x, 0);
    }
    return math_k0e_large(x);
}

fn c10_metal_scaled_modified_bessel_k1_forward(x: f32) -> f32 {
    let special = math_second_kind_special(x, math_inf());
    if (special.n != 0) {
        return special.f;
    }
    if (x <= 2.0) {
        let k = math_k1_small(x);
        if (math_is_inf(k)) {
            return k;
        }
        return k * math_exp_scaled(x, 0);
    }
    return math_k1e_large(x);
}

// sin(x) / x.
fn c10_metal_spherical_bessel_j0(x: f32) -> f32 {
    if (math_is_nan(x)) {
        return x;
    }
    if (math_is_inf(x)) {
        return 0.0;
    }
    if (math_magnitude(x) < 0x3f000000u) {
        let z = x * x;
        return 1.0 + z * (-0.16666667 + z * (8.3333333e-3 + z * (-1.9841270e-4 + z * 2.7557319e-6)));
    }
    return metal_precise_sin(x) / x;
}
