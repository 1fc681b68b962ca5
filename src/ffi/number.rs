//! One element as a number, and that number as a C scalar.
//!
//! Conversions are those of PyTorch's `Tensor.item()` followed by `Scalar::to`: they
//! fail where the value does not fit, and are not the wrapping ones of `copy_`.

use crate::dtype::DType;
use crate::error::{Error, Result};
use half::{bf16, f16};

/// The value of an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Complex(f64, f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Bool(value) => value.fmt(f),
            Number::Signed(value) => value.fmt(f),
            Number::Unsigned(value) => value.fmt(f),
            Number::Float(value) => value.fmt(f),
            Number::Complex(re, im) => write!(f, "{re}{im:+}j"),
        }
    }
}

/// The first `N` bytes, zero where there are fewer.
fn head<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut head = [0; N];
    head.iter_mut().zip(bytes).for_each(|(to, &from)| *to = from);
    head
}

impl Number {
    /// The element in `bytes`, in native byte order.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for types that are not numbers here: quantized, bits,
    /// float8 and smaller.
    pub(super) fn read(bytes: &[u8], dtype: DType) -> Result<Number> {
        let half = |bytes: &[u8]| f16::from_ne_bytes(head(bytes)).to_f64();
        let tail = bytes.get(dtype.size() / 2..).unwrap_or(&[]);
        Ok(match dtype {
            DType::Bool => Number::Bool(head::<1>(bytes) != [0]),
            DType::U8 => Number::Unsigned(u8::from_ne_bytes(head(bytes)).into()),
            DType::U16 => Number::Unsigned(u16::from_ne_bytes(head(bytes)).into()),
            DType::U32 => Number::Unsigned(u32::from_ne_bytes(head(bytes)).into()),
            DType::U64 => Number::Unsigned(u64::from_ne_bytes(head(bytes))),
            DType::I8 => Number::Signed(i8::from_ne_bytes(head(bytes)).into()),
            DType::I16 => Number::Signed(i16::from_ne_bytes(head(bytes)).into()),
            DType::I32 => Number::Signed(i32::from_ne_bytes(head(bytes)).into()),
            DType::I64 => Number::Signed(i64::from_ne_bytes(head(bytes))),
            DType::F16 => Number::Float(half(bytes)),
            DType::BF16 => Number::Float(bf16::from_ne_bytes(head(bytes)).to_f64()),
            DType::F32 => Number::Float(f32::from_ne_bytes(head(bytes)).into()),
            DType::F64 => Number::Float(f64::from_ne_bytes(head(bytes))),
            DType::C32 => Number::Complex(half(bytes), half(tail)),
            DType::C64 => {
                let part = |bytes: &[u8]| f64::from(f32::from_ne_bytes(head(bytes)));
                Number::Complex(part(bytes), part(tail))
            }
            DType::C128 => {
                let part = |bytes: &[u8]| f64::from_ne_bytes(head(bytes));
                Number::Complex(part(bytes), part(tail))
            }
            _ => return Err(Error::NotSupported(format!("{dtype} elements as numbers"))),
        })
    }

    fn does_not_fit(self, target: &str) -> Error {
        Error::invalid(
            "tensor",
            format_args!("of value {self}"),
            format!("{target} cannot hold it"),
        )
    }

    fn real(self, target: &str) -> Result<Number> {
        match self {
            Number::Complex(re, 0.0) => Ok(Number::Float(re)),
            Number::Complex(..) => Err(self.does_not_fit(target)),
            other => Ok(other),
        }
    }

    /// As a real number of magnitude `max` at most, or infinite, or NaN.
    pub(super) fn to_float(self, max: f64, target: &str) -> Result<f64> {
        let value = match self.real(target)? {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Signed(value) => value as f64,
            Number::Unsigned(value) => value as f64,
            Number::Float(value) | Number::Complex(value, _) => value,
        };
        if value.is_finite() && value.abs() > max {
            return Err(self.does_not_fit(target));
        }
        Ok(value)
    }

    /// As an integer of the type `T`: fractions are cut off. A negative integer becomes
    /// an unsigned one modulo the type's range, as long as its magnitude fits.
    pub(super) fn to_integer<T: Integer>(self) -> Result<T> {
        let value = match self.real(T::NAME)? {
            Number::Bool(value) => i128::from(value),
            Number::Signed(value) => match T::wrap(value) {
                Some(wrapped) => return Ok(wrapped),
                None => i128::from(value),
            },
            Number::Unsigned(value) => i128::from(value),
            Number::Float(value) | Number::Complex(value, _) => {
                if value.is_nan() {
                    return Err(self.does_not_fit(T::NAME));
                }
                // Saturates far outside of every target's range.
                value as i128
            }
        };
        T::try_from(value).map_err(|_| self.does_not_fit(T::NAME))
    }

    /// Whether it is not zero; NaN is not.
    pub(super) fn to_bool(self) -> bool {
        match self {
            Number::Bool(value) => value,
            Number::Signed(value) => value != 0,
            Number::Unsigned(value) => value != 0,
            Number::Float(value) => value != 0.0,
            Number::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// Its real and imaginary parts, of magnitude `max` at most each.
    pub(super) fn to_complex(self, max: f64, target: &str) -> Result<(f64, f64)> {
        match self {
            Number::Complex(re, im) => Ok((
                Number::Float(re).to_float(max, target)?,
                Number::Float(im).to_float(max, target)?,
            )),
            real => Ok((real.to_float(max, target)?, 0.0)),
        }
    }

    /// Whether it, or a part of it, is NaN; and the same of infinity.
    pub(super) fn nan_or_infinite(self) -> (bool, bool) {
        match self {
            Number::Float(value) => (value.is_nan(), value.is_infinite()),
            Number::Complex(re, im) => {
                (re.is_nan() || im.is_nan(), re.is_infinite() || im.is_infinite())
            }
            _ => (false, false),
        }
    }
}

/// The integers of C.
pub(super) trait Integer: TryFrom<i128> {
    /// c10's name.
    const NAME: &'static str;
    /// A negative integer in an unsigned type, where its magnitude fits.
    fn wrap(value: i64) -> Option<Self>;
}

macro_rules! integers {
    (signed $($type:ty = $name:literal),*; unsigned $($utype:ty = $uname:literal),*) => {
        $(impl Integer for $type {
            const NAME: &'static str = $name;
            fn wrap(_: i64) -> Option<Self> {
                None
            }
        })*
        $(impl Integer for $utype {
            const NAME: &'static str = $uname;
            fn wrap(value: i64) -> Option<Self> {
                let magnitude = <$utype>::try_from(value.unsigned_abs()).ok()?;
                (value < 0).then(|| magnitude.wrapping_neg())
            }
        })*
    };
}

integers! {
    signed i8 = "int8", i16 = "int16", i32 = "int32", i64 = "int64";
    unsigned u8 = "uint8", u16 = "uint16", u32 = "uint32", u64 = "uint64"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_in_their_own_type() {
        let read = |bytes: &[u8], dtype| Number::read(bytes, dtype).unwrap();
        assert_eq!(read(&[2], DType::Bool), Number::Bool(true));
        assert_eq!(read(&[0xff], DType::I8), Number::Signed(-1));
        assert_eq!(read(&[0xff], DType::U8), Number::Unsigned(255));
        assert_eq!(read(&u64::MAX.to_ne_bytes(), DType::U64), Number::Unsigned(u64::MAX));
        assert_eq!(read(&0x3c00u16.to_ne_bytes(), DType::F16), Number::Float(1.0));
        assert_eq!(read(&0xbf80u16.to_ne_bytes(), DType::BF16), Number::Float(-1.0));
        let pair: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
        assert_eq!(read(&pair, DType::C64), Number::Complex(1.5, -2.0));
        assert!(Number::read(&[0], DType::F8E5M2).is_err());
    }

    #[test]
    fn integers_fit_or_fail() {
        assert_eq!(Number::Float(-3.9).to_integer::<i8>(), Ok(-3));
        assert_eq!(Number::Float(-0.5).to_integer::<u8>(), Ok(0));
        assert_eq!(Number::Signed(-1).to_integer::<u8>(), Ok(255));
        assert_eq!(Number::Signed(-255).to_integer::<u8>(), Ok(1));
        assert_eq!(Number::Signed(i64::MIN).to_integer::<u64>(), Ok(1 << 63));
        assert_eq!(Number::Bool(true).to_integer::<i64>(), Ok(1));
        assert_eq!(Number::Complex(7.0, 0.0).to_integer::<i32>(), Ok(7));
        for bad in [
            Number::Float(f64::NAN),
            Number::Float(f64::INFINITY),
            Number::Float(128.0),
            Number::Signed(-129),
            Number::Unsigned(128),
            Number::Complex(0.0, 1.0),
        ] {
            assert!(bad.to_integer::<i8>().is_err(), "{bad}");
        }
        assert!(Number::Signed(-256).to_integer::<u8>().is_err());
    }

    #[test]
    fn floats_fit_or_fail() {
        assert_eq!(Number::Float(f64::INFINITY).to_float(1.0, "t"), Ok(f64::INFINITY));
        assert!(Number::Float(f64::NAN).to_float(1.0, "t").unwrap().is_nan());
        let error = Number::Float(70000.0).to_float(65504.0, "float16").unwrap_err();
        assert!(error.to_string().contains("float16 cannot hold it"), "{error}");
        assert_eq!(Number::Signed(-2).to_complex(1e3, "t"), Ok((-2.0, 0.0)));
    }

    #[test]
    fn anything_but_zero_is_true() {
        assert!(Number::Float(f64::NAN).to_bool() && Number::Complex(0.0, 1.0).to_bool());
        assert!(!Number::Float(-0.0).to_bool() && !Number::Signed(0).to_bool());
    }
}
