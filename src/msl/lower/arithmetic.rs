//! Operators on values: the usual conversions, and results that nothing leaves open.

use naga::BinaryOperator as Op;

use super::super::ast::BinaryOp;
use super::super::types::{Register, Scalar, Type};
use super::build::Value;
use super::*;

impl Lowering<'_> {
    /// An operator other than `&&` and `||` on two values.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Typed,
        right: &Typed,
        at: u32,
    ) -> Result<Typed> {
        use BinaryOp::*;
        let lanes = match (left.ty.lanes, right.ty.lanes) {
            (a, b) if a == b => a,
            (1, lanes) | (lanes, 1) => lanes,
            _ => {
                return Err(Fault::parse(
                    at,
                    format!("an operator on {} and {}", left.ty, right.ty),
                ));
            }
        };
        let shift = matches!(op, ShiftLeft | ShiftRight);
        let scalar = match shift {
            true => left.ty.scalar.promoted(),
            false => left.ty.scalar.common(right.ty.scalar),
        };
        let integers_only = shift || matches!(op, Modulo | And | Or | Xor);
        if integers_only && (scalar.is_float() || right.ty.scalar.is_float()) {
            let what = format!("this operator on {} and {}", left.ty, right.ty);
            return Err(Fault::unsupported(at, what));
        }
        let left = self.convert(left, Type { scalar, lanes }, at)?;
        let right_scalar = if shift { Scalar::UInt } else { scalar };
        let right = self.convert(right, Type { scalar: right_scalar, lanes }, at)?;
        let compares = matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual);
        let result = if compares { Scalar::Bool } else { scalar };
        let mut values = Lanes::new();
        for (&a, &b) in left.lanes.iter().zip(&right.lanes) {
            values.push(match (compares, scalar.is_float()) {
                (true, true) => self.compare_floats(op, a, b),
                (true, false) => self.b.binary(integer_operator(op), a, b),
                (false, true) => {
                    let value = self.b.binary(integer_operator(op), a, b);
                    self.round(value, scalar)
                }
                (false, false) => self.integer_arithmetic(op, scalar, a, b),
            });
        }
        Ok(Typed { ty: Type { scalar: result, lanes }, lanes: values })
    }

    pub(super) fn compare_floats(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        match op {
            BinaryOp::Less => self.b.call_known("msl_lt", &[a, b]),
            BinaryOp::LessEqual => self.b.call_known("msl_le", &[a, b]),
            BinaryOp::Greater => self.b.call_known("msl_lt", &[b, a]),
            BinaryOp::GreaterEqual => self.b.call_known("msl_le", &[b, a]),
            BinaryOp::NotEqual => {
                let equal = self.b.call_known("msl_eq", &[a, b]);
                self.b.not(equal)
            }
            _ => self.b.call_known("msl_eq", &[a, b]),
        }
    }

    fn integer_arithmetic(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        let suffix = integer_suffix(scalar);
        match op {
            BinaryOp::Divide => self.b.call_known(&format!("msl_div_{suffix}"), &[a, b]),
            BinaryOp::Modulo => self.b.call_known(&format!("msl_rem_{suffix}"), &[a, b]),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                let most = self.b.u32(8 * scalar.size() - 1);
                let by = self.b.binary(Op::And, b, most);
                self.b.binary(integer_operator(op), a, by)
            }
            _ => self.b.binary(integer_operator(op), a, b),
        }
    }
}

/// The suffix of library functions on a promoted integer type.
pub(super) fn integer_suffix(scalar: Scalar) -> &'static str {
    match scalar.register() {
        Register::U32 => "u32",
        Register::I64 => "i64",
        Register::U64 => "u64",
        _ => "i32",
    }
}

fn integer_operator(op: BinaryOp) -> Op {
    match op {
        BinaryOp::Add => Op::Add,
        BinaryOp::Subtract => Op::Subtract,
        BinaryOp::Multiply => Op::Multiply,
        BinaryOp::Divide => Op::Divide,
        BinaryOp::Modulo => Op::Modulo,
        BinaryOp::And => Op::And,
        BinaryOp::Or => Op::InclusiveOr,
        BinaryOp::Xor => Op::ExclusiveOr,
        BinaryOp::ShiftLeft => Op::ShiftLeft,
        BinaryOp::ShiftRight => Op::ShiftRight,
        BinaryOp::Equal => Op::Equal,
        BinaryOp::NotEqual => Op::NotEqual,
        BinaryOp::Less => Op::Less,
        BinaryOp::LessEqual => Op::LessEqual,
        BinaryOp::Greater => Op::Greater,
        BinaryOp::GreaterEqual => Op::GreaterEqual,
        BinaryOp::LogicalAnd => Op::LogicalAnd,
        BinaryOp::LogicalOr => Op::LogicalOr,
    }
}
