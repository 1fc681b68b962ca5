//! Statements.

use super::super::ast::*;
use super::super::types::Type;
use super::memory::{Place, Pointer, array_register};
use super::*;

/// Elements of an array that a kernel may declare: 64 KB of floats, above any device's memory.
const LONGEST_ARRAY: u64 = 16384;

impl<'a> Lowering<'a> {
    pub(super) fn statements(&mut self, statements: &'a [Stmt]) -> Result<()> {
        for statement in statements {
            if self.ended {
                // What follows a jump in its block is never run.
                return Ok(());
            }
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'a Stmt) -> Result<()> {
        match &statement.kind {
            StmtKind::Empty => Ok(()),
            StmtKind::Declare(declarations) => {
                declarations.iter().try_for_each(|declaration| self.declare(declaration))
            }
            StmtKind::Expr(expr) => self.effect(expr),
            StmtKind::Block(statements) => self.scoped(|this| this.statements(statements)),
            StmtKind::If { condition, accept, reject } => {
                let condition_value = self.value(condition)?;
                let condition = self.truth(&condition_value, condition.at)?;
                self.conditions += 1;
                let accept = self.branch(|this| this.statement(accept))?;
                let reject = match reject {
                    Some(reject) => self.branch(|this| this.statement(reject))?,
                    None => naga::Block::new(),
                };
                self.conditions -= 1;
                self.b.if_(condition, accept, reject);
                Ok(())
            }
            StmtKind::For { initial, condition, step, body } => self.scoped(|this| {
                this.statement(initial)?;
                let body = this.branch(|this| {
                    if let Some(condition) = condition {
                        this.leave_unless(condition)?;
                    }
                    // In a block of its own, so that `condition` and `step` see no name of it.
                    this.scoped(|this| this.statement(body))
                })?;
                let continuing = this.branch(|this| match step {
                    Some(step) => this.effect(step),
                    None => Ok(()),
                })?;
                this.b.loop_(body, continuing, None);
                Ok(())
            }),
            StmtKind::While { condition, body } => {
                let body = self.branch(|this| {
                    this.leave_unless(condition)?;
                    this.statement(body)
                })?;
                self.b.loop_(body, naga::Block::new(), None);
                Ok(())
            }
            StmtKind::DoWhile { body, condition } => {
                let body = self.branch(|this| this.statement(body))?;
                self.b.open();
                let again =
                    self.value(condition).and_then(|value| self.truth(&value, condition.at));
                let leave = again.map(|again| self.b.not(again));
                let continuing = self.b.close();
                self.b.loop_(body, continuing, Some(leave?));
                Ok(())
            }
            StmtKind::Return(None) if !self.calls.is_empty() => {
                Err(Fault::parse(0, "a function that returns nothing"))
            }
            StmtKind::Return(None) => {
                self.leave_kernel();
                Ok(())
            }
            StmtKind::Return(Some(value)) => self.return_value(value),
            StmtKind::Break => {
                self.b.break_();
                self.ended = true;
                Ok(())
            }
            StmtKind::Continue => {
                self.b.continue_();
                self.ended = true;
                Ok(())
            }
        }
    }

    /// `return`. A kernel with barriers goes on without effect instead: its other threads wait.
    fn leave_kernel(&mut self) {
        match self.live {
            None => {
                self.b.return_();
                self.ended = true;
            }
            Some(live) => {
                let no = self.b.bool(false);
                self.b.store(live, no);
            }
        }
    }

    fn leave_unless(&mut self, condition: &'a Expr) -> Result<()> {
        let value = self.value(condition)?;
        let value = self.truth(&value, condition.at)?;
        self.b.break_unless(value);
        Ok(())
    }

    /// What `make` lowers, in a scope of its own.
    pub(super) fn scoped(&mut self, make: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.scopes.push(HashMap::new());
        let result = make(self);
        self.scopes.pop();
        result
    }

    /// What `make` lowers, as a block that the caller places.
    fn branch(&mut self, make: impl FnOnce(&mut Self) -> Result<()>) -> Result<naga::Block> {
        let ended = std::mem::replace(&mut self.ended, false);
        self.b.open();
        let result = self.scoped(make);
        let block = self.b.close();
        self.ended = ended;
        result.map(|()| block)
    }

    pub(super) fn declare(&mut self, declaration: &'a Declaration) -> Result<()> {
        let entity = self.declared(declaration)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(&declaration.name, entity);
        }
        Ok(())
    }

    fn declared(&mut self, declaration: &'a Declaration) -> Result<Entity> {
        let Declaration { at, name, space, ty, length, initial } = declaration;
        let at = *at;
        if *space == Space::Threadgroup || length.is_some() {
            return self.declare_array(declaration);
        }
        let Some(initial) = initial else {
            let ty = self.type_of(ty)?;
            return self.declare_variable(name, ty, at);
        };
        let value = match self.operand(initial)? {
            Operand::Value(value) => value,
            Operand::Pointer(pointer) => {
                if self.usage.assigned.contains(name) {
                    return Err(Fault::unsupported(at, "a pointer that is assigned to"));
                }
                return Ok(Entity::Pointer(pointer));
            }
        };
        if ty.pointer {
            return Err(Fault::unsupported(at, "a pointer made of a value"));
        }
        let value = match &ty.kind {
            TypeKind::Auto => value,
            _ => {
                let ty = self.type_of(ty)?;
                self.convert(&value, ty, at)?
            }
        };
        let usage = self.usage;
        if !(usage.assigned.contains(name) || usage.indexed.contains(name)) {
            if let [lane] = value.lanes.as_slice() {
                self.b.name(*lane, name);
            }
            return Ok(Entity::Value(value));
        }
        let entity = self.declare_variable(name, value.ty, at)?;
        if let Entity::Variable { lanes, .. } = &entity {
            for (pointer, lane) in lanes.iter().zip(&value.lanes) {
                self.b.store(*pointer, *lane);
            }
        }
        Ok(entity)
    }

    fn declare_variable(&mut self, name: &str, ty: Type, at: u32) -> Result<Entity> {
        self.need_int64(ty.scalar, at)?;
        let register = self.b.register_ty(ty.scalar.register());
        let lanes = (0..ty.lanes).map(|_| self.b.local(name, register)).collect();
        Ok(Entity::Variable { ty, lanes })
    }

    fn declare_array(&mut self, declaration: &'a Declaration) -> Result<Entity> {
        let Declaration { at, name, space, ty, length, initial } = declaration;
        let at = *at;
        if initial.is_some() {
            return Err(Fault::unsupported(at, "an array or threadgroup variable with a value"));
        }
        let ty = self.type_of(ty)?;
        self.need_int64(ty.scalar, at)?;
        let count = match length {
            None => 1,
            Some(length) => constant_length(length)
                .filter(|count| (1..=LONGEST_ARRAY).contains(count))
                .ok_or_else(|| Fault::unsupported(length.at, "an array of such a length"))?,
        };
        // At most 4 times 16,384.
        let scalars = u32::try_from(count).unwrap_or(1).saturating_mul(ty.stride());
        let register = array_register(ty.scalar);
        let stride = if ty.scalar.size() == 8 { 8 } else { 4 };
        let base = naga::TypeInner::Scalar(build::scalar(register));
        let array = self.b.array_ty(base, Some(scalars), stride);
        let shared = *space == Space::Threadgroup;
        let base = if shared {
            let variable = self.b.workgroup(name, array);
            self.b.global(variable)
        } else {
            self.b.local(name, array)
        };
        let pointer = Pointer { place: Place::Array { base, shared }, ty, index: None };
        Ok(if length.is_some() { Entity::Pointer(pointer) } else { Entity::Element(pointer) })
    }

    /// The type that a name of one stands for.
    pub(super) fn type_of(&mut self, name: &'a TypeName) -> Result<Type> {
        match &name.kind {
            TypeKind::Known(ty) => Ok(*ty),
            TypeKind::Auto => Err(Fault::parse(name.at, "`auto` without a value")),
            TypeKind::Decltype(expr) => {
                let conditions = self.conditions;
                self.b.open_discarded();
                let value = self.value(expr);
                self.b.close_discarded();
                self.conditions = conditions;
                Ok(value?.ty)
            }
        }
    }
}

/// An array's length: a number, or a product or sum of numbers.
fn constant_length(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Int { value, .. } => Some(*value),
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (constant_length(left)?, constant_length(right)?);
            match op {
                BinaryOp::Add => left.checked_add(right),
                BinaryOp::Subtract => left.checked_sub(right),
                BinaryOp::Multiply => left.checked_mul(right),
                BinaryOp::Divide => left.checked_div(right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The scalar of a pointer cast: memory is read as this type.
pub(super) fn pointee(ty: &TypeName) -> Option<Type> {
    match ty.kind {
        TypeKind::Known(ty) => Some(ty),
        _ => None,
    }
}
