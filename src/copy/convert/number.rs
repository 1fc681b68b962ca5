//! The element types and what one becomes as another.

/// A value that converts to every other one. Every integer but the largest `u64`s
/// passes through an `i64`, f16 and bf16 through an `f32`.
pub(super) trait Number: Copy {
    fn to<T: Number>(self) -> T;
    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
}

/// A byte; true unless 0.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(super) struct Bool(pub u8);

/// The bits of an IEEE binary16.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(super) struct Half(pub u16);

/// The upper half of a binary32's bits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(super) struct BFloat16(pub u16);

macro_rules! integers {
    ($($type:ty),*) => { $(impl Number for $type {
        fn to<T: Number>(self) -> T { T::from_i64(i64::from(self)) }
        fn from_i64(value: i64) -> Self { value as $type }
        fn from_u64(value: u64) -> Self { value as $type }
        fn from_f32(value: f32) -> Self { value as $type }
        fn from_f64(value: f64) -> Self { value as $type }
    })* };
}

integers!(u8, i8, u16, i16, u32, i32, i64);

impl Number for u64 {
    fn to<T: Number>(self) -> T {
        T::from_u64(self)
    }
    fn from_i64(value: i64) -> Self {
        value as u64
    }
    fn from_u64(value: u64) -> Self {
        value
    }
    fn from_f32(value: f32) -> Self {
        value as u64
    }
    fn from_f64(value: f64) -> Self {
        value as u64
    }
}

impl Number for f32 {
    fn to<T: Number>(self) -> T {
        T::from_f32(self)
    }
    fn from_i64(value: i64) -> Self {
        value as f32
    }
    fn from_u64(value: u64) -> Self {
        value as f32
    }
    fn from_f32(value: f32) -> Self {
        value
    }
    fn from_f64(value: f64) -> Self {
        if value.is_nan() {
            // Rust leaves a NaN's bits open.
            let bits = value.to_bits();
            let sign = (bits >> 32) as u32 & 0x8000_0000;
            return f32::from_bits(sign | 0x7fc0_0000 | ((bits >> 29) as u32 & 0x003f_ffff));
        }
        value as f32
    }
}

impl Number for f64 {
    fn to<T: Number>(self) -> T {
        T::from_f64(self)
    }
    fn from_i64(value: i64) -> Self {
        value as f64
    }
    fn from_u64(value: u64) -> Self {
        value as f64
    }
    fn from_f32(value: f32) -> Self {
        if value.is_nan() {
            let bits = u64::from(value.to_bits());
            let sign = (bits & 0x8000_0000) << 32;
            return f64::from_bits(sign | 0x7ff8_0000_0000_0000 | ((bits & 0x003f_ffff) << 29));
        }
        f64::from(value)
    }
    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Number for Bool {
    fn to<T: Number>(self) -> T {
        T::from_i64(i64::from(self.0 != 0))
    }
    fn from_i64(value: i64) -> Self {
        Bool((value != 0).into())
    }
    fn from_u64(value: u64) -> Self {
        Bool((value != 0).into())
    }
    fn from_f32(value: f32) -> Self {
        Bool((value != 0.0).into())
    }
    fn from_f64(value: f64) -> Self {
        Bool((value != 0.0).into())
    }
}

impl Number for BFloat16 {
    fn to<T: Number>(self) -> T {
        T::from_f32(f32::from_bits(u32::from(self.0) << 16))
    }
    fn from_i64(value: i64) -> Self {
        Self::from_f32(value as f32)
    }
    fn from_u64(value: u64) -> Self {
        Self::from_f32(value as f32)
    }
    fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let quiet = (bits >> 16) | 0x0040;
        // Up by just less than half of the last place, and by half where it is odd: a
        // carry out of the mantissa is the right exponent, also of infinity.
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        BFloat16(if value.is_nan() { quiet } else { rounded } as u16)
    }
    fn from_f64(value: f64) -> Self {
        Self::from_f32(f32::from_f64(value))
    }
}

impl Number for Half {
    fn to<T: Number>(self) -> T {
        T::from_f32(f32::from_bits(half_to_f32(self.0)))
    }
    fn from_i64(value: i64) -> Self {
        Self::from_f32(value as f32)
    }
    fn from_u64(value: u64) -> Self {
        Self::from_f32(value as f32)
    }
    fn from_f32(value: f32) -> Self {
        Half(f32_to_half(value.to_bits()))
    }
    fn from_f64(value: f64) -> Self {
        Self::from_f32(f32::from_f64(value))
    }
}

/// Every binary16 is a binary32. A signalling NaN stays one: the bits are moved.
fn half_to_f32(half: u16) -> u32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff);
    let bits = if rest >= 0x7c00 {
        (rest << 13) | 0x7f80_0000
    } else if rest >= 0x0400 {
        (rest << 13) + (112 << 23)
    } else {
        // A subnormal counts steps of 2^-24, which a float holds exactly.
        (rest as f32 * (1.0 / (1 << 24) as f32)).to_bits()
    };
    sign | bits
}

/// To the nearest, ties to even.
fn f32_to_half(bits: u32) -> u16 {
    let sign = (bits >> 16) as u16 & 0x8000;
    let rest = bits & 0x7fff_ffff;
    let half = if rest > 0x7f80_0000 {
        0x7e00 | ((rest >> 13) & 0x01ff)
    } else if rest >= 0x4780_0000 {
        // 2^16 and more; what lies between the largest half and it rounds below.
        0x7c00
    } else if rest >= 0x3880_0000 {
        // Normal, from 2^-14: another bias, then as for bf16.
        let rebiased = rest - (112 << 23);
        (rebiased + 0x0fff + ((rebiased >> 13) & 1)) >> 13
    } else {
        // In steps of 2^-24: added to 0.5, whose last place that is, the float unit
        // rounds to it.
        (f32::from_bits(rest) + 0.5).to_bits() - 0.5f32.to_bits()
    };
    sign | half as u16
}
