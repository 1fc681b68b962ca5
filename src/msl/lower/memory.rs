//! Loads, stores and atomic updates: of arguments in bindings, and of arrays.

use naga::{AtomicFunction, BinaryOperator as Op};

use super::super::types::{Register, Scalar, Type};
use super::build::Value;
use super::*;

/// A buffer argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    /// The binding's variable.
    pub base: Value,
    /// Where the argument starts, in words, or in elements of a type that is narrower.
    pub start: Value,
    pub atomic: bool,
    /// Whether the kernel may write through the argument.
    pub writable: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The argument of this position among the buffers.
    Buffer(usize),
    /// An array in threadgroup memory or of the thread's own: its variable.
    Array { base: Value, shared: bool },
}

/// A pointer to a value of type `ty`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    pub place: Place,
    pub ty: Type,
    /// Elements from the start, u32; none is 0.
    pub index: Option<Value>,
}

/// What an array in threadgroup memory holds for a type: bools are words there.
pub(super) const fn array_register(scalar: Scalar) -> Register {
    match scalar.register() {
        Register::Bool => Register::U32,
        other => other,
    }
}

impl Lowering<'_> {
    /// Runs `write` for threads that are in the grid and have not returned.
    pub(super) fn guarded(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(live) = self.live else {
            return write(self);
        };
        let live = self.b.load(live);
        self.b.open();
        let result = write(self);
        let block = self.b.close();
        self.b.if_(live, block, naga::Block::new());
        result
    }

    /// `pointer + offset`, in elements.
    pub(super) fn offset(&mut self, pointer: Pointer, offset: &Typed, at: u32) -> Result<Pointer> {
        if !offset.ty.scalar.is_integer() || offset.ty.lanes != 1 {
            return Err(Fault::unsupported(at, format!("an index of type {}", offset.ty)));
        }
        let offset = self.convert(offset, Type::scalar(Scalar::UInt), at)?.lanes[0];
        let index = match pointer.index {
            None => offset,
            Some(index) => self.b.binary(Op::Add, index, offset),
        };
        Ok(Pointer { index: Some(index), ..pointer })
    }

    /// The index of a lane, in scalars.
    fn scalar_index(&mut self, pointer: &Pointer, lane: u8) -> Value {
        let index = match pointer.index {
            None => self.b.u32(0),
            Some(index) => index,
        };
        let stride = pointer.ty.stride();
        let index = self.times(index, stride);
        self.plus(index, lane.into())
    }

    fn times(&mut self, value: Value, factor: u32) -> Value {
        if factor == 1 {
            return value;
        }
        let factor = self.b.u32(factor);
        self.b.binary(Op::Multiply, value, factor)
    }

    fn plus(&mut self, value: Value, addend: u32) -> Value {
        if addend == 0 {
            return value;
        }
        let addend = self.b.u32(addend);
        self.b.binary(Op::Add, value, addend)
    }

    fn array_element(&mut self, base: Value, pointer: &Pointer, lane: u8) -> Value {
        let index = self.scalar_index(pointer, lane);
        self.b.access(base, index)
    }

    /// The word that holds a scalar of an argument (its low one), and the bits below it there.
    fn word(&mut self, buffer: Buffer, pointer: &Pointer, lane: u8) -> (Value, Option<Value>) {
        let index = self.scalar_index(pointer, lane);
        let size = pointer.ty.scalar.size();
        let index = self.times(index, if size == 8 { 2 } else { 1 });
        let index = self.b.binary(Op::Add, buffer.start, index);
        if size >= 4 {
            return (index, None);
        }
        let [per_word, bits, log] = if size == 2 { [2, 16, 1] } else { [4, 8, 2] };
        let log = self.b.u32(log);
        let word = self.b.binary(Op::ShiftRight, index, log);
        let rest = self.b.u32(per_word - 1);
        let rest = self.b.binary(Op::And, index, rest);
        let bits = self.b.u32(bits);
        (word, Some(self.b.binary(Op::Multiply, rest, bits)))
    }

    fn written_buffer(&self, position: usize, at: u32) -> Result<Buffer> {
        let buffer = self.buffer(position, at)?;
        match buffer.writable {
            true => Ok(buffer),
            false => Err(Fault::unsupported(at, "a write to constant memory")),
        }
    }

    fn buffer(&self, position: usize, at: u32) -> Result<Buffer> {
        let buffer = self.buffers.get(position).copied();
        buffer.ok_or_else(|| Fault::unsupported(at, "an argument that is not bound"))
    }

    pub(super) fn load(&mut self, pointer: &Pointer, at: u32) -> Result<Typed> {
        self.need_int64(pointer.ty.scalar, at)?;
        let mut lanes = Lanes::new();
        for lane in 0..pointer.ty.lanes {
            lanes.push(self.load_scalar(pointer, lane, at)?);
        }
        Ok(Typed { ty: pointer.ty, lanes })
    }

    fn load_scalar(&mut self, pointer: &Pointer, lane: u8, at: u32) -> Result<Value> {
        let scalar = pointer.ty.scalar;
        let position = match pointer.place {
            Place::Array { base, .. } => {
                let element = self.array_element(base, pointer, lane);
                let value = self.b.load(element);
                return Ok(match scalar {
                    Scalar::Bool => self.decode(value, scalar),
                    _ => value,
                });
            }
            Place::Buffer(position) => position,
        };
        let buffer = self.buffer(position, at)?;
        let (index, below) = self.word(buffer, pointer, lane);
        let word = self.b.access(buffer.base, index);
        let mut word = self.b.load(word);
        if scalar.size() == 8 {
            let next = self.plus(index, 1);
            let high = self.b.access(buffer.base, next);
            let high = self.b.load(high);
            return Ok(self.join_words(word, high, scalar));
        }
        if let Some(below) = below {
            let mask = self.b.u32((1 << (8 * scalar.size())) - 1);
            word = self.b.binary(Op::ShiftRight, word, below);
            word = self.b.binary(Op::And, word, mask);
        }
        Ok(self.decode(word, scalar))
    }

    /// Stores lane `lane` of what `pointer` points to.
    pub(super) fn store_scalar(
        &mut self,
        pointer: &Pointer,
        lane: u8,
        value: Value,
        at: u32,
    ) -> Result<()> {
        let scalar = pointer.ty.scalar;
        let position = match pointer.place {
            Place::Array { base, shared } => {
                let value = match scalar {
                    Scalar::Bool => self.encode(value, scalar),
                    _ => value,
                };
                if !shared {
                    let element = self.array_element(base, pointer, lane);
                    self.b.store(element, value);
                    return Ok(());
                }
                return self.guarded(|this| {
                    let element = this.array_element(base, pointer, lane);
                    this.b.store(element, value);
                    Ok(())
                });
            }
            Place::Buffer(position) => position,
        };
        let buffer = self.written_buffer(position, at)?;
        self.guarded(|this| {
            let (index, below) = this.word(buffer, pointer, lane);
            let word = this.b.access(buffer.base, index);
            if scalar.size() == 8 {
                let [low, high] = this.split_words(value, scalar);
                this.b.store(word, low);
                let next = this.plus(index, 1);
                let next = this.b.access(buffer.base, next);
                this.b.store(next, high);
                return Ok(());
            }
            let bits = this.encode(value, scalar);
            let Some(below) = below else {
                this.b.store(word, bits);
                return Ok(());
            };
            let kept = this.b.u32((1 << (8 * scalar.size())) - 1);
            let kept = this.b.binary(Op::ShiftLeft, kept, below);
            let kept = this.b.unary(naga::UnaryOperator::BitwiseNot, kept);
            let bits = this.b.binary(Op::ShiftLeft, bits, below);
            // Not `atomicAnd` and `atomicOr`: of two threads that store different values to one
            // element, one must win, where those would leave a mixture.
            this.update(word, |this, old| {
                let old = this.b.binary(Op::And, old, kept);
                Ok(this.b.binary(Op::InclusiveOr, old, bits))
            })
        })
    }

    /// Atomically replaces a word by `make` of it.
    fn update(
        &mut self,
        word: Value,
        make: impl FnOnce(&mut Self, Value) -> Result<Value>,
    ) -> Result<()> {
        let ty = self.b.register_ty(Register::U32);
        let seen = self.b.local("seen", ty);
        let now = self.b.load(word);
        self.b.store(seen, now);
        self.b.open();
        let old = self.b.load(seen);
        let made = make(self, old);
        if let Ok(new) = made {
            let (before, done) = self.b.compare_exchange(word, old, new);
            self.b.store(seen, before);
            let (stop, ()) = self.b.block(|b| b.break_());
            self.b.if_(done, stop, naga::Block::new());
        }
        let body = self.b.close();
        self.b.loop_(body, naga::Block::new(), None);
        made.map(|_| ())
    }

    /// Atomically replaces an element of an argument by `make` of it; nobody sees a part of it,
    /// except that a 64-bit sum adds its words one after the other.
    pub(super) fn update_element(
        &mut self,
        pointer: &Pointer,
        value: &Typed,
        combine: Combine,
        at: u32,
    ) -> Result<()> {
        let Place::Buffer(position) = pointer.place else {
            return Err(Fault::unsupported(at, "an atomic function on threadgroup memory"));
        };
        let buffer = self.written_buffer(position, at)?;
        if !buffer.atomic || pointer.ty.lanes != 1 {
            return Err(Fault::unsupported(at, format!("an atomic function on {}", pointer.ty)));
        }
        let scalar = pointer.ty.scalar;
        let value = self.convert(value, pointer.ty, at)?.lanes[0];
        self.guarded(|this| {
            let (index, below) = this.word(buffer, pointer, 0);
            let word = this.b.access(buffer.base, index);
            match (scalar, combine) {
                (Scalar::Int | Scalar::UInt, Combine::Add) => {
                    let bits = this.encode(value, scalar);
                    this.b.atomic(word, AtomicFunction::Add, bits);
                    Ok(())
                }
                (Scalar::Long | Scalar::ULong, Combine::Add) => {
                    let [low, high] = this.split_words(value, scalar);
                    let before = this.b.atomic(word, AtomicFunction::Add, low);
                    let sum = this.b.binary(Op::Add, before, low);
                    let carries = this.b.binary(Op::Less, sum, low);
                    let more = this.plus(high, 1);
                    let high = this.b.select(carries, more, high);
                    let next = this.plus(index, 1);
                    let next = this.b.access(buffer.base, next);
                    this.b.atomic(next, AtomicFunction::Add, high);
                    Ok(())
                }
                (Scalar::Long | Scalar::ULong, _) => {
                    Err(Fault::unsupported(at, "an atomic function on 64 bits other than a sum"))
                }
                _ => this.update(word, |this, word| {
                    let mut old = word;
                    let mut mask = None;
                    if let Some(below) = below {
                        let bits = this.b.u32((1 << (8 * scalar.size())) - 1);
                        old = this.b.binary(Op::ShiftRight, old, below);
                        old = this.b.binary(Op::And, old, bits);
                        mask = Some((bits, below));
                    }
                    let old = this.decode(old, scalar);
                    let new = this.combine(combine, scalar, old, value, at)?;
                    let new = this.encode(new, scalar);
                    let Some((bits, below)) = mask else {
                        return Ok(new);
                    };
                    let new = this.b.binary(Op::ShiftLeft, new, below);
                    let own = this.b.binary(Op::ShiftLeft, bits, below);
                    let own = this.b.unary(naga::UnaryOperator::BitwiseNot, own);
                    let others = this.b.binary(Op::And, word, own);
                    Ok(this.b.binary(Op::InclusiveOr, others, new))
                }),
            }
        })
    }

    fn combine(
        &mut self,
        combine: Combine,
        scalar: Scalar,
        a: Value,
        b: Value,
        at: u32,
    ) -> Result<Value> {
        let ty = Type::scalar(scalar);
        let (a, b) = (Typed::scalar(scalar, a), Typed::scalar(scalar, b));
        let result = match combine {
            Combine::Add => self.binary(super::super::ast::BinaryOp::Add, &a, &b, at)?,
            Combine::Multiply => self.binary(super::super::ast::BinaryOp::Multiply, &a, &b, at)?,
            Combine::Max => self.extreme(true, true, &a, &b, at)?,
            Combine::Min => self.extreme(false, true, &a, &b, at)?,
        };
        Ok(self.convert(&result, ty, at)?.lanes[0])
    }
}

/// What an atomic update does with the old and the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Add,
    Multiply,
    Max,
    Min,
}
