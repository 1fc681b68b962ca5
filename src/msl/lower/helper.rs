//! Functions of the source's own: each becomes a function of the module, when it is first called.

use naga::{FunctionArgument, FunctionResult, Span};

use super::super::ast::{Expr, TypeKind, TypeName};
use super::super::types::Type;
use super::super::usage::Usage;
use super::super::{Helper, Kernel};
use super::build::{Builder, Scratch, Value};
use super::*;

/// A function that is being lowered.
pub(super) struct Frame {
    name: String,
    result: Type,
}

/// Functions within each other that are lowered at most.
const DEEPEST: usize = 16;

impl<'a> Lowering<'a> {
    /// The function of this name and number of parameters.
    pub(super) fn helper(&self, name: &str) -> Option<&'a Helper> {
        let kernel: &'a Kernel = self.kernel;
        kernel.helpers.iter().find(|helper| helper.syntax.name == name)
    }

    pub(super) fn call_helper(
        &mut self,
        at: u32,
        helper: &'a Helper,
        arguments: &'a [Expr],
    ) -> Result<Typed> {
        let name = helper.syntax.name.as_str();
        if self.kernel.helpers.iter().filter(|other| other.syntax.name == name).count() > 1 {
            return Err(Fault::unsupported(at, format!("`{name}`, of which there are several")));
        }
        if helper.syntax.parameters.len() != arguments.len() {
            return Err(Fault::parse(at, format!("`{name}` with {} arguments", arguments.len())));
        }
        let mut values: Vec<Value> = Vec::new();
        for (argument, (_, ty)) in arguments.iter().zip(&helper.syntax.parameters) {
            let value = self.value(argument)?;
            values.extend(self.convert(&value, known(ty, at)?, at)?.lanes);
        }
        let result = known(&helper.syntax.result, at)?;
        self.need_int64(result.scalar, at)?;
        if result.lanes != 1 {
            return Err(Fault::unsupported(at, format!("`{name}`, which returns a vector")));
        }
        let function = match self.helpers.get(name) {
            Some(&function) => function,
            // What is wrong in its text is told where it is called.
            None => self.lower_helper(helper, result).map_err(|fault| fault.inside(name, at))?,
        };
        Ok(Typed::scalar(result.scalar, self.b.call_function(function, &values)))
    }

    fn lower_helper(
        &mut self,
        helper: &'a Helper,
        result: Type,
    ) -> Result<naga::Handle<naga::Function>> {
        let name = helper.syntax.name.as_str();
        if self.calls.len() >= DEEPEST || self.calls.iter().any(|frame| frame.name == name) {
            return Err(Fault::unsupported(0, "recursion"));
        }
        if helper.usage.barriers {
            return Err(Fault::unsupported(0, "a barrier outside of the kernel"));
        }
        let usage: &'a Usage = std::mem::replace(&mut self.usage, &helper.usage);
        let scopes = std::mem::take(&mut self.scopes);
        let live = self.live.take();
        let ended = std::mem::replace(&mut self.ended, false);
        let mut outer = Scratch::default();
        self.b.swap(&mut outer);
        self.calls.push(Frame { name: name.to_owned(), result });

        let lowered = self.helper_body(helper, result);

        self.calls.pop();
        self.b.swap(&mut outer);
        self.usage = usage;
        self.scopes = scopes;
        self.live = live;
        self.ended = ended;
        lowered?;
        let function = self.b.module.functions.append(outer.function, Span::UNDEFINED);
        self.helpers.insert(name, function);
        Ok(function)
    }

    fn helper_body(&mut self, helper: &'a Helper, result: Type) -> Result<()> {
        let ty = self.b.register_ty(result.scalar.register());
        self.b.function.name = Some(helper.syntax.name.clone());
        self.b.function.result = Some(FunctionResult { ty, binding: None });
        self.b.open();
        self.declare_constants();
        self.scopes.push(HashMap::new());
        for (name, ty) in &helper.syntax.parameters {
            let entity = self.helper_parameter(name, known(ty, ty.at)?, helper)?;
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name, entity);
            }
        }
        self.scopes.push(HashMap::new());
        self.statements(&helper.syntax.body)?;
        if !self.ended {
            // Control never gets here in a function that C++ defines.
            let value = self.b.constant(result.scalar.register(), 0);
            self.b.return_value(value);
        }
        self.b.function.body = self.b.close();
        Ok(())
    }

    /// Opens a scope with the source's constants, in the function that is being built. One that
    /// cannot be computed is an unknown name to whoever uses it.
    pub(super) fn declare_constants(&mut self) {
        self.scopes.push(HashMap::new());
        let kernel: &'a Kernel = self.kernel;
        for constant in kernel.constants.iter() {
            self.b.open_discarded();
            let computable = self.declare(constant).is_ok();
            self.b.close_discarded();
            if computable && self.declare(constant).is_err() {
                return;
            }
        }
    }

    fn helper_parameter(&mut self, name: &str, ty: Type, helper: &Helper) -> Result<Entity> {
        self.need_int64(ty.scalar, 0)?;
        let register = self.b.register_ty(ty.scalar.register());
        let mut lanes = Lanes::new();
        for _ in 0..ty.lanes {
            let arguments = &mut self.b.function.arguments;
            let index = u32::try_from(arguments.len()).unwrap_or(u32::MAX);
            arguments.push(FunctionArgument {
                name: Some(name.to_owned()),
                ty: register,
                binding: None,
            });
            lanes.push(self.b.expr(naga::Expression::FunctionArgument(index)));
        }
        if !(helper.usage.assigned.contains(name) || helper.usage.indexed.contains(name)) {
            return Ok(Entity::Value(Typed { ty, lanes }));
        }
        let pointers: Lanes = lanes.iter().map(|_| self.b.local(name, register)).collect();
        for (&pointer, &lane) in pointers.iter().zip(&lanes) {
            self.b.store(pointer, lane);
        }
        Ok(Entity::Variable { ty, lanes: pointers })
    }

    /// `return value;` in a function.
    pub(super) fn return_value(&mut self, value: &'a Expr) -> Result<()> {
        let Some(frame) = self.calls.last() else {
            return Err(Fault::parse(value.at, "a kernel that returns a value"));
        };
        let ty = frame.result;
        let result = self.value(value)?;
        let result = self.convert(&result, ty, value.at)?;
        Builder::return_value(&mut self.b, result.lanes[0]);
        self.ended = true;
        Ok(())
    }
}

fn known(name: &TypeName, at: u32) -> Result<Type> {
    match name.kind {
        TypeKind::Known(ty) if !name.pointer => Ok(ty),
        _ => Err(Fault::unsupported(at, "a function of this type")),
    }
}
