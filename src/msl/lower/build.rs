//! A thin layer over naga's arenas: expressions are emitted where they are made.

use std::collections::HashMap;

use naga::{
    AddressSpace, ArraySize, AtomicFunction, Barrier, BinaryOperator, Block, Expression, Function,
    GlobalVariable, Handle, Literal, LocalVariable, Module, PredeclaredType, Range, ScalarKind,
    Span, Statement, Type, TypeInner, UnaryOperator, VectorSize,
};

use super::super::error::Fault;
use super::super::library::Functions;
use super::super::types::Register;

pub(super) type Value = Handle<Expression>;

pub(super) struct Builder {
    pub module: Module,
    pub function: Function,
    functions: &'static Functions,
    /// The innermost block last.
    blocks: Vec<Block>,
    literals: HashMap<(u8, u64), Value>,
    globals: HashMap<Handle<GlobalVariable>, Value>,
    /// Above 0 while what is made is thrown away.
    discarding: u32,
}

/// A function that is put aside.
#[derive(Default)]
pub(super) struct Scratch {
    pub function: Function,
    blocks: Vec<Block>,
    literals: HashMap<(u8, u64), Value>,
    globals: HashMap<Handle<GlobalVariable>, Value>,
}

pub(super) const fn scalar(register: Register) -> naga::Scalar {
    match register {
        Register::Bool => naga::Scalar::BOOL,
        Register::I32 => naga::Scalar::I32,
        Register::U32 => naga::Scalar::U32,
        Register::I64 => naga::Scalar::I64,
        Register::U64 => naga::Scalar::U64,
        Register::F32 => naga::Scalar::F32,
    }
}

impl Builder {
    pub fn new(functions: &'static Functions) -> Self {
        Self {
            module: functions.module.clone(),
            function: Function::default(),
            functions,
            blocks: vec![Block::new()],
            literals: HashMap::new(),
            globals: HashMap::new(),
            discarding: 0,
        }
    }

    pub fn ty(&mut self, inner: TypeInner) -> Handle<Type> {
        self.module.types.insert(Type { name: None, inner }, Span::UNDEFINED)
    }

    pub fn register_ty(&mut self, register: Register) -> Handle<Type> {
        self.ty(TypeInner::Scalar(scalar(register)))
    }

    /// An array of `length` scalars; without a length, one as long as its binding.
    pub fn array_ty(&mut self, base: TypeInner, length: Option<u32>, stride: u32) -> Handle<Type> {
        let base = self.ty(base);
        let size = match length.and_then(std::num::NonZeroU32::new) {
            Some(length) => ArraySize::Constant(length),
            None => ArraySize::Dynamic,
        };
        self.ty(TypeInner::Array { base, size, stride })
    }

    fn push(&mut self, statement: Statement) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement, Span::UNDEFINED);
        }
    }

    pub fn expr(&mut self, expression: Expression) -> Value {
        let emitted = !expression.needs_pre_emit();
        let value = self.function.expressions.append(expression, Span::UNDEFINED);
        if emitted {
            let last = self.blocks.last_mut().and_then(|block| block.last_mut());
            if let Some(Statement::Emit(range)) = last
                && let Some((first, end)) = range.first_and_last()
                && end.index() + 1 == value.index()
            {
                *range = Range::new_from_bounds(first, value);
            } else {
                self.push(Statement::Emit(Range::new_from_bounds(value, value)));
            }
        }
        value
    }

    /// Gives a value a name for whoever reads the output.
    pub fn name(&mut self, value: Value, name: &str) {
        let nameable = !self.function.expressions[value].needs_pre_emit();
        if nameable && self.discarding == 0 {
            self.function.named_expressions.entry(value).or_insert_with(|| name.to_owned());
        }
    }

    fn literal(&mut self, tag: u8, bits: u64, literal: Literal) -> Value {
        if let Some(&value) = self.literals.get(&(tag, bits)) {
            return value;
        }
        let value = self.expr(Expression::Literal(literal));
        self.literals.insert((tag, bits), value);
        value
    }

    pub fn u32(&mut self, value: u32) -> Value {
        self.literal(0, value.into(), Literal::U32(value))
    }

    pub fn i32(&mut self, value: i32) -> Value {
        self.literal(1, u64::from(value.cast_unsigned()), Literal::I32(value))
    }

    pub fn i64(&mut self, value: i64) -> Value {
        self.literal(2, value.cast_unsigned(), Literal::I64(value))
    }

    pub fn u64(&mut self, value: u64) -> Value {
        self.literal(3, value, Literal::U64(value))
    }

    pub fn bool(&mut self, value: bool) -> Value {
        self.literal(4, value.into(), Literal::Bool(value))
    }

    pub fn f32(&mut self, value: f32) -> Value {
        let bits = value.to_bits();
        if value.is_finite() {
            return self.literal(5, bits.into(), Literal::F32(value));
        }
        let bits = self.u32(bits);
        self.call_known("math_from_bits", &[bits])
    }

    /// The integer `value`, or the bool or float of it, in a register.
    pub fn constant(&mut self, register: Register, value: i8) -> Value {
        match register {
            Register::Bool => self.bool(value != 0),
            Register::I32 => self.i32(value.into()),
            Register::U32 => self.u32(i32::from(value).cast_unsigned()),
            Register::I64 => self.i64(value.into()),
            Register::U64 => self.u64(i64::from(value).cast_unsigned()),
            Register::F32 => self.f32(value.into()),
        }
    }

    pub fn binary(&mut self, op: BinaryOperator, left: Value, right: Value) -> Value {
        self.expr(Expression::Binary { op, left, right })
    }

    pub fn unary(&mut self, op: UnaryOperator, expr: Value) -> Value {
        self.expr(Expression::Unary { op, expr })
    }

    pub fn not(&mut self, value: Value) -> Value {
        self.unary(UnaryOperator::LogicalNot, value)
    }

    pub fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.expr(Expression::Select { condition, accept, reject })
    }

    /// The value converted to another kind or width.
    pub fn convert(&mut self, expr: Value, register: Register) -> Value {
        let scalar = scalar(register);
        self.expr(Expression::As { expr, kind: scalar.kind, convert: Some(scalar.width) })
    }

    /// The same bits as another kind of the same width.
    pub fn bitcast(&mut self, expr: Value, kind: ScalarKind) -> Value {
        self.expr(Expression::As { expr, kind, convert: None })
    }

    pub fn load(&mut self, pointer: Value) -> Value {
        self.expr(Expression::Load { pointer })
    }

    pub fn store(&mut self, pointer: Value, value: Value) {
        self.push(Statement::Store { pointer, value });
    }

    pub fn access(&mut self, base: Value, index: Value) -> Value {
        self.expr(Expression::Access { base, index })
    }

    pub fn access_index(&mut self, base: Value, index: u32) -> Value {
        self.expr(Expression::AccessIndex { base, index })
    }

    pub fn global(&mut self, variable: Handle<GlobalVariable>) -> Value {
        if let Some(&value) = self.globals.get(&variable) {
            return value;
        }
        let value = self.expr(Expression::GlobalVariable(variable));
        self.globals.insert(variable, value);
        value
    }

    pub fn workgroup(&mut self, name: &str, ty: Handle<Type>) -> Handle<GlobalVariable> {
        self.module.global_variables.append(
            GlobalVariable {
                name: Some(name.to_owned()),
                space: AddressSpace::WorkGroup,
                binding: None,
                ty,
                init: None,
                memory_decorations: naga::MemoryDecorations::empty(),
            },
            Span::UNDEFINED,
        )
    }

    /// A new variable of the function, zero at first; the pointer to it.
    pub fn local(&mut self, name: &str, ty: Handle<Type>) -> Value {
        let variable = LocalVariable { name: Some(name.to_owned()), ty, init: None };
        let variable = self.function.local_variables.append(variable, Span::UNDEFINED);
        self.expr(Expression::LocalVariable(variable))
    }

    pub fn has(&self, name: &str) -> bool {
        self.functions.by_name.contains_key(name)
    }

    /// The types of a library function's arguments.
    pub fn parameters(&self, name: &str) -> Option<Vec<TypeInner>> {
        let function = &self.module.functions[*self.functions.by_name.get(name)?];
        let types = &self.module.types;
        Some(function.arguments.iter().map(|argument| types[argument.ty].inner.clone()).collect())
    }

    /// The type of a library function's result.
    pub fn result(&self, name: &str) -> Option<TypeInner> {
        let function = &self.module.functions[*self.functions.by_name.get(name)?];
        function.result.as_ref().map(|result| self.module.types[result.ty].inner.clone())
    }

    /// Calls a library function.
    pub fn call(&mut self, at: u32, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        if self.has(name) {
            Ok(self.call_known(name, arguments))
        } else {
            Err(Fault::unsupported(at, format!("function `{name}`")))
        }
    }

    /// Calls a library function that this module's code names; a test holds that each exists.
    pub fn call_known(&mut self, name: &str, arguments: &[Value]) -> Value {
        let Some(&function) = self.functions.by_name.get(name) else {
            debug_assert!(false, "no function {name}");
            return self.u32(0);
        };
        self.call_function(function, arguments)
    }

    /// Atomically replaces a word by `fun` of it and `value`; the word before.
    pub fn atomic(&mut self, pointer: Value, fun: AtomicFunction, value: Value) -> Value {
        let ty = self.register_ty(Register::U32);
        let result = Expression::AtomicResult { ty, comparison: false };
        let result = self.function.expressions.append(result, Span::UNDEFINED);
        self.push(Statement::Atomic { pointer, fun, value, result: Some(result) });
        result
    }

    /// Writes `value` if the word is still `expected`: the word before, and whether it was.
    pub fn compare_exchange(
        &mut self,
        pointer: Value,
        expected: Value,
        value: Value,
    ) -> (Value, Value) {
        let kind = PredeclaredType::AtomicCompareExchangeWeakResult(naga::Scalar::U32);
        let ty = self.module.generate_predeclared_type(kind);
        let result = Expression::AtomicResult { ty, comparison: true };
        let result = self.function.expressions.append(result, Span::UNDEFINED);
        let fun = AtomicFunction::Exchange { compare: Some(expected) };
        self.push(Statement::Atomic { pointer, fun, value, result: Some(result) });
        (self.access_index(result, 0), self.access_index(result, 1))
    }

    pub fn barrier(&mut self, barrier: Barrier) {
        self.push(Statement::ControlBarrier(barrier));
    }

    /// What `make` builds, as a block of its own.
    pub fn block<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.open();
        let result = make(self);
        (self.close(), result)
    }

    pub fn open(&mut self) {
        self.blocks.push(Block::new());
    }

    /// Goes on with a block that was closed.
    pub fn reopen(&mut self, block: Block) {
        self.blocks.push(block);
    }

    pub fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    /// Goes on with another function, in place of the one that is being built.
    pub fn swap(&mut self, other: &mut Scratch) {
        std::mem::swap(&mut self.function, &mut other.function);
        std::mem::swap(&mut self.blocks, &mut other.blocks);
        std::mem::swap(&mut self.literals, &mut other.literals);
        std::mem::swap(&mut self.globals, &mut other.globals);
    }

    pub fn return_value(&mut self, value: Value) {
        self.push(Statement::Return { value: Some(value) });
    }

    pub fn call_function(&mut self, function: Handle<Function>, arguments: &[Value]) -> Value {
        let result = Expression::CallResult(function);
        let result = self.function.expressions.append(result, Span::UNDEFINED);
        let arguments = arguments.to_vec();
        self.push(Statement::Call { function, arguments, result: Some(result) });
        result
    }

    /// Opens a block whose contents are not kept.
    pub fn open_discarded(&mut self) {
        self.discarding += 1;
        self.open();
    }

    pub fn close_discarded(&mut self) {
        self.close();
        self.discarding = self.discarding.saturating_sub(1);
    }

    pub fn if_(&mut self, condition: Value, accept: Block, reject: Block) {
        self.push(Statement::If { condition, accept, reject });
    }

    pub fn loop_(&mut self, body: Block, continuing: Block, break_if: Option<Value>) {
        self.push(Statement::Loop { body, continuing, break_if });
    }

    pub fn break_(&mut self) {
        self.push(Statement::Break);
    }

    pub fn continue_(&mut self) {
        self.push(Statement::Continue);
    }

    pub fn return_(&mut self) {
        self.push(Statement::Return { value: None });
    }

    /// `if !condition { break; }`
    pub fn break_unless(&mut self, condition: Value) {
        let (stop, ()) = self.block(Self::break_);
        self.if_(condition, Block::new(), stop);
    }

    /// Sizes the reductions' scratch arrays for groups of `threads`.
    pub fn cut_scratch(&mut self, threads: u32) {
        let scratch = self.module.global_variables.iter();
        let scratch = scratch.filter(|(_, variable)| {
            let name = variable.name.as_deref().unwrap_or_default();
            name.starts_with("msl_scratch_") && name != "msl_scratch_pair"
        });
        let scratch: Vec<_> = scratch.map(|(handle, variable)| (handle, variable.ty)).collect();
        for (handle, ty) in scratch {
            if let TypeInner::Array { base, stride, .. } = self.module.types[ty].inner {
                let size = match std::num::NonZeroU32::new(threads) {
                    Some(threads) => ArraySize::Constant(threads),
                    None => continue,
                };
                let ty = self.ty(TypeInner::Array { base, size, stride });
                self.module.global_variables[handle].ty = ty;
            }
        }
    }

    /// `value` of 3 lanes taken apart.
    pub fn lanes3(&mut self, value: Value) -> [Value; 3] {
        [0, 1, 2].map(|lane| self.access_index(value, lane))
    }

    /// Two words as a vector.
    pub fn pair(&mut self, words: [Value; 2]) -> Value {
        let inner = TypeInner::Vector { size: VectorSize::Bi, scalar: naga::Scalar::U32 };
        let ty = self.ty(inner);
        self.expr(Expression::Compose { ty, components: words.to_vec() })
    }

    pub fn vec3u(&mut self) -> Handle<Type> {
        self.ty(TypeInner::Vector { size: VectorSize::Tri, scalar: naga::Scalar::U32 })
    }
}
