//! Values of Metal's scalar types as bytes, and C++'s conversions and operators on the CPU.

use aoti_wgpu::msl::Scalar;
use half::{bf16, f16};

/// A value of any type, wide enough for each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i128),
    /// Of float, half and bfloat alike.
    Float(f32),
}

pub const ALL: [Scalar; 12] = [
    Scalar::Bool,
    Scalar::Char,
    Scalar::UChar,
    Scalar::Short,
    Scalar::UShort,
    Scalar::Int,
    Scalar::UInt,
    Scalar::Long,
    Scalar::ULong,
    Scalar::Half,
    Scalar::BFloat,
    Scalar::Float,
];

fn bits(scalar: Scalar) -> u32 {
    8 * scalar.size()
}

/// The integer modulo the type's range.
fn wrapped(value: i128, scalar: Scalar) -> i128 {
    if scalar == Scalar::Bool {
        return i128::from(value != 0);
    }
    let range = 1_i128 << bits(scalar);
    let value = value.rem_euclid(range);
    if scalar.is_signed() && value >= range / 2 { value - range } else { value }
}

pub fn limits(scalar: Scalar) -> (i128, i128) {
    match scalar {
        Scalar::Bool => (0, 1),
        _ if scalar.is_signed() => (-(1 << (bits(scalar) - 1)), (1 << (bits(scalar) - 1)) - 1),
        _ => (0, (1 << bits(scalar)) - 1),
    }
}

pub fn rounded(value: f32, scalar: Scalar) -> f32 {
    match scalar {
        Scalar::Half => f16::from_f32(value).to_f32(),
        Scalar::BFloat => bf16::from_f32(value).to_f32(),
        _ => value,
    }
}

/// `static_cast<to>(value)`, as the front end defines it.
pub fn convert(value: Number, to: Scalar) -> Number {
    match value {
        Number::Int(value) if to.is_float() => {
            // Every integer type converts to float at once, and then to the narrow type.
            let float = if value < 0 { value as i64 as f32 } else { value as u64 as f32 };
            Number::Float(rounded(float, to))
        }
        Number::Int(value) => Number::Int(wrapped(value, to)),
        Number::Float(value) if to.is_float() => Number::Float(rounded(value, to)),
        Number::Float(value) if to == Scalar::Bool => Number::Int(i128::from(value != 0.0)),
        Number::Float(value) => {
            let through = match to {
                Scalar::UInt | Scalar::Long | Scalar::ULong => to,
                _ => Scalar::Int,
            };
            let (least, most) = limits(through);
            // NaN becomes 0.
            let whole = (value as f64 as i128).clamp(least, most);
            Number::Int(wrapped(whole, to))
        }
    }
}

/// `left op right` of the type that C++ gives it.
pub fn binary(op: &str, left: (Number, Scalar), right: (Number, Scalar)) -> (Number, Scalar) {
    let shift = op == "<<" || op == ">>";
    let ty = if shift { left.1.promoted() } else { left.1.common(right.1) };
    let a = convert(left.0, ty);
    let b = convert(right.0, if shift { Scalar::UInt } else { ty });
    let truth = |value: bool| (Number::Int(value.into()), Scalar::Bool);
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => {
            let value = match op {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" => a / b,
                "<" => return truth(a < b),
                "<=" => return truth(a <= b),
                ">" => return truth(a > b),
                ">=" => return truth(a >= b),
                "==" => return truth(a == b),
                "!=" => return truth(a != b),
                _ => panic!("{op} of floats"),
            };
            (Number::Float(rounded(value, ty)), ty)
        }
        (Number::Int(a), Number::Int(b)) => {
            let width = i128::from(bits(ty));
            let value = match op {
                "+" => a + b,
                "-" => a - b,
                // 64 bits by 64 bits fit 128, but for the sign of the greatest.
                "*" => a.wrapping_mul(b),
                "/" => {
                    if b == 0 {
                        a
                    } else {
                        a / b
                    }
                }
                "%" => {
                    if b == 0 {
                        0
                    } else {
                        a % b
                    }
                }
                "&" => a & b,
                "|" => a | b,
                "^" => a ^ b,
                "<<" => a << b.rem_euclid(width),
                ">>" => a >> b.rem_euclid(width),
                "<" => return truth(a < b),
                "<=" => return truth(a <= b),
                ">" => return truth(a > b),
                ">=" => return truth(a >= b),
                "==" => return truth(a == b),
                "!=" => return truth(a != b),
                _ => panic!("{op} of integers"),
            };
            (Number::Int(wrapped(value, ty)), ty)
        }
        _ => unreachable!("both are of one type"),
    }
}

pub fn encode(value: Number, scalar: Scalar) -> Vec<u8> {
    match (value, scalar) {
        (Number::Float(value), Scalar::Half) => f16::from_f32(value).to_le_bytes().to_vec(),
        (Number::Float(value), Scalar::BFloat) => bf16::from_f32(value).to_le_bytes().to_vec(),
        (Number::Float(value), _) => value.to_le_bytes().to_vec(),
        (Number::Int(value), _) => value.to_le_bytes()[..scalar.size() as usize].to_vec(),
    }
}

pub fn decode(bytes: &[u8], scalar: Scalar) -> Number {
    match scalar {
        Scalar::Half => Number::Float(f16::from_le_bytes(bytes.try_into().unwrap()).to_f32()),
        Scalar::BFloat => Number::Float(bf16::from_le_bytes(bytes.try_into().unwrap()).to_f32()),
        Scalar::Float => Number::Float(f32::from_le_bytes(bytes.try_into().unwrap())),
        _ => {
            let mut wide = [0; 16];
            wide[..bytes.len()].copy_from_slice(bytes);
            Number::Int(wrapped(i128::from_le_bytes(wide), scalar))
        }
    }
}

pub fn encode_all(values: &[Number], scalar: Scalar) -> Vec<u8> {
    let mut bytes: Vec<u8> = values.iter().flat_map(|&value| encode(value, scalar)).collect();
    bytes.resize(bytes.len().next_multiple_of(4).max(4), 0);
    bytes
}

pub fn decode_all(bytes: &[u8], scalar: Scalar, count: usize) -> Vec<Number> {
    bytes
        .chunks_exact(scalar.size() as usize)
        .take(count)
        .map(|bytes| decode(bytes, scalar))
        .collect()
}

/// Values at the type's edges, and some between.
pub fn edges(scalar: Scalar) -> Vec<Number> {
    if scalar == Scalar::Bool {
        return vec![Number::Int(0), Number::Int(1)];
    }
    if scalar.is_integer() {
        let (least, most) = limits(scalar);
        let some = [
            least,
            least + 1,
            -100,
            -7,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            5,
            8,
            31,
            33,
            63,
            100,
            most - 1,
            most,
        ];
        let mut values: Vec<i128> =
            some.iter().copied().filter(|value| (least..=most).contains(value)).collect();
        values.dedup();
        return values.into_iter().map(Number::Int).collect();
    }
    let mut values = vec![
        0.0,
        1.0,
        1.5,
        2.0,
        0.5,
        2.5,
        3.0,
        0.1,
        100.25,
        127.5,
        255.5,
        256.0,
        1e-3,
        65504.0,
        32767.0,
        f32::INFINITY,
    ];
    match scalar {
        // Subnormals of half are normal floats.
        Scalar::Half => {
            values.extend([5.960_464_5e-8, 6.097_555e-5, 6.103_515_6e-5, 1.000_976_6, 2049.0])
        }
        Scalar::BFloat => values.extend([1.007_812_5, 3.389_531_4e38, 1e-30, 1e10, 1e20]),
        _ => values.extend([
            f32::MAX,
            f32::MIN_POSITIVE,
            1e-40,
            1e-45,
            16_777_217.0,
            2_147_483_520.0,
            2_147_483_648.0,
            4_294_967_040.0,
            4_294_967_296.0,
            9.223_371e18,
            9.223_372e18,
            1.844_674_3e19,
            1.844_674_4e19,
            65_519.0,
            65_520.0,
            1e-5,
            0.333_333_34,
        ]),
    }
    let mut all: Vec<f32> = values.iter().flat_map(|&value| [value, -value]).collect();
    all.push(f32::NAN);
    all.into_iter().map(|value| Number::Float(rounded(value, scalar))).collect()
}

/// Whether two results are the same: zeros of both signs are, and all NaNs. A denormal may be
/// flushed to 0, and an arithmetic result may be off by `ulps`.
pub fn same(found: Number, expected: Number, ulps: u32) -> bool {
    let (Number::Float(found), Number::Float(expected)) = (found, expected) else {
        return found == expected;
    };
    if found.is_nan() || expected.is_nan() {
        return found.is_nan() && expected.is_nan();
    }
    if found == expected {
        return true;
    }
    let tiny = f32::MIN_POSITIVE;
    if ulps > 0 && found == 0.0 && expected.abs() <= tiny {
        return true;
    }
    let distance = (i64::from(found.to_bits()) - i64::from(expected.to_bits())).unsigned_abs();
    found.is_sign_negative() == expected.is_sign_negative() && distance <= ulps.into()
}
