//! Scalar and vector types, and C++'s rules for combining them.

/// A scalar type of Metal's C++. `long` has 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// `bool`, one byte.
    Bool,
    /// Signed, 8 bits.
    Char,
    /// Unsigned, 8 bits.
    UChar,
    /// Signed, 16 bits.
    Short,
    /// Unsigned, 16 bits.
    UShort,
    /// Signed, 32 bits.
    Int,
    /// Unsigned, 32 bits.
    UInt,
    /// Signed, 64 bits.
    Long,
    /// Unsigned, 64 bits.
    ULong,
    /// IEEE binary16.
    Half,
    /// The upper half of a binary32.
    BFloat,
    /// IEEE binary32.
    Float,
}

/// What holds a value of a scalar type in the generated module.
///
/// Narrow integers are kept extended to 32 bits, half and bfloat as the f32 of equal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Register {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
}

impl Scalar {
    /// Bytes in memory.
    pub const fn size(self) -> u32 {
        match self {
            Self::Bool | Self::Char | Self::UChar => 1,
            Self::Short | Self::UShort | Self::Half | Self::BFloat => 2,
            Self::Int | Self::UInt | Self::Float => 4,
            Self::Long | Self::ULong => 8,
        }
    }

    /// half, bfloat or float.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Half | Self::BFloat | Self::Float)
    }

    /// bool or an integer.
    pub const fn is_integer(self) -> bool {
        !self.is_float()
    }

    /// Whether negative values exist.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Char | Self::Short | Self::Int | Self::Long) || self.is_float()
    }

    pub(super) const fn register(self) -> Register {
        match self {
            Self::Bool => Register::Bool,
            Self::Char | Self::Short | Self::Int => Register::I32,
            Self::UChar | Self::UShort | Self::UInt => Register::U32,
            Self::Long => Register::I64,
            Self::ULong => Register::U64,
            Self::Half | Self::BFloat | Self::Float => Register::F32,
        }
    }

    /// The type after integral promotion: what is narrower than int becomes int.
    pub const fn promoted(self) -> Self {
        match self {
            Self::Bool | Self::Char | Self::UChar | Self::Short | Self::UShort => Self::Int,
            other => other,
        }
    }

    /// The type of `a + b`, by the usual arithmetic conversions.
    ///
    /// half with bfloat, which Metal refuses, is float.
    pub fn common(self, other: Self) -> Self {
        match (self.is_float(), other.is_float()) {
            (true, true) if self == other => self,
            (true, true) => Self::Float,
            (true, false) => self,
            (false, true) => other,
            // From int on, the order of the variants is the order of conversion.
            (false, false) => self.promoted().max(other.promoted()),
        }
    }

    /// Metal's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Char => "char",
            Self::UChar => "uchar",
            Self::Short => "short",
            Self::UShort => "ushort",
            Self::Int => "int",
            Self::UInt => "uint",
            Self::Long => "long",
            Self::ULong => "ulong",
            Self::Half => "half",
            Self::BFloat => "bfloat",
            Self::Float => "float",
        }
    }

    /// The scalar that a single word names, aliases of `<stdint.h>` included.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "char" | "int8_t" => Self::Char,
            "uchar" | "uint8_t" => Self::UChar,
            "short" | "int16_t" => Self::Short,
            "ushort" | "uint16_t" => Self::UShort,
            "int" | "int32_t" => Self::Int,
            "uint" | "uint32_t" => Self::UInt,
            "long" | "int64_t" | "ptrdiff_t" => Self::Long,
            "ulong" | "uint64_t" | "size_t" => Self::ULong,
            "half" => Self::Half,
            "bfloat" => Self::BFloat,
            "float" => Self::Float,
            _ => return None,
        })
    }
}

/// A scalar (`lanes` 1) or a vector of 2 to 4 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The type of a lane.
    pub scalar: Scalar,
    /// 1 to 4.
    pub lanes: u8,
}

impl Type {
    /// One lane.
    pub const fn scalar(scalar: Scalar) -> Self {
        Self { scalar, lanes: 1 }
    }

    /// Elements from one value to the next in memory: a vector of 3 takes the room of 4.
    pub(super) const fn stride(self) -> u32 {
        match self.lanes {
            3 => 4,
            lanes => lanes as u32,
        }
    }

    /// `float`, `uint3`, ...: a scalar's name and perhaps a number of lanes.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        if let Some(scalar) = Scalar::from_name(name) {
            return Some(Self::scalar(scalar));
        }
        let lanes = match name.as_bytes().last()? {
            b'2' => 2,
            b'3' => 3,
            b'4' => 4,
            _ => return None,
        };
        let base = name.get(..name.len() - 1)?;
        // `int8_t2` is no type; only Metal's own names have vectors.
        let scalar = Scalar::from_name(base).filter(|scalar| scalar.name() == base)?;
        Some(Self { scalar, lanes })
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lanes {
            1 => f.write_str(self.scalar.name()),
            lanes => write!(f, "{}{lanes}", self.scalar.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_follows_cpp() {
        use Scalar::*;
        assert_eq!(Bool.common(Bool), Int);
        assert_eq!(UChar.common(Char), Int);
        assert_eq!(UShort.common(Short), Int);
        assert_eq!(Int.common(UInt), UInt);
        assert_eq!(UInt.common(Long), Long);
        assert_eq!(Long.common(ULong), ULong);
        assert_eq!(Int.common(Half), Half);
        assert_eq!(Long.common(BFloat), BFloat);
        assert_eq!(Half.common(Half), Half);
        assert_eq!(Half.common(Float), Float);
        assert_eq!(Half.common(BFloat), Float);
    }

    #[test]
    fn names_of_types() {
        assert_eq!(Type::from_name("uint3"), Some(Type { scalar: Scalar::UInt, lanes: 3 }));
        assert_eq!(Type::from_name("int64_t"), Some(Type::scalar(Scalar::Long)));
        assert_eq!(Type::from_name("int64_t2"), None);
        assert_eq!(Type::from_name("float5"), None);
        assert_eq!(Type::from_name("2"), None);
        assert_eq!(Type::from_name(""), None);
    }
}
