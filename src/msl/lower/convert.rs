//! Conversions between types, as C++ makes them.

use naga::{BinaryOperator, ScalarKind};

use super::super::types::{Register, Scalar, Type};
use super::build::Value;
use super::*;

impl Lowering<'_> {
    /// `static_cast<ty>(value)`: lane by lane; a scalar fills all lanes of a vector.
    pub(super) fn convert(&mut self, value: &Typed, ty: Type, at: u32) -> Result<Typed> {
        if value.ty.lanes != ty.lanes && value.ty.lanes != 1 {
            return Err(Fault::unsupported(at, format!("a conversion from {} to {ty}", value.ty)));
        }
        self.need_int64(ty.scalar, at)?;
        let mut lanes = Lanes::new();
        for lane in &value.lanes {
            lanes.push(self.convert_scalar(*lane, value.ty.scalar, ty.scalar));
        }
        while lanes.len() < ty.lanes.into() {
            lanes.push(lanes[0]);
        }
        Ok(Typed { ty, lanes })
    }

    /// The value as a condition.
    pub(super) fn truth(&mut self, value: &Typed, at: u32) -> Result<Value> {
        Ok(self.convert(value, Type::scalar(Scalar::Bool), at)?.lanes[0])
    }

    fn convert_scalar(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        if from == to {
            return value;
        }
        let register = to.register();
        match (from, to) {
            (_, Scalar::Bool) if from.is_float() => self.b.call_known("msl_truth", &[value]),
            (_, Scalar::Bool) => {
                let zero = self.b.constant(from.register(), 0);
                self.b.binary(BinaryOperator::NotEqual, value, zero)
            }
            (Scalar::Bool, _) => {
                let one = self.b.constant(register, 1);
                let zero = self.b.constant(register, 0);
                self.b.select(value, one, zero)
            }
            _ if from.is_float() && to.is_float() => self.round(value, to),
            _ if to.is_float() => {
                let value = self.b.convert(value, Register::F32);
                self.round(value, to)
            }
            _ if from.is_float() => self.float_to_integer(value, to),
            _ => {
                let value = self.resize(value, from.register(), register);
                self.narrow(value, to)
            }
        }
    }

    /// An f32 rounded to a narrower type.
    pub(super) fn round(&mut self, value: Value, to: Scalar) -> Value {
        match to {
            Scalar::Half => self.b.call_known("msl_half_round", &[value]),
            Scalar::BFloat => self.b.call_known("msl_bfloat_round", &[value]),
            _ => value,
        }
    }

    fn float_to_integer(&mut self, value: Value, to: Scalar) -> Value {
        match to {
            Scalar::UInt => self.b.call_known("msl_f32_to_u32", &[value]),
            Scalar::Long => self.b.call_known("msl_f32_to_i64", &[value]),
            Scalar::ULong => self.b.call_known("msl_f32_to_u64", &[value]),
            _ => {
                let value = self.b.call_known("msl_f32_to_i32", &[value]);
                let value = self.resize(value, Register::I32, to.register());
                self.narrow(value, to)
            }
        }
    }

    /// Another register for an integer: sign or zero extension by the source's kind, or the low
    /// bits. Width changes within a kind only, so that no backend has to choose an extension.
    fn resize(&mut self, value: Value, from: Register, to: Register) -> Value {
        use Register::*;
        match (from, to) {
            (I32, I64) => self.sign_extended(value),
            (I64, I32) | (U32, U64) | (U64, U32) => self.b.convert(value, to),
            (I32, U32) | (I64, U64) => self.b.bitcast(value, ScalarKind::Uint),
            (U32, I32) | (U64, I64) => self.b.bitcast(value, ScalarKind::Sint),
            (I32, U64) => {
                let wide = self.sign_extended(value);
                self.b.bitcast(wide, ScalarKind::Uint)
            }
            (I64, U32) => {
                let bits = self.b.bitcast(value, ScalarKind::Uint);
                self.b.convert(bits, U32)
            }
            (U32, I64) => {
                let wide = self.b.convert(value, U64);
                self.b.bitcast(wide, ScalarKind::Sint)
            }
            (U64, I32) => {
                let low = self.b.convert(value, U32);
                self.b.bitcast(low, ScalarKind::Sint)
            }
            _ => value,
        }
    }

    /// An i32 as an i64, put together from its words: where one is converted, lavapipe of Mesa 22.3
    /// finds it not below 0 in a later comparison, though it is.
    fn sign_extended(&mut self, value: Value) -> Value {
        let low = self.b.bitcast(value, ScalarKind::Uint);
        let by = self.b.u32(31);
        let high = self.b.binary(BinaryOperator::ShiftRight, value, by);
        let high = self.b.bitcast(high, ScalarKind::Uint);
        self.join_words(low, high, Scalar::Long)
    }

    /// Keeps the bits of a type narrower than its register, and extends them again.
    pub(super) fn narrow(&mut self, value: Value, to: Scalar) -> Value {
        let bits = 8 * to.size();
        match to {
            Scalar::UChar | Scalar::UShort => {
                let mask = self.b.u32((1 << bits) - 1);
                self.b.binary(BinaryOperator::And, value, mask)
            }
            Scalar::Char | Scalar::Short => {
                let by = self.b.u32(32 - bits);
                let up = self.b.binary(BinaryOperator::ShiftLeft, value, by);
                self.b.binary(BinaryOperator::ShiftRight, up, by)
            }
            _ => value,
        }
    }

    /// 32 bits as a value of the type, in its low bits where it is narrower.
    pub(super) fn decode(&mut self, word: Value, scalar: Scalar) -> Value {
        match scalar {
            Scalar::Bool => {
                let zero = self.b.u32(0);
                self.b.binary(BinaryOperator::NotEqual, word, zero)
            }
            Scalar::Float => self.b.bitcast(word, ScalarKind::Float),
            Scalar::Half => self.b.call_known("msl_half_decode", &[word]),
            Scalar::BFloat => self.b.call_known("msl_bfloat_decode", &[word]),
            Scalar::UChar | Scalar::UShort | Scalar::UInt => word,
            _ => {
                let word = self.b.bitcast(word, ScalarKind::Sint);
                self.narrow(word, scalar)
            }
        }
    }

    /// The bits of a value of up to 32 bits, the others being 0.
    pub(super) fn encode(&mut self, value: Value, scalar: Scalar) -> Value {
        match scalar {
            Scalar::Bool => self.convert_scalar(value, Scalar::Bool, Scalar::UInt),
            Scalar::Float => self.b.bitcast(value, ScalarKind::Uint),
            Scalar::Half => self.b.call_known("msl_half_encode", &[value]),
            Scalar::BFloat => self.b.call_known("msl_bfloat_encode", &[value]),
            Scalar::UChar | Scalar::UShort | Scalar::UInt => value,
            _ => {
                let word = self.b.bitcast(value, ScalarKind::Uint);
                if scalar.size() == 4 {
                    return word;
                }
                let mask = self.b.u32((1 << (8 * scalar.size())) - 1);
                self.b.binary(BinaryOperator::And, word, mask)
            }
        }
    }

    /// Two words as a 64-bit integer.
    pub(super) fn join_words(&mut self, low: Value, high: Value, scalar: Scalar) -> Value {
        let low = self.b.convert(low, Register::U64);
        let high = self.b.convert(high, Register::U64);
        let by = self.b.u32(32);
        let high = self.b.binary(BinaryOperator::ShiftLeft, high, by);
        let joined = self.b.binary(BinaryOperator::InclusiveOr, high, low);
        if scalar == Scalar::Long { self.b.bitcast(joined, ScalarKind::Sint) } else { joined }
    }

    /// The low and the high word of a 64-bit integer.
    pub(super) fn split_words(&mut self, value: Value, scalar: Scalar) -> [Value; 2] {
        let bits = self.resize(value, scalar.register(), Register::U64);
        let low = self.b.convert(bits, Register::U32);
        let by = self.b.u32(32);
        let high = self.b.binary(BinaryOperator::ShiftRight, bits, by);
        [low, self.b.convert(high, Register::U32)]
    }
}
