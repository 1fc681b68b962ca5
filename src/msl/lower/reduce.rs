//! Reductions over a threadgroup.
//!
//! PyTorch's headers reduce within simd groups of 32 and then among them, in the memory that the
//! kernel hands over. Here the functions of `reduce.wgsl` do it in scratch memory of their own;
//! Welford's, which read all of the kernel's memory, are sums over it: first the mean, then the
//! squares of the distances to it.

use naga::BinaryOperator as Op;

use super::super::ast::{BinaryOp, Expr};
use super::super::types::{Register, Scalar, Type};
use super::build::Value;
use super::call::reduction_suffix;
use super::memory::Pointer;
use super::*;

const FLOAT3: Type = Type { scalar: Scalar::Float, lanes: 3 };
const UINT: Type = Type::scalar(Scalar::UInt);

impl<'a> Lowering<'a> {
    /// `threadgroup_sum` and its relatives.
    pub(super) fn reduction(
        &mut self,
        at: u32,
        name: &str,
        arguments: &'a [Expr],
    ) -> Result<Typed> {
        self.need_uniform(at)?;
        let kind = name.strip_prefix("threadgroup_").unwrap_or(name);
        match (kind, arguments) {
            ("sum" | "prod" | "max" | "min", [data, value, index, size]) => {
                let data = self.pointer(data)?.ty;
                let value = self.scalar_value(value)?;
                // What narrow types add up in is the type of the memory.
                let ty = match kind {
                    "sum" | "prod" => data,
                    _ => value.ty,
                };
                self.tree(at, kind, &value, ty, index, size)
            }
            ("argmax" | "argmin", [_, indices, value, own, index, size]) => {
                let result = self.pointer(indices)?.ty;
                self.arg_extreme(at, kind, result, [value, own, index, size])
            }
            ("welford_reduce", [data, size]) => {
                let data = self.pointer(data)?;
                let size = self.count(size)?;
                self.welford_reduce(at, data, size)
            }
            ("welford_combine", [data, size]) => {
                let data = self.pointer(data)?;
                let size = self.count(size)?;
                self.welford_combine_all(at, data, size)
            }
            _ => Err(Fault::unsupported(
                at,
                format!("function `{name}` with {} arguments", arguments.len()),
            )),
        }
    }

    fn count(&mut self, expr: &'a Expr) -> Result<Value> {
        let value = self.scalar_value(expr)?;
        Ok(self.convert(&value, UINT, expr.at)?.lanes[0])
    }

    /// Whether this thread takes part.
    fn takes_part(&mut self) -> Value {
        match self.live {
            Some(live) => self.b.load(live),
            None => self.b.bool(true),
        }
    }

    fn tree(
        &mut self,
        at: u32,
        kind: &str,
        value: &Typed,
        ty: Type,
        index: &'a Expr,
        size: &'a Expr,
    ) -> Result<Typed> {
        let unsupported = || Fault::unsupported(at, format!("threadgroup_{kind} of {ty}"));
        if ty.lanes != 1 || (ty.scalar == Scalar::Bool && matches!(kind, "sum" | "prod")) {
            return Err(unsupported());
        }
        let suffix = reduction_suffix(ty.scalar).ok_or_else(unsupported)?;
        let value = self.convert(value, ty, at)?;
        let value = match ty.scalar {
            Scalar::Bool => self.convert(&value, UINT, at)?.lanes[0],
            _ => value.lanes[0],
        };
        let index = self.count(index)?;
        let size = self.count(size)?;
        let live = self.takes_part();
        let name = format!("msl_{kind}_{suffix}");
        let result = self.b.call(at, &name, &[value, index, size, live])?;
        if ty.scalar == Scalar::Bool {
            return self.convert(&Typed::scalar(Scalar::UInt, result), ty, at);
        }
        Ok(Typed::scalar(ty.scalar, self.round(result, ty.scalar)))
    }

    fn arg_extreme(
        &mut self,
        at: u32,
        kind: &str,
        result: Type,
        [value, own, index, size]: [&'a Expr; 4],
    ) -> Result<Typed> {
        let value = self.scalar_value(value)?;
        let unsupported = || Fault::unsupported(at, format!("threadgroup_{kind} of {}", value.ty));
        let suffix = reduction_suffix(value.ty.scalar).ok_or_else(unsupported)?;
        let lane = match value.ty.scalar {
            Scalar::Bool => self.convert(&value, UINT, at)?.lanes[0],
            _ => value.lanes[0],
        };
        let own = self.scalar_value(own)?;
        let own = self.convert(&own, result, at)?.lanes[0];
        let wide = result.scalar.size() == 8;
        let words = match wide {
            true => self.split_words(own, result.scalar),
            false => [self.encode(own, result.scalar), self.b.u32(0)],
        };
        let index = self.count(index)?;
        let size = self.count(size)?;
        let live = self.takes_part();
        let name = format!("msl_{kind}_{suffix}");
        let pair = self.b.call(at, &name, &[lane, words[0], words[1], index, size, live])?;
        let [low, high] = [0, 1].map(|word| self.b.access_index(pair, word));
        let value = match wide {
            true => self.join_words(low, high, result.scalar),
            false => self.decode(low, result.scalar),
        };
        Ok(Typed::scalar(result.scalar, value))
    }

    /// The sum over all threads.
    fn sum_all(&mut self, value: Value) -> Value {
        let index = self.local_index;
        let size = self.b.u32(self.group);
        let all = self.b.bool(true);
        self.b.call_known("msl_sum_f32", &[value, index, size, all])
    }

    /// The sum, over all elements of an array, of what `term` makes of each, as float.
    fn sum_over(
        &mut self,
        at: u32,
        data: Pointer,
        size: Value,
        term: impl FnOnce(&mut Self, &Typed) -> Result<Value>,
    ) -> Result<Value> {
        let float = self.b.register_ty(Register::F32);
        let uint = self.b.register_ty(Register::U32);
        let sum = self.b.local("sum", float);
        let element = self.b.local("element", uint);
        let zero = self.b.f32(0.0);
        self.b.store(sum, zero);
        self.b.store(element, self.local_index);
        self.b.open();
        let index = self.b.load(element);
        let inside = self.b.binary(Op::Less, index, size);
        self.b.break_unless(inside);
        let offset = Typed::scalar(Scalar::UInt, index);
        let made = self.offset(data, &offset, at).and_then(|pointer| {
            let value = self.load(&pointer, at)?;
            let value = self.convert(&value, Type { scalar: Scalar::Float, ..value.ty }, at)?;
            term(self, &value)
        });
        if let Ok(term) = &made {
            let before = self.b.load(sum);
            let after = self.b.binary(Op::Add, before, *term);
            self.b.store(sum, after);
        }
        let body = self.b.close();
        self.b.open();
        let index = self.b.load(element);
        let step = self.b.u32(self.group);
        let next = self.b.binary(Op::Add, index, step);
        self.b.store(element, next);
        let continuing = self.b.close();
        self.b.loop_(body, continuing, None);
        made?;
        let own = self.b.load(sum);
        Ok(self.sum_all(own))
    }

    /// Mean, sum of squared distances to it, and count, of the scalars in `data`.
    fn welford_reduce(&mut self, at: u32, data: Pointer, size: Value) -> Result<Typed> {
        if data.ty.lanes != 1 {
            return Err(Fault::unsupported(
                at,
                format!("threadgroup_welford_reduce of {}", data.ty),
            ));
        }
        self.b.barrier(naga::Barrier::WORK_GROUP);
        let count = self.b.convert(size, Register::F32);
        let sum = self.sum_over(at, data, size, |_, value| Ok(value.lanes[0]))?;
        let mean = self.b.binary(Op::Divide, sum, count);
        let squares = self.sum_over(at, data, size, |this, value| {
            let distance = this.b.binary(Op::Subtract, value.lanes[0], mean);
            Ok(this.b.binary(Op::Multiply, distance, distance))
        })?;
        Ok(Typed { ty: FLOAT3, lanes: Lanes::from_slice(&[mean, squares, count]) })
    }

    /// The same from triples of mean, squares and count.
    fn welford_combine_all(&mut self, at: u32, data: Pointer, size: Value) -> Result<Typed> {
        if data.ty.lanes != 3 {
            return Err(Fault::unsupported(
                at,
                format!("threadgroup_welford_combine of {}", data.ty),
            ));
        }
        self.b.barrier(naga::Barrier::WORK_GROUP);
        let count = self.sum_over(at, data, size, |_, triple| Ok(triple.lanes[2]))?;
        let sum = self.sum_over(at, data, size, |this, triple| {
            Ok(this.weighted(triple.lanes[2], triple.lanes[0]))
        })?;
        let mean = self.b.binary(Op::Divide, sum, count);
        let some = self.b.call_known("msl_truth", &[count]);
        let zero = self.b.f32(0.0);
        let mean = self.b.select(some, mean, zero);
        let squares = self.sum_over(at, data, size, |this, triple| {
            let distance = this.b.binary(Op::Subtract, triple.lanes[0], mean);
            let square = this.b.binary(Op::Multiply, distance, distance);
            let square = this.weighted(triple.lanes[2], square);
            Ok(this.b.binary(Op::Add, triple.lanes[1], square))
        })?;
        Ok(Typed { ty: FLOAT3, lanes: Lanes::from_slice(&[mean, squares, count]) })
    }

    /// `weight * value`, and 0 of weight 0 whatever the value.
    fn weighted(&mut self, weight: Value, value: Value) -> Value {
        let some = self.b.call_known("msl_truth", &[weight]);
        let product = self.b.binary(Op::Multiply, weight, value);
        let zero = self.b.f32(0.0);
        self.b.select(some, product, zero)
    }

    /// `welford_combine(a, b)` of two triples.
    pub(super) fn welford_combine(&mut self, a: &Typed, b: &Typed, at: u32) -> Result<Typed> {
        let (a, b) = (self.convert(a, FLOAT3, at)?, self.convert(b, FLOAT3, at)?);
        let lane = |value: &Typed, lane: usize| Typed::scalar(Scalar::Float, value.lanes[lane]);
        let delta = self.binary(BinaryOp::Subtract, &lane(&b, 0), &lane(&a, 0), at)?;
        let weight = self.binary(BinaryOp::Add, &lane(&a, 2), &lane(&b, 2), at)?;
        let ratio = self.binary(BinaryOp::Divide, &lane(&b, 2), &weight, at)?;
        let some = self.b.call_known("msl_truth", &[weight.lanes[0]]);
        let zero = self.b.f32(0.0);
        let ratio = Typed::scalar(Scalar::Float, self.b.select(some, ratio.lanes[0], zero));
        let step = self.binary(BinaryOp::Multiply, &delta, &ratio, at)?;
        let mean = self.binary(BinaryOp::Add, &lane(&a, 0), &step, at)?;
        let squares = self.binary(BinaryOp::Add, &lane(&a, 1), &lane(&b, 1), at)?;
        let square = self.binary(BinaryOp::Multiply, &delta, &delta, at)?;
        let square = self.binary(BinaryOp::Multiply, &square, &lane(&a, 2), at)?;
        let square = self.binary(BinaryOp::Multiply, &square, &ratio, at)?;
        let squares = self.binary(BinaryOp::Add, &squares, &square, at)?;
        let lanes = [mean.lanes[0], squares.lanes[0], weight.lanes[0]];
        Ok(Typed { ty: FLOAT3, lanes: Lanes::from_slice(&lanes) })
    }
}
