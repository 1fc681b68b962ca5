//! A parsed kernel to a naga module.
//!
//! All is scalar: a vector is its lanes, half and bfloat are f32 registers, narrow integers 32-bit
//! ones. Variables that nothing assigns to after their declaration are plain expressions, the
//! others are function variables.

mod arithmetic;
mod build;
mod call;
mod convert;
mod entry;
mod expr;
mod helper;
mod memory;
mod reduce;
mod stmt;
mod target;

use std::collections::HashMap;

use smallvec::SmallVec;

use build::{Builder, Value};
use memory::{Buffer, Pointer};

use super::error::{Fault, FaultKind};
use super::library;
use super::types::{Scalar, Type};
use super::usage::Usage;
use super::{Kernel, Layout, Program};

type Result<T> = std::result::Result<T, Fault>;
type Lanes = SmallVec<[Value; 4]>;

/// A value with its C++ type, one register a lane.
#[derive(Clone, Debug)]
struct Typed {
    ty: Type,
    lanes: Lanes,
}

impl Typed {
    fn scalar(scalar: Scalar, value: Value) -> Self {
        Self { ty: Type::scalar(scalar), lanes: SmallVec::from_slice(&[value]) }
    }

    /// The lane, or the only one of a scalar.
    fn lane(&self, lane: usize) -> Option<Value> {
        self.lanes.get(lane).or(self.lanes.first().filter(|_| self.ty.lanes == 1)).copied()
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Entity {
    /// A variable that nothing assigns to.
    Value(Typed),
    /// Pointers to its lanes.
    Variable { ty: Type, lanes: Lanes },
    /// The element that it points to.
    Element(Pointer),
    /// An array or a pointer.
    Pointer(Pointer),
}

/// What an expression gives.
#[derive(Clone, Debug)]
enum Operand {
    Value(Typed),
    Pointer(Pointer),
}

struct Lowering<'a> {
    b: Builder,
    kernel: &'a Kernel,
    /// Of the function that is being lowered.
    usage: &'a Usage,
    /// The functions of the source's own that are being lowered, the innermost last.
    calls: Vec<helper::Frame>,
    helpers: HashMap<&'a str, naga::Handle<naga::Function>>,
    int64: bool,
    /// Threads of a group.
    group: u32,
    buffers: Vec<Buffer>,
    scopes: Vec<HashMap<&'a str, Entity>>,
    /// In a kernel with barriers, the variable that is true while a thread is in the grid and has
    /// not returned.
    live: Option<Value>,
    /// The thread's linear index in its group.
    local_index: Value,
    /// Enclosing conditions, under which a barrier would not be uniform.
    conditions: u32,
    /// Whether the current block has ended in a jump.
    ended: bool,
}

pub(super) fn lower(kernel: &Kernel, layout: &Layout<'_>) -> Result<Program> {
    let mut lowering = Lowering::start(kernel, layout, library::functions()?)?;
    lowering.statements(&kernel.syntax.body)?;
    Ok(lowering.finish(layout))
}

impl Lowering<'_> {
    /// Refuses 64-bit integers where the device has none.
    fn need_int64(&self, scalar: Scalar, at: u32) -> Result<()> {
        if self.int64 || scalar.size() < 8 {
            return Ok(());
        }
        Err(Fault { at, kind: FaultKind::Int64 })
    }

    fn find(&self, name: &str) -> Option<&Entity> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }
}
