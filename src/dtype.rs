//! Element types: the codes of c10's `ScalarType` and what is known of each.
//!
//! The codes are those of PyTorch's `c10/core/ScalarType.h`; they are part of the
//! ABI and never change. Only types whose element is 1, 2, 4, 8 or 16 bytes exist
//! here. What a type *means* is used by conversions alone; everything else moves
//! bytes and asks for [`DType::size`].

use crate::error::{Error, Result};

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $size:literal, $text:literal;)*) => {
        /// A c10 scalar type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i8)]
        pub enum DType { $($(#[$doc])* $name = $code),* }

        impl DType {
            /// Every type, in the order of the codes.
            pub const ALL: &'static [DType] = &[$(DType::$name),*];

            /// The type with this c10 code.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] where no c10 type has this code.
            pub fn from_code(code: i32) -> Result<Self> {
                match code {
                    $($code => Ok(DType::$name),)*
                    _ => Err(Error::invalid("dtype", code, "no c10 scalar type has this code")),
                }
            }

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(DType::$name => $size),* }
            }

            /// PyTorch's name of the type, without `torch.`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$name => $text),* }
            }
        }
    };
}

dtypes! {
    /// Unsigned 8-bit integer.
    U8 = 0, 1, "uint8";
    /// Signed 8-bit integer.
    I8 = 1, 1, "int8";
    /// Signed 16-bit integer.
    I16 = 2, 2, "int16";
    /// Signed 32-bit integer.
    I32 = 3, 4, "int32";
    /// Signed 64-bit integer.
    I64 = 4, 8, "int64";
    /// IEEE binary16.
    F16 = 5, 2, "float16";
    /// IEEE binary32.
    F32 = 6, 4, "float32";
    /// IEEE binary64.
    F64 = 7, 8, "float64";
    /// Two binary16.
    C32 = 8, 4, "complex32";
    /// Two binary32.
    C64 = 9, 8, "complex64";
    /// Two binary64.
    C128 = 10, 16, "complex128";
    /// One byte, 0 or 1.
    Bool = 11, 1, "bool";
    /// Quantized signed byte.
    QI8 = 12, 1, "qint8";
    /// Quantized unsigned byte.
    QU8 = 13, 1, "quint8";
    /// Quantized 32-bit integer.
    QI32 = 14, 4, "qint32";
    /// The upper half of a binary32.
    BF16 = 15, 2, "bfloat16";
    /// Two quantized 4-bit values in a byte.
    QU4x2 = 16, 1, "quint4x2";
    /// Four quantized 2-bit values in a byte.
    QU2x4 = 17, 1, "quint2x4";
    /// Eight bits in a byte.
    Bits1x8 = 18, 1, "bits1x8";
    /// Four pairs of bits in a byte.
    Bits2x4 = 19, 1, "bits2x4";
    /// Two nibbles in a byte.
    Bits4x2 = 20, 1, "bits4x2";
    /// An uninterpreted byte.
    Bits8 = 21, 1, "bits8";
    /// Two uninterpreted bytes.
    Bits16 = 22, 2, "bits16";
    /// 8-bit float, 5 bits of exponent.
    F8E5M2 = 23, 1, "float8_e5m2";
    /// 8-bit float, 4 bits of exponent, no infinity.
    F8E4M3FN = 24, 1, "float8_e4m3fn";
    /// 8-bit float, 5 bits of exponent, one zero.
    F8E5M2FNUZ = 25, 1, "float8_e5m2fnuz";
    /// 8-bit float, 4 bits of exponent, one zero.
    F8E4M3FNUZ = 26, 1, "float8_e4m3fnuz";
    /// Unsigned 16-bit integer.
    U16 = 27, 2, "uint16";
    /// Unsigned 32-bit integer.
    U32 = 28, 4, "uint32";
    /// Unsigned 64-bit integer.
    U64 = 29, 8, "uint64";
    /// 1-bit unsigned integer in a byte.
    U1 = 30, 1, "uint1";
    /// 2-bit unsigned integer in a byte.
    U2 = 31, 1, "uint2";
    /// 3-bit unsigned integer in a byte.
    U3 = 32, 1, "uint3";
    /// 4-bit unsigned integer in a byte.
    U4 = 33, 1, "uint4";
    /// 5-bit unsigned integer in a byte.
    U5 = 34, 1, "uint5";
    /// 6-bit unsigned integer in a byte.
    U6 = 35, 1, "uint6";
    /// 7-bit unsigned integer in a byte.
    U7 = 36, 1, "uint7";
    /// 1-bit signed integer in a byte.
    I1 = 37, 1, "int1";
    /// 2-bit signed integer in a byte.
    I2 = 38, 1, "int2";
    /// 3-bit signed integer in a byte.
    I3 = 39, 1, "int3";
    /// 4-bit signed integer in a byte.
    I4 = 40, 1, "int4";
    /// 5-bit signed integer in a byte.
    I5 = 41, 1, "int5";
    /// 6-bit signed integer in a byte.
    I6 = 42, 1, "int6";
    /// 7-bit signed integer in a byte.
    I7 = 43, 1, "int7";
    /// 8-bit power of two.
    F8E8M0FNU = 44, 1, "float8_e8m0fnu";
    /// Two 4-bit floats in a byte.
    F4E2M1FNx2 = 45, 1, "float4_e2m1fn_x2";
}

/// The types that convert to each other. Everything else is copied among itself,
/// or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// `bool`.
    Bool,
    /// An integer of 8 to 64 bits.
    Integer {
        /// Two's complement.
        signed: bool,
    },
    /// f16, bf16, f32 or f64.
    Float,
}

impl DType {
    /// The c10 code.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// What sort of number this is, where it converts to other numbers.
    pub const fn number_kind(self) -> Option<NumberKind> {
        match self {
            DType::Bool => Some(NumberKind::Bool),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                Some(NumberKind::Integer { signed: false })
            }
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                Some(NumberKind::Integer { signed: true })
            }
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Some(NumberKind::Float),
            _ => None,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_count_up_from_zero() {
        for (i, dtype) in DType::ALL.iter().enumerate() {
            assert_eq!(dtype.code(), i as i32);
            assert_eq!(DType::from_code(i as i32), Ok(*dtype));
        }
    }

    #[test]
    fn unknown_codes_are_refused_by_value() {
        for code in [-1, DType::ALL.len() as i32, i32::MAX, i32::MIN] {
            let text = DType::from_code(code).unwrap_err().to_string();
            assert!(text.contains("dtype") && text.contains(&code.to_string()));
        }
    }

    #[test]
    fn elements_are_powers_of_two_up_to_16_bytes() {
        for dtype in DType::ALL {
            assert!(matches!(dtype.size(), 1 | 2 | 4 | 8 | 16), "{dtype}");
        }
    }
}
