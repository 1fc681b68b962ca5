//! Functions of Metal's library and of PyTorch's headers.

use naga::{Barrier, BinaryOperator as Op, Expression, MathFunction, ScalarKind, TypeInner};

use super::super::ast::*;
use super::super::types::{Register, Scalar, Type};
use super::arithmetic::integer_suffix;
use super::build::Value;
use super::memory::Combine;
use super::*;

/// Functions of PyTorch's headers whose result has the type of their argument; that of the others
/// is float.
const KEEPS_TYPE: &[&str] = &[
    "i0",
    "i0e",
    "i1",
    "i1e",
    "igamma",
    "igammac",
    "spherical_bessel_j0",
    "sinc",
    "logaddexp",
    "logaddexp2",
    "entr",
    "erfcx",
];

/// Where a function's name says that it is from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    C10,
    Metal,
    Unqualified,
}

impl<'a> Lowering<'a> {
    /// Calls a function; none is the result of one that returns nothing.
    pub(super) fn call(
        &mut self,
        at: u32,
        callee: &Path,
        arguments: &'a [Expr],
    ) -> Result<Option<Typed>> {
        let (last, outer) = match callee.segments.as_slice() {
            [.., outer, last] => (last.name.as_str(), outer.name.as_str()),
            [last] => (last.name.as_str(), ""),
            [] => return Err(Fault::parse(at, "a call of nothing")),
        };
        let origin = match callee.segments.first().map(|segment| segment.name.as_str()) {
            _ if callee.segments.len() == 1 => Origin::Unqualified,
            Some("c10") => Origin::C10,
            Some("metal" | "precise" | "fast") => Origin::Metal,
            _ => Origin::Unqualified,
        };
        match (outer, last) {
            ("AtomicType", _) => return self.atomic_type(at, last, arguments).map(|()| None),
            ("numeric_limits", _) => {
                let ty = self.template_type(at, callee)?;
                return self.limit(at, last, ty).map(Some);
            }
            ("MaxOp" | "MinOp", _) => {
                let ty = self.template_type(at, callee)?;
                return self.extreme_op(at, outer == "MaxOp", last, ty, arguments).map(Some);
            }
            (_, "threadgroup_barrier" | "simdgroup_barrier") => {
                return self.barrier(at, arguments).map(|()| None);
            }
            (_, "cast_to") => {
                let ty = self.template_type(at, callee)?;
                let [value] = self.values(at, last, arguments)?;
                return self.convert(&value, ty, at).map(Some);
            }
            _ => {}
        }
        if last.starts_with("threadgroup_") {
            return self.reduction(at, last, arguments).map(Some);
        }
        if last.starts_with("atomic_") {
            return self.atomic_function(at, last, arguments).map(|()| None);
        }
        if let Some(value) = self.simple_function(at, origin, last, arguments)? {
            return Ok(Some(value));
        }
        self.library_function(at, origin, callee, last, arguments).map(Some)
    }

    fn template_type(&mut self, at: u32, callee: &Path) -> Result<Type> {
        let argument = callee.template_argument();
        let Some(TypeName { kind: TypeKind::Known(ty), pointer: false, .. }) = argument else {
            let name = callee.joined("::");
            return Err(Fault::unsupported(at, format!("`{name}` with this template argument")));
        };
        Ok(*ty)
    }

    /// The arguments of a function that takes `N`.
    pub(super) fn values<const N: usize>(
        &mut self,
        at: u32,
        name: &str,
        arguments: &'a [Expr],
    ) -> Result<[Typed; N]> {
        let mut values = Vec::with_capacity(N);
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        values.try_into().map_err(|_| arity(at, name, arguments.len(), N))
    }

    fn barrier(&mut self, at: u32, arguments: &[Expr]) -> Result<()> {
        self.need_uniform(at)?;
        let names = arguments.iter().any(|argument| flags_name(argument, "mem_device"));
        let mut barrier = Barrier::WORK_GROUP;
        if names {
            barrier |= Barrier::STORAGE;
        }
        self.b.barrier(barrier);
        Ok(())
    }

    /// Refuses a barrier that some threads of the group might not reach.
    pub(super) fn need_uniform(&self, at: u32) -> Result<()> {
        match self.conditions {
            0 => Ok(()),
            _ => Err(Fault::unsupported(at, "a barrier below a condition")),
        }
    }

    /// Functions that this module knows itself, others being in the library.
    fn simple_function(
        &mut self,
        at: u32,
        origin: Origin,
        name: &str,
        arguments: &'a [Expr],
    ) -> Result<Option<Typed>> {
        let value = match name {
            "floor_divide" | "remainder" | "safe_mod" | "fmod" => {
                let [a, b] = self.values(at, name, arguments)?;
                self.division(at, name, &a, &b)?
            }
            "max" | "min" | "fmax" | "fmin" => {
                let [a, b] = self.values(at, name, arguments)?;
                let max = name.ends_with("max");
                let c10 = origin == Origin::C10;
                let mut value = self.extreme(max, c10, &a, &b, at)?;
                if c10 && a.ty.scalar.is_integer() {
                    value = self.convert(&value, a.ty, at)?;
                }
                value
            }
            "clamp" => {
                let [x, low, high] = self.values(at, name, arguments)?;
                let above = self.extreme(true, false, &x, &low, at)?;
                self.extreme(false, false, &above, &high, at)?
            }
            "mul" if origin == Origin::C10 => {
                let [a, b] = self.values(at, name, arguments)?;
                self.binary(BinaryOp::Multiply, &a, &b, at)?
            }
            "div" if origin == Origin::C10 => {
                let [a, b] = self.values(at, name, arguments)?;
                self.binary(BinaryOp::Divide, &a, &b, at)?
            }
            "abs" | "fabs" => {
                let [x] = self.values(at, name, arguments)?;
                self.absolute(&x)
            }
            "isnan" | "isinf" | "isfinite" | "isnormal" | "signbit" => {
                let [x] = self.values(at, name, arguments)?;
                let x = self.convert(&x, Type { scalar: Scalar::Float, ..x.ty }, at)?;
                let name = match name {
                    "isnormal" => "msl_isnormal".to_owned(),
                    _ => format!("metal_{name}"),
                };
                let lanes = x.lanes.iter().map(|&lane| self.b.call_known(&name, &[lane])).collect();
                Typed { ty: Type { scalar: Scalar::Bool, ..x.ty }, lanes }
            }
            "pow" | "powr" => {
                let [a, b] = self.values(at, name, arguments)?;
                if !(origin == Origin::C10 && a.ty.scalar.is_integer() && b.ty.scalar.is_integer())
                {
                    let keeps = origin != Origin::C10;
                    return self.library_call(at, "metal_precise_pow", &[a, b], keeps).map(Some);
                }
                let scalar = a.ty.scalar.promoted();
                let ty = Type::scalar(scalar);
                let (base, exponent) = (self.convert(&a, ty, at)?, self.convert(&b, ty, at)?);
                let name = format!("msl_pow_{}", integer_suffix(scalar));
                let value = self.b.call(at, &name, &[base.lanes[0], exponent.lanes[0]])?;
                self.convert(&Typed::scalar(scalar, value), a.ty, at)?
            }
            "fma" | "mad" => {
                let [a, b, c] = self.values(at, name, arguments)?;
                let scalar = a.ty.scalar.common(b.ty.scalar).common(c.ty.scalar);
                let lanes = a.ty.lanes.max(b.ty.lanes).max(c.ty.lanes);
                let ty = Type { scalar, lanes };
                let [a, b, c] = [
                    self.convert(&a, ty, at)?,
                    self.convert(&b, ty, at)?,
                    self.convert(&c, ty, at)?,
                ];
                let mut result = a.clone();
                for (lane, value) in result.lanes.iter_mut().enumerate() {
                    let fused =
                        self.math(MathFunction::Fma, &[*value, b.lanes[lane], c.lanes[lane]]);
                    *value = self.round(fused, scalar);
                }
                result
            }
            "select" if origin != Origin::C10 => {
                let [no, yes, condition] = self.values(at, name, arguments)?;
                let scalar = no.ty.scalar.common(yes.ty.scalar);
                let scalar = if no.ty.scalar == yes.ty.scalar { no.ty.scalar } else { scalar };
                let ty = Type { scalar, lanes: no.ty.lanes.max(yes.ty.lanes) };
                let condition =
                    self.convert(&condition, Type { scalar: Scalar::Bool, lanes: ty.lanes }, at)?;
                let (no, yes) = (self.convert(&no, ty, at)?, self.convert(&yes, ty, at)?);
                let lanes = (0..usize::from(ty.lanes)).map(|lane| {
                    self.b.select(condition.lanes[lane], yes.lanes[lane], no.lanes[lane])
                });
                Typed { ty, lanes: lanes.collect() }
            }
            "popcount" | "clz" | "ctz" => {
                let [x] = self.values(at, name, arguments)?;
                if !matches!(x.ty.scalar, Scalar::Int | Scalar::UInt) {
                    return Err(Fault::unsupported(at, format!("`{name}` of {}", x.ty)));
                }
                let function = match name {
                    "popcount" => MathFunction::CountOneBits,
                    "clz" => MathFunction::CountLeadingZeros,
                    _ => MathFunction::CountTrailingZeros,
                };
                let lanes = x.lanes.iter().map(|&lane| self.math(function, &[lane])).collect();
                Typed { ty: x.ty, lanes }
            }
            "welford_combine" => {
                let [a, b] = self.values(at, name, arguments)?;
                self.welford_combine(&a, &b, at)?
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    fn math(&mut self, fun: MathFunction, arguments: &[Value]) -> Value {
        let argument = |position: usize| arguments.get(position).copied();
        let first = arguments[0];
        self.b.expr(Expression::Math {
            fun,
            arg: first,
            arg1: argument(1),
            arg2: argument(2),
            arg3: argument(3),
        })
    }

    fn division(&mut self, at: u32, name: &str, a: &Typed, b: &Typed) -> Result<Typed> {
        let scalar = a.ty.scalar.common(b.ty.scalar);
        let lanes = a.ty.lanes.max(b.ty.lanes);
        if scalar.is_integer() {
            let signed = scalar.is_signed();
            let name = match name {
                "floor_divide" if signed => "msl_floor_div",
                "remainder" if signed => "msl_floor_rem",
                "floor_divide" => "msl_div",
                _ => "msl_rem",
            };
            let name = format!("{name}_{}", integer_suffix(scalar));
            return self.lanewise(at, &name, Type { scalar, lanes }, a, b);
        }
        let float = Type { scalar: Scalar::Float, lanes };
        let result = match name {
            "floor_divide" => {
                let ty = Type { scalar, lanes };
                let quotient = self.binary(BinaryOp::Divide, a, b, at)?;
                let quotient = self.convert(&quotient, ty, at)?;
                let floor =
                    |this: &mut Self, &lane: &Value| this.b.call_known("metal_floor", &[lane]);
                let lanes = quotient.lanes.iter().map(|lane| floor(self, lane)).collect();
                return Ok(Typed { ty, lanes });
            }
            // Of any types, in float.
            "remainder" => return self.lanewise(at, "c10_metal_remainder", float, a, b),
            "fmod" => self.lanewise(at, "metal_fmod", float, a, b)?,
            _ => return Err(Fault::unsupported(at, format!("`{name}` of floats"))),
        };
        self.convert(&result, Type { scalar, lanes }, at)
    }

    /// A library function of two arguments of type `ty`, lane by lane.
    fn lanewise(&mut self, at: u32, name: &str, ty: Type, a: &Typed, b: &Typed) -> Result<Typed> {
        let a = self.convert(a, ty, at)?;
        let b = self.convert(b, ty, at)?;
        let mut lanes = Lanes::new();
        for (&a, &b) in a.lanes.iter().zip(&b.lanes) {
            lanes.push(self.b.call(at, name, &[a, b])?);
        }
        Ok(Typed { ty, lanes })
    }

    /// The greater or the lesser of two; of floats, with `nan`, NaN if either is.
    pub(super) fn extreme(
        &mut self,
        max: bool,
        nan: bool,
        a: &Typed,
        b: &Typed,
        at: u32,
    ) -> Result<Typed> {
        let scalar = match a.ty.scalar == b.ty.scalar {
            true => a.ty.scalar,
            false => a.ty.scalar.common(b.ty.scalar),
        };
        let ty = Type { scalar, lanes: a.ty.lanes.max(b.ty.lanes) };
        if scalar.is_float() {
            let name = match (max, nan) {
                (true, false) => "metal_max",
                (false, false) => "metal_min",
                (true, true) => "c10_metal_max",
                (false, true) => "c10_metal_min",
            };
            return self.lanewise(at, name, ty, a, b);
        }
        if scalar == Scalar::Bool {
            let op = if max { BinaryOp::Or } else { BinaryOp::And };
            let value = self.binary(op, a, b, at)?;
            return self.convert(&value, ty, at);
        }
        let (a, b) = (self.convert(a, ty, at)?, self.convert(b, ty, at)?);
        let mut lanes = Lanes::new();
        for (&a, &b) in a.lanes.iter().zip(&b.lanes) {
            let op = if max { Op::Greater } else { Op::Less };
            let first = self.b.binary(op, a, b);
            lanes.push(self.b.select(first, a, b));
        }
        Ok(Typed { ty, lanes })
    }

    fn absolute(&mut self, x: &Typed) -> Typed {
        let scalar = x.ty.scalar;
        let mut result = x.clone();
        for lane in &mut result.lanes {
            *lane = if scalar.is_float() {
                self.b.call_known("metal_abs", &[*lane])
            } else if scalar.is_signed() {
                let zero = self.b.constant(scalar.register(), 0);
                let negative = self.b.binary(Op::Less, *lane, zero);
                let opposite = self.b.unary(naga::UnaryOperator::Negate, *lane);
                let value = self.b.select(negative, opposite, *lane);
                self.narrow(value, scalar)
            } else {
                *lane
            };
        }
        result
    }

    fn library_function(
        &mut self,
        at: u32,
        origin: Origin,
        callee: &Path,
        last: &str,
        arguments: &'a [Expr],
    ) -> Result<Typed> {
        let precise = format!("metal_precise_{last}");
        let metal = format!("metal_{last}");
        let c10 = format!("c10_metal_{last}");
        let candidates = match origin {
            Origin::C10 => vec![c10],
            Origin::Metal => vec![callee.joined("_"), metal, precise],
            Origin::Unqualified => vec![metal, precise, c10],
        };
        if origin == Origin::Unqualified
            && let Some(helper) = self.helper(last)
        {
            return self.call_helper(at, helper, arguments);
        }
        let Some(name) = candidates.into_iter().find(|name| self.b.has(name)) else {
            let name = callee.joined("::");
            return Err(Fault::unsupported(at, format!("function `{name}`")));
        };
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let keeps_type = !name.starts_with("c10_metal_") || KEEPS_TYPE.contains(&last);
        self.library_call(at, &name, &values, keeps_type)
    }

    /// A function of the library, lane by lane, its arguments converted to its parameters' types.
    /// A float result becomes half or bfloat with `keeps_type`, if the arguments are.
    fn library_call(
        &mut self,
        at: u32,
        name: &str,
        values: &[Typed],
        keeps_type: bool,
    ) -> Result<Typed> {
        let parameters = self.b.parameters(name).unwrap_or_default();
        if parameters.len() != values.len() {
            return Err(arity(at, name, values.len(), parameters.len()));
        }
        let lanes = values.iter().map(|value| value.ty.lanes).max().unwrap_or(1);
        let mut converted = Vec::with_capacity(values.len());
        let unknown = || Fault::unsupported(at, format!("function `{name}`"));
        for (value, parameter) in values.iter().zip(&parameters) {
            if is_words(parameter) {
                let wide =
                    self.convert(value, Type { scalar: Scalar::Long, lanes: value.ty.lanes }, at)?;
                let mut pairs = Lanes::new();
                for &lane in &wide.lanes {
                    let words = self.split_words(lane, Scalar::Long);
                    pairs.push(self.b.pair(words));
                }
                converted.push(Typed { ty: wide.ty, lanes: pairs });
                continue;
            }
            let scalar = scalar_of(parameter).ok_or_else(unknown)?;
            converted.push(self.convert(value, Type { scalar, lanes: value.ty.lanes }, at)?);
        }
        let result = self.b.result(name).ok_or_else(unknown)?;
        let wide = is_words(&result);
        let scalar = match wide {
            true => Scalar::Long,
            false => scalar_of(&result).ok_or_else(unknown)?,
        };
        let mut results = Lanes::new();
        for lane in 0..usize::from(lanes) {
            let arguments: Option<Vec<Value>> =
                converted.iter().map(|value| value.lane(lane)).collect();
            let arguments =
                arguments.ok_or_else(|| Fault::parse(at, "vectors of several sizes"))?;
            let mut result = self.b.call(at, name, &arguments)?;
            if wide {
                let [low, high] = [0, 1].map(|word| self.b.access_index(result, word));
                result = self.join_words(low, high, scalar);
            }
            results.push(result);
        }
        let value = Typed { ty: Type { scalar, lanes }, lanes: results };
        let narrow = values.iter().map(|value| value.ty.scalar).filter(|scalar| scalar.is_float());
        let narrow = narrow.reduce(Scalar::common).unwrap_or(Scalar::Float);
        if keeps_type && scalar == Scalar::Float {
            return self.convert(&value, Type { scalar: narrow, lanes }, at);
        }
        Ok(value)
    }

    /// `numeric_limits<ty>::name()`.
    fn limit(&mut self, at: u32, name: &str, ty: Type) -> Result<Typed> {
        let scalar = ty.scalar;
        self.need_int64(scalar, at)?;
        let unknown = || Fault::unsupported(at, format!("`numeric_limits<{ty}>::{name}`"));
        if scalar.is_float() {
            let (max, least, epsilon) = match scalar {
                Scalar::Half => (65504.0, 6.103_515_6e-5, 9.765_625e-4),
                Scalar::BFloat => (3.389_531_4e38, f32::MIN_POSITIVE, 7.812_5e-3),
                _ => (f32::MAX, f32::MIN_POSITIVE, f32::EPSILON),
            };
            let value = match name {
                "max" => max,
                "lowest" => -max,
                "min" => least,
                "epsilon" => epsilon,
                "infinity" => f32::INFINITY,
                "quiet_NaN" => f32::NAN,
                _ => return Err(unknown()),
            };
            return Ok(Typed::scalar(scalar, self.b.f32(value)));
        }
        let bits = 8 * scalar.size();
        let value = match (name, scalar) {
            ("max", Scalar::Bool) => self.b.bool(true),
            ("min" | "lowest", _) if !scalar.is_signed() => self.b.constant(scalar.register(), 0),
            ("max", Scalar::Long) => self.b.i64(i64::MAX),
            ("max", Scalar::ULong) => self.b.u64(u64::MAX),
            ("min" | "lowest", Scalar::Long) => self.b.i64(i64::MIN),
            ("max", _) if scalar.is_signed() => self.b.i32(i32::MAX >> (32 - bits)),
            ("max", _) => self.b.u32(u32::MAX >> (32 - bits)),
            ("min" | "lowest", _) => self.b.i32(i32::MIN >> (32 - bits)),
            _ => return Err(unknown()),
        };
        Ok(Typed::scalar(scalar, value))
    }

    /// A member of `MaxOp<ty>` or `MinOp<ty>`.
    fn extreme_op(
        &mut self,
        at: u32,
        max: bool,
        member: &str,
        ty: Type,
        arguments: &'a [Expr],
    ) -> Result<Typed> {
        match member {
            "identity" if ty.scalar.is_float() => {
                let value = if max { f32::NEG_INFINITY } else { f32::INFINITY };
                Ok(Typed::scalar(ty.scalar, self.b.f32(value)))
            }
            "identity" => self.limit(at, if max { "lowest" } else { "max" }, ty),
            "combine" => {
                let [a, b] = self.values(at, member, arguments)?;
                let (a, b) = (self.convert(&a, ty, at)?, self.convert(&b, ty, at)?);
                self.extreme(max, true, &a, &b, at)
            }
            "replace" => {
                let [candidate, current] = self.values(at, member, arguments)?;
                let (candidate, current) =
                    (self.convert(&candidate, ty, at)?, self.convert(&current, ty, at)?);
                let op = if max { BinaryOp::Greater } else { BinaryOp::Less };
                let mut beats = self.binary(op, &candidate, &current, at)?;
                if ty.scalar.is_float() {
                    let nan = self.b.call_known("metal_isnan", &[candidate.lanes[0]]);
                    let kept = self.b.call_known("metal_isnan", &[current.lanes[0]]);
                    let kept = self.b.not(kept);
                    let either = self.b.binary(Op::LogicalOr, beats.lanes[0], nan);
                    beats.lanes[0] = self.b.binary(Op::LogicalAnd, either, kept);
                }
                Ok(beats)
            }
            "threadgroup_reduce" => self.reduction(
                at,
                if max { "threadgroup_max" } else { "threadgroup_min" },
                arguments,
            ),
            _ => Err(Fault::unsupported(at, format!("`{member}` of MaxOp or MinOp"))),
        }
    }

    /// A member of `AtomicType<T>`: the pointer, an offset in elements, the value.
    fn atomic_type(&mut self, at: u32, member: &str, arguments: &'a [Expr]) -> Result<()> {
        let (combine, expected) = match (member, arguments.get(3)) {
            ("atomic_add", None) => (Combine::Add, 3),
            ("atomic_binary_op", Some(function)) => (combine_of(function)?, 4),
            _ => return Err(Fault::unsupported(at, format!("`AtomicType::{member}`"))),
        };
        let [pointer, offset, value, ..] = arguments else {
            return Err(arity(at, member, arguments.len(), expected));
        };
        let pointer = self.pointer(pointer)?;
        let offset = self.value(offset)?;
        let pointer = self.offset(pointer, &offset, at)?;
        let value = self.scalar_value(value)?;
        self.update_element(&pointer, &value, combine, at)
    }

    /// `atomic_fetch_add_explicit` and the like, without their result.
    fn atomic_function(&mut self, at: u32, name: &str, arguments: &'a [Expr]) -> Result<()> {
        let combine = match name {
            "atomic_fetch_add_explicit" => Combine::Add,
            "atomic_fetch_max_explicit" => Combine::Max,
            "atomic_fetch_min_explicit" => Combine::Min,
            _ => return Err(Fault::unsupported(at, format!("function `{name}`"))),
        };
        let [pointer, value, order] = arguments else {
            return Err(arity(at, name, arguments.len(), 3));
        };
        if !flags_name(order, "memory_order_relaxed") {
            return Err(Fault::unsupported(order.at, "a memory order other than relaxed"));
        }
        let pointer = self.pointer(pointer)?;
        let value = self.scalar_value(value)?;
        self.update_element(&pointer, &value, combine, at)
    }
}

fn arity(at: u32, name: &str, found: usize, expected: usize) -> Fault {
    Fault::parse(at, format!("`{name}` with {found} arguments instead of {expected}"))
}

/// Whether an expression names `flag`, alone or among others.
fn flags_name(expr: &Expr, flag: &str) -> bool {
    match &expr.kind {
        ExprKind::Path(path) => path.segments.last().is_some_and(|segment| segment.name == flag),
        ExprKind::Binary { left, right, .. } => flags_name(left, flag) || flags_name(right, flag),
        _ => false,
    }
}

/// The function handed to `atomic_binary_op`.
fn combine_of(function: &Expr) -> Result<Combine> {
    let function = match &function.kind {
        ExprKind::Unary { op: UnaryOp::AddressOf, operand } => operand,
        _ => function,
    };
    if let ExprKind::Path(path) = &function.kind {
        let names: Vec<&str> = path.segments.iter().map(|segment| segment.name.as_str()).collect();
        match names.as_slice() {
            [.., "MaxOp", "combine"] | ["c10", "metal", "max"] => return Ok(Combine::Max),
            [.., "MinOp", "combine"] | ["c10", "metal", "min"] => return Ok(Combine::Min),
            ["c10", "metal", "mul"] => return Ok(Combine::Multiply),
            _ => {}
        }
    }
    Err(Fault::unsupported(function.at, "this function for an atomic update"))
}

/// The C++ type of a library function's parameter or result.
fn scalar_of(inner: &TypeInner) -> Option<Scalar> {
    let TypeInner::Scalar(scalar) = inner else {
        return None;
    };
    Some(match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 4) => Scalar::Float,
        (ScalarKind::Sint, 4) => Scalar::Int,
        (ScalarKind::Uint, 4) => Scalar::UInt,
        (ScalarKind::Sint, 8) => Scalar::Long,
        (ScalarKind::Uint, 8) => Scalar::ULong,
        (ScalarKind::Bool, _) => Scalar::Bool,
        _ => return None,
    })
}

/// Whether a library function takes or returns a 64-bit integer here, as its low and high word.
fn is_words(inner: &TypeInner) -> bool {
    let words = TypeInner::Vector { size: naga::VectorSize::Bi, scalar: naga::Scalar::U32 };
    *inner == words
}

/// The suffix of reductions in a register; bools are words there.
pub(super) fn reduction_suffix(scalar: Scalar) -> Option<&'static str> {
    match scalar.register() {
        Register::F32 => Some("f32"),
        Register::I32 => Some("i32"),
        Register::Bool | Register::U32 => Some("u32"),
        Register::I64 => Some("i64"),
        Register::U64 => None,
    }
}
