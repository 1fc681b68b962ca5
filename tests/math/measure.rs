//! What an error is, and whether it is small enough.

use crate::cases::{Case, Shape};
use crate::device::Device;
use crate::inputs::{Random, edges, pair_edges};

const RANDOM: usize = 6000;

/// The distance between neighbours of f32 at `x`, that of denormals at least.
fn ulp(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

/// Error of `got` in units of the bound; 0 where both are the same special value.
fn excess(case: &Case, got: f32, want: f64, allowance: f64) -> (f64, f64) {
    if want.is_nan() {
        return if got.is_nan() { (0.0, 0.0) } else { (f64::INFINITY, f64::INFINITY) };
    }
    let rounded = want as f32;
    if rounded.to_bits() == got.to_bits() {
        return (0.0, 0.0);
    }
    if got.is_nan() {
        return (f64::INFINITY, f64::INFINITY);
    }
    // Past the range either neighbour of the threshold will do.
    let limit = f64::from(f32::MAX);
    let want = want.clamp(-limit * 1.0001, limit * 1.0001);
    if got.is_infinite() && rounded.is_infinite() {
        let same = got.is_sign_negative() == rounded.is_sign_negative();
        return if same { (0.0, 0.0) } else { (f64::INFINITY, f64::INFINITY) };
    }
    let got =
        if got.is_infinite() { limit.copysign(f64::from(got)) * 1.0000001 } else { f64::from(got) };
    if got == 0.0 && want == 0.0 && case.signed_zero {
        let same = got.is_sign_negative() == want.is_sign_negative();
        return if same { (0.0, 0.0) } else { (f64::INFINITY, f64::INFINITY) };
    }
    let error = (got - want).abs();
    let ulps = error / ulp(want);
    (ulps, error / (case.ulps * ulp(want) + allowance).max(1e-300))
}

fn inputs(case: &Case) -> (Vec<u32>, Vec<u32>) {
    let mut random = Random(case.name.len() as u64 * 7919);
    let mut pairs: Vec<(f32, u32)> = Vec::new();
    let (low, high) = case.range;
    let (second_low, second_high) = case.second;
    match case.shape {
        Shape::Unary(_) | Shape::Predicate(_) => {
            pairs.extend(edges().into_iter().map(|x| (x, 0)));
            pairs.extend((0..RANDOM).map(|_| (random.any(), 0)));
            pairs.extend((0..RANDOM).map(|_| (random.between(low, high), 0)));
        }
        Shape::Binary(_) => {
            for x in pair_edges() {
                pairs.extend(pair_edges().into_iter().map(|y| (x, y.to_bits())));
            }
            pairs.extend((0..RANDOM).map(|_| (random.any(), random.any().to_bits())));
            pairs.extend((0..RANDOM).map(|_| {
                (random.between(low, high), random.between(second_low, second_high).to_bits())
            }));
        }
        Shape::Seeded(..) | Shape::Words(..) => {
            let words: Vec<(u32, u32)> =
                (0..RANDOM).map(|_| (random.next() as u32, random.next() as u32)).collect();
            return words.into_iter().unzip();
        }
        Shape::Degree(_) | Shape::Order(_) => {
            let degrees: Vec<i32> = (second_low as i32..=second_high as i32).collect();
            for &n in &degrees {
                pairs.extend(pair_edges().into_iter().map(|x| (x, n.cast_unsigned())));
            }
            pairs.extend(
                (0..RANDOM).map(|i| {
                    (random.between(low, high), degrees[i % degrees.len()].cast_unsigned())
                }),
            );
        }
    }
    pairs.iter().map(|&(x, y)| (x.to_bits(), y)).unzip()
}

/// What `case` allows beside its units in the last place.
fn allowance(case: &Case, a: u32, b: u32, want: f64) -> f64 {
    let x = f32::from_bits(a);
    let second = match case.shape {
        Shape::Degree(_) | Shape::Order(_) => f64::from(b.cast_signed()),
        _ => f64::from(f32::from_bits(b)),
    };
    let mut allowed = case.size.map_or(0.0, |size| size(f64::from(x), second) * 2f64.powi(-24));
    if case.conditioned {
        let mut neighbours = vec![(x.next_up().to_bits(), b), (x.next_down().to_bits(), b)];
        if let Shape::Binary(_) = case.shape {
            let y = f32::from_bits(b);
            neighbours.extend([(a, y.next_up().to_bits()), (a, y.next_down().to_bits())]);
        }
        for (a, b) in neighbours {
            let change = (reference(case, a, b) - want).abs();
            allowed = if change.is_finite() { allowed.max(change) } else { allowed };
        }
    }
    if allowed.is_finite() { allowed } else { 0.0 }
}

/// The error where the device may have taken zero for a denormal argument, intermediate value or result.
fn excess_flushed(case: &Case, got: f32, a: u32, b: u32, allowed: f64) -> f64 {
    let flush = |bits: u32| {
        if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
    };
    let floor = 2.0 * f64::from(f32::MIN_POSITIVE);
    let second = if let Shape::Binary(_) = case.shape { flush(b) } else { b };
    let sides = [(a, b), (flush(a), b), (a, second), (flush(a), second)];
    let parts = sides.map(|(a, b)| {
        let want = reference(case, a, b);
        let zeros = got == 0.0 && want == 0.0;
        if zeros { 0.0 } else { excess(case, got, want, allowed + floor).1 }
    });
    parts.into_iter().fold(f64::INFINITY, f64::min)
}

fn reference(case: &Case, a: u32, b: u32) -> f64 {
    let x = f64::from(f32::from_bits(a));
    match case.shape {
        Shape::Unary(f) => f(x),
        Shape::Predicate(f) => f64::from(u8::from(f(f32::from_bits(a)))),
        Shape::Binary(f) => f(x, f64::from(f32::from_bits(b))),
        Shape::Degree(f) | Shape::Order(f) => f(b.cast_signed(), x),
        Shape::Seeded(_, f) => f(a, b),
        Shape::Words(_, f) => f64::from(f(a, b)),
    }
}

/// Runs `case`, prints its largest error, and fails above its bound.
pub fn check(case: &Case, device: &Device) -> Result<(), String> {
    let (a, b) = inputs(case);
    let results = device.run(case, &a, &b);
    let (mut most, mut worst, mut wrong) = (0.0f64, 0.0f64, Vec::new());
    for ((&a, &b), &bits) in a.iter().zip(&b).zip(&results) {
        let want = reference(case, a, b);
        if let Shape::Words(..) = case.shape {
            if f64::from(bits) != want {
                wrong.push(format!(
                    "  ({a:#010x}, {b:#010x}): {bits:#010x}, want {:#010x}",
                    want as u32
                ));
            }
            continue;
        }
        let got = match case.shape {
            Shape::Predicate(_) => bits as f32,
            _ => f32::from_bits(bits),
        };
        let allowed = allowance(case, a, b, want);
        let (ulps, mut part) = excess(case, got, want, allowed);
        if part > 1.0 && device.flushes && case.ulps > 0.0 {
            part = excess_flushed(case, got, a, b, allowed).min(part);
        }
        // Where the allowance is the larger part, the last place says nothing.
        if allowed <= case.ulps * ulp(want) {
            most = most.max(ulps);
        }
        worst = worst.max(part);
        if part > 1.0 {
            let x = f32::from_bits(a);
            let y = match case.shape {
                Shape::Degree(_) | Shape::Order(_) => format!("{}", b.cast_signed()),
                _ => format!("{:e}", f32::from_bits(b)),
            };
            wrong.push(format!(
                "  ({x:e} [{a:#010x}], {y}): {got:e}, want {want:e} ({ulps:.2} ulp)"
            ));
        }
    }
    println!("{}: {:.2} ulp, {:.2} of the bound, on {}", case.name, most, worst, device.name);
    if wrong.is_empty() {
        return Ok(());
    }
    let shown = wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
    Err(format!("{} of {} values beyond {} ulp\n{shown}", wrong.len(), results.len(), case.ulps))
}
