//! Expressions, evaluated as C++ does.

use naga::{BinaryOperator as Op, ScalarKind, UnaryOperator};

use super::super::ast::*;
use super::super::types::{Register, Scalar, Type};
use super::memory::{Place, Pointer};
use super::stmt::pointee;
use super::target::{Target, swizzle};
use super::*;

impl<'a> Lowering<'a> {
    /// An expression whose value is not needed.
    pub(super) fn effect(&mut self, expr: &'a Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Call { callee, arguments } => {
                self.call(expr.at, callee, arguments).map(|_| ())
            }
            _ => self.operand(expr).map(|_| ()),
        }
    }

    pub(super) fn value(&mut self, expr: &'a Expr) -> Result<Typed> {
        match self.operand(expr)? {
            Operand::Value(value) => Ok(value),
            Operand::Pointer(_) => {
                Err(Fault::unsupported(expr.at, "a pointer where a value should be"))
            }
        }
    }

    pub(super) fn pointer(&mut self, expr: &'a Expr) -> Result<Pointer> {
        match self.operand(expr)? {
            Operand::Pointer(pointer) => Ok(pointer),
            Operand::Value(_) => {
                Err(Fault::unsupported(expr.at, "a value where a pointer should be"))
            }
        }
    }

    /// A value of one lane.
    pub(super) fn scalar_value(&mut self, expr: &'a Expr) -> Result<Typed> {
        let value = self.value(expr)?;
        if value.ty.lanes == 1 {
            return Ok(value);
        }
        Err(Fault::unsupported(expr.at, format!("{} where a scalar should be", value.ty)))
    }

    pub(super) fn operand(&mut self, expr: &'a Expr) -> Result<Operand> {
        let at = expr.at;
        let value = match &expr.kind {
            ExprKind::Int { value, ty } => {
                self.need_int64(*ty, at)?;
                // The lexer gave it a type that holds it.
                let literal = match ty {
                    Scalar::UInt => self.b.u32(u32::try_from(*value).unwrap_or(u32::MAX)),
                    Scalar::Long => self.b.i64(value.cast_signed()),
                    Scalar::ULong => self.b.u64(*value),
                    _ => self.b.i32(i32::try_from(*value).unwrap_or(i32::MAX)),
                };
                Typed::scalar(*ty, literal)
            }
            ExprKind::Float { value, ty } => {
                let literal = self.b.f32(*value);
                Typed::scalar(*ty, self.round(literal, *ty))
            }
            ExprKind::Bool(value) => Typed::scalar(Scalar::Bool, self.b.bool(*value)),
            ExprKind::Path(path) => return self.named(at, path),
            ExprKind::Unary { op, operand } => return self.unary(at, *op, operand),
            ExprKind::Binary { op, left, right } => return self.binary_expr(at, *op, left, right),
            ExprKind::Assign { op, target, value } => self.assign(at, *op, target, value)?,
            ExprKind::Step { target, up, prefix } => {
                let target = self.target(target)?;
                let old = self.read(&target, at)?;
                let one = Typed::scalar(Scalar::Int, self.b.i32(1));
                let op = if *up { BinaryOp::Add } else { BinaryOp::Subtract };
                let new = self.binary(op, &old, &one, at)?;
                let new = self.convert(&new, old.ty, at)?;
                self.write(&target, &new, at)?;
                if *prefix { new } else { old }
            }
            ExprKind::Conditional { condition, accept, reject } => {
                self.conditional(at, condition, accept, reject)?
            }
            ExprKind::Call { callee, arguments } => {
                let result = self.call(at, callee, arguments)?;
                let name = || format!("the value of `{}`", callee.joined("::"));
                result.ok_or_else(|| Fault::unsupported(at, name()))?
            }
            ExprKind::Index { .. } => {
                let target = self.target(expr)?;
                self.read(&target, at)?
            }
            ExprKind::Member { base, name } => {
                let value = self.value(base)?;
                let lanes = swizzle(name, value.ty)
                    .ok_or_else(|| Fault::unsupported(at, format!("`.{name}` of {}", value.ty)))?;
                let ty = Type { scalar: value.ty.scalar, lanes: lanes.len() as u8 };
                Typed {
                    ty,
                    lanes: lanes.iter().map(|&lane| value.lanes[usize::from(lane)]).collect(),
                }
            }
            ExprKind::Cast { ty, arguments } => {
                if ty.pointer {
                    return Err(Fault::unsupported(at, "a pointer made of values"));
                }
                let ty = self.type_of(ty)?;
                self.construct(at, ty, arguments)?
            }
            ExprKind::PointerCast { ty, operand } => {
                let pointer = self.pointer(operand)?;
                let to = pointee(ty).ok_or_else(|| Fault::unsupported(at, "this pointer cast"))?;
                let same_memory = to.lanes == pointer.ty.lanes
                    && to.scalar.size() == pointer.ty.scalar.size()
                    && (to == pointer.ty || matches!(pointer.place, Place::Buffer(_)));
                if !same_memory {
                    let what = format!("a pointer to {} as one to {to}", pointer.ty);
                    return Err(Fault::unsupported(at, what));
                }
                return Ok(Operand::Pointer(Pointer { ty: to, ..pointer }));
            }
            ExprKind::Bits { ty, operand } => {
                let value = self.value(operand)?;
                let to = self.type_of(ty)?;
                self.reinterpret(&value, to, at)?
            }
        };
        Ok(Operand::Value(value))
    }

    fn named(&mut self, at: u32, path: &Path) -> Result<Operand> {
        if let Some(name) = path.local()
            && let Some(entity) = self.find(name)
        {
            return match entity.clone() {
                Entity::Value(value) => Ok(Operand::Value(value)),
                Entity::Variable { ty, lanes } => {
                    let lanes = lanes.iter().map(|&pointer| self.b.load(pointer)).collect();
                    Ok(Operand::Value(Typed { ty, lanes }))
                }
                Entity::Element(pointer) => Ok(Operand::Value(self.load(&pointer, at)?)),
                Entity::Pointer(pointer) => Ok(Operand::Pointer(pointer)),
            };
        }
        if let Some(name) = path.local()
            && self.kernel.params.iter().any(|param| param.name == name)
        {
            // Left unbound because the device has no type for it.
            return Err(Fault { at, kind: FaultKind::Int64 });
        }
        let name = path.segments.last().map_or("", |segment| segment.name.as_str());
        if let Some(value) = float_constant(name) {
            return Ok(Operand::Value(Typed::scalar(Scalar::Float, self.b.f32(value))));
        }
        let (scalar, value) = match name {
            "INT_MAX" => (Scalar::Int, self.b.i32(i32::MAX)),
            "INT_MIN" => (Scalar::Int, self.b.i32(i32::MIN)),
            "UINT_MAX" => (Scalar::UInt, self.b.u32(u32::MAX)),
            "LONG_MAX" | "LONG_MIN" => {
                self.need_int64(Scalar::Long, at)?;
                let value = if name == "LONG_MAX" { i64::MAX } else { i64::MIN };
                (Scalar::Long, self.b.i64(value))
            }
            _ => return Err(Fault::unsupported(at, format!("the name `{}`", path.joined("::")))),
        };
        Ok(Operand::Value(Typed::scalar(scalar, value)))
    }

    fn unary(&mut self, at: u32, op: UnaryOp, operand: &'a Expr) -> Result<Operand> {
        match op {
            UnaryOp::AddressOf => {
                return match self.target(operand)? {
                    Target::Memory { ty, pointer, .. } if ty == pointer.ty => {
                        Ok(Operand::Pointer(pointer))
                    }
                    _ => Err(Fault::unsupported(at, "the address of this")),
                };
            }
            UnaryOp::Dereference => {
                let pointer = self.pointer(operand)?;
                return Ok(Operand::Value(self.load(&pointer, at)?));
            }
            _ => {}
        }
        let value = self.value(operand)?;
        if op == UnaryOp::Not {
            let ty = Type { scalar: Scalar::Bool, lanes: value.ty.lanes };
            let mut value = self.convert(&value, ty, at)?;
            value.lanes.iter_mut().for_each(|lane| *lane = self.b.not(*lane));
            return Ok(Operand::Value(value));
        }
        let scalar = value.ty.scalar.promoted();
        let ty = Type { scalar, lanes: value.ty.lanes };
        let mut value = self.convert(&value, ty, at)?;
        for lane in &mut value.lanes {
            *lane = match op {
                UnaryOp::Negate if scalar.is_signed() => self.b.unary(UnaryOperator::Negate, *lane),
                UnaryOp::Negate => {
                    let zero = self.b.constant(scalar.register(), 0);
                    self.b.binary(Op::Subtract, zero, *lane)
                }
                UnaryOp::Complement if scalar.is_integer() => {
                    self.b.unary(UnaryOperator::BitwiseNot, *lane)
                }
                UnaryOp::Complement => {
                    return Err(Fault::unsupported(at, format!("`~` of {ty}")));
                }
                _ => *lane,
            };
        }
        Ok(Operand::Value(value))
    }

    fn binary_expr(
        &mut self,
        at: u32,
        op: BinaryOp,
        left: &'a Expr,
        right: &'a Expr,
    ) -> Result<Operand> {
        if matches!(op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr) {
            return Ok(Operand::Value(self.short_circuit(at, op, left, right)?));
        }
        let left_value = match self.operand(left)? {
            Operand::Value(value) => value,
            Operand::Pointer(pointer) => {
                let mut offset = self.value(right)?;
                if op == BinaryOp::Subtract {
                    let zero = Typed::scalar(Scalar::Int, self.b.i32(0));
                    offset = self.binary(op, &zero, &offset, at)?;
                } else if op != BinaryOp::Add {
                    return Err(Fault::unsupported(at, "this operator on a pointer"));
                }
                return Ok(Operand::Pointer(self.offset(pointer, &offset, at)?));
            }
        };
        let right_value = match self.operand(right)? {
            Operand::Value(value) => value,
            Operand::Pointer(pointer) if op == BinaryOp::Add => {
                return Ok(Operand::Pointer(self.offset(pointer, &left_value, at)?));
            }
            Operand::Pointer(_) => {
                return Err(Fault::unsupported(at, "this operator on a pointer"));
            }
        };
        Ok(Operand::Value(self.binary(op, &left_value, &right_value, at)?))
    }

    /// `&&` and `||`: the right side is evaluated only where it counts.
    fn short_circuit(
        &mut self,
        at: u32,
        op: BinaryOp,
        left: &'a Expr,
        right: &'a Expr,
    ) -> Result<Typed> {
        let and = op == BinaryOp::LogicalAnd;
        let left_value = self.value(left)?;
        let left = self.truth(&left_value, at)?;
        if is_simple(right) {
            let right_value = self.value(right)?;
            let right = self.truth(&right_value, at)?;
            let op = if and { Op::LogicalAnd } else { Op::LogicalOr };
            return Ok(Typed::scalar(Scalar::Bool, self.b.binary(op, left, right)));
        }
        let ty = self.b.register_ty(Register::Bool);
        let result = self.b.local(if and { "both" } else { "either" }, ty);
        self.b.store(result, left);
        self.b.open();
        self.conditions += 1;
        let right_value = self.value(right);
        let right = right_value.and_then(|value| self.truth(&value, at));
        self.conditions -= 1;
        if let Ok(right) = right {
            self.b.store(result, right);
        }
        let block = self.b.close();
        right?;
        let (accept, reject) = match and {
            true => (block, naga::Block::new()),
            false => (naga::Block::new(), block),
        };
        self.b.if_(left, accept, reject);
        Ok(Typed::scalar(Scalar::Bool, self.b.load(result)))
    }

    /// `?:`: a select where both arms may be computed, else a branch.
    fn conditional(
        &mut self,
        at: u32,
        condition: &'a Expr,
        accept: &'a Expr,
        reject: &'a Expr,
    ) -> Result<Typed> {
        let condition_value = self.value(condition)?;
        let condition = self.truth(&condition_value, at)?;
        if is_simple(accept) && is_simple(reject) {
            let accept = self.value(accept)?;
            let reject = self.value(reject)?;
            let ty = arms_type(accept.ty, reject.ty);
            let accept = self.convert(&accept, ty, at)?;
            let reject = self.convert(&reject, ty, at)?;
            let lanes = accept.lanes.iter().zip(&reject.lanes);
            let lanes = lanes.map(|(&yes, &no)| self.b.select(condition, yes, no)).collect();
            return Ok(Typed { ty, lanes });
        }
        self.conditions += 1;
        self.b.open();
        let accept = self.value(accept);
        let accept_block = self.b.close();
        self.b.open();
        let reject = self.value(reject);
        let reject_block = self.b.close();
        self.conditions -= 1;
        let (accept, reject) = (accept?, reject?);
        let ty = arms_type(accept.ty, reject.ty);
        let register = self.b.register_ty(ty.scalar.register());
        let lanes: Lanes = (0..ty.lanes).map(|_| self.b.local("chosen", register)).collect();
        let mut finish = |block, value: &Typed| {
            self.b.reopen(block);
            let converted = self.convert(value, ty, at);
            if let Ok(converted) = &converted {
                for (pointer, lane) in lanes.iter().zip(&converted.lanes) {
                    self.b.store(*pointer, *lane);
                }
            }
            let block = self.b.close();
            converted.map(|_| block)
        };
        let accept_block = finish(accept_block, &accept)?;
        let reject_block = finish(reject_block, &reject)?;
        self.b.if_(condition, accept_block, reject_block);
        let lanes = lanes.iter().map(|&pointer| self.b.load(pointer)).collect();
        Ok(Typed { ty, lanes })
    }

    fn construct(&mut self, at: u32, ty: Type, arguments: &'a [Expr]) -> Result<Typed> {
        if let [argument] = arguments {
            let value = self.value(argument)?;
            return self.convert(&value, ty, at);
        }
        let mut lanes = Lanes::new();
        for argument in arguments {
            let value = self.value(argument)?;
            let converted = self.convert(&value, Type { scalar: ty.scalar, ..value.ty }, at)?;
            lanes.extend(converted.lanes);
        }
        if arguments.is_empty() {
            let zero = self.b.constant(ty.scalar.register(), 0);
            lanes.resize(ty.lanes.into(), zero);
        }
        if lanes.len() != usize::from(ty.lanes) {
            let count = lanes.len();
            return Err(Fault::parse(at, format!("{ty} made of {count} values")));
        }
        self.need_int64(ty.scalar, at)?;
        Ok(Typed { ty, lanes })
    }

    /// `as_type`: the bits of a value as another type of its size.
    fn reinterpret(&mut self, value: &Typed, to: Type, at: u32) -> Result<Typed> {
        self.need_int64(to.scalar, at)?;
        let from = value.ty.scalar;
        if from == to.scalar && value.ty == to {
            return Ok(value.clone());
        }
        let same = from.size() == to.scalar.size() && value.ty.lanes == to.lanes;
        if same && from.size() == 8 {
            let kind = if to.scalar == Scalar::Long { ScalarKind::Sint } else { ScalarKind::Uint };
            let lanes = value.lanes.iter().map(|&lane| self.b.bitcast(lane, kind)).collect();
            return Ok(Typed { ty: to, lanes });
        }
        if same {
            let mut lanes = Lanes::new();
            for &lane in &value.lanes {
                let bits = self.encode(lane, from);
                lanes.push(self.decode(bits, to.scalar));
            }
            return Ok(Typed { ty: to, lanes });
        }
        match (from.size(), value.ty.lanes, to.scalar.size(), to.lanes) {
            (8, 1, 4, 2) => {
                let words = self.split_words(value.lanes[0], from);
                let lanes = words.map(|word| self.decode(word, to.scalar));
                Ok(Typed { ty: to, lanes: Lanes::from_slice(&lanes) })
            }
            (4, 2, 8, 1) => {
                let low = self.encode(value.lanes[0], from);
                let high = self.encode(value.lanes[1], from);
                Ok(Typed::scalar(to.scalar, self.join_words(low, high, to.scalar)))
            }
            _ => Err(Fault::unsupported(at, format!("the bits of {} as {to}", value.ty))),
        }
    }
}

/// The type of `c ? a : b`.
fn arms_type(a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    Type { scalar: a.scalar.common(b.scalar), lanes: a.lanes.max(b.lanes) }
}

/// Whether an expression may be evaluated where its value is not needed: no effect, no load.
fn is_simple(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Bool(_) | ExprKind::Path(_) => {
            true
        }
        ExprKind::Unary { op, operand } => {
            !matches!(op, UnaryOp::Dereference | UnaryOp::AddressOf) && is_simple(operand)
        }
        ExprKind::Binary { left, right, .. } => is_simple(left) && is_simple(right),
        ExprKind::Conditional { condition, accept, reject } => {
            is_simple(condition) && is_simple(accept) && is_simple(reject)
        }
        ExprKind::Member { base, .. } => is_simple(base),
        ExprKind::Cast { arguments, .. } => arguments.iter().all(is_simple),
        ExprKind::Bits { operand, .. } => is_simple(operand),
        ExprKind::Assign { .. }
        | ExprKind::Step { .. }
        | ExprKind::Call { .. }
        | ExprKind::Index { .. }
        | ExprKind::PointerCast { .. } => false,
    }
}

fn float_constant(name: &str) -> Option<f32> {
    use std::f32::consts;
    Some(match name {
        "INFINITY" | "HUGE_VALF" => f32::INFINITY,
        "NAN" => f32::NAN,
        "FLT_MAX" | "MAXFLOAT" => f32::MAX,
        "FLT_MIN" => f32::MIN_POSITIVE,
        "FLT_EPSILON" => f32::EPSILON,
        "M_PI_F" => consts::PI,
        "M_PI_2_F" => consts::FRAC_PI_2,
        "M_PI_4_F" => consts::FRAC_PI_4,
        "M_1_PI_F" => consts::FRAC_1_PI,
        "M_2_PI_F" => consts::FRAC_2_PI,
        "M_2_SQRTPI_F" => consts::FRAC_2_SQRT_PI,
        "M_SQRT2_F" => consts::SQRT_2,
        "M_SQRT1_2_F" => consts::FRAC_1_SQRT_2,
        "M_E_F" => consts::E,
        "M_LOG2E_F" => consts::LOG2_E,
        "M_LOG10E_F" => consts::LOG10_E,
        "M_LN2_F" => consts::LN_2,
        "M_LN10_F" => consts::LN_10,
        _ => return None,
    })
}
