//! The frame of a module: bindings, parameter words, the thread's place in the grid.

use std::collections::HashMap;

use naga::{
    AddressSpace, BinaryOperator, Binding, BuiltIn, FunctionArgument, GlobalVariable,
    ResourceBinding, ShaderStage, Span, StorageAccess, StructMember, TypeInner, VectorSize,
};

use super::super::ast::{Builtin, Parameter};
use super::super::library::Functions;
use super::super::types::{Register, Scalar, Type};
use super::super::usage::Usage;
use super::super::{Access, Kernel, Layout, ParamKind, ParamWords, ParamsPlace, Program};
use super::build::{Builder, Value};
use super::memory::{Buffer, Place, Pointer};
use super::*;

/// Threads that a group may have at most: what Metal allows, and the reductions' scratch holds.
const LARGEST_GROUP: u32 = 1024;

/// Reads parameter words.
#[derive(Clone, Copy)]
struct Words {
    base: Value,
    place: ParamsPlace,
}

impl Words {
    fn read(self, b: &mut Builder, word: u32) -> Value {
        let pointer = match self.place {
            ParamsPlace::Immediates => {
                let quads = b.access_index(self.base, 0);
                let quad = b.access_index(quads, word / 4);
                b.access_index(quad, word % 4)
            }
            ParamsPlace::Storage { .. } => b.access_index(self.base, word),
        };
        b.load(pointer)
    }
}

impl<'a> Lowering<'a> {
    pub(super) fn start(
        kernel: &'a Kernel,
        layout: &Layout<'_>,
        functions: &'static Functions,
    ) -> Result<Self> {
        let group = group_size(kernel, layout)?;
        let buffers = kernel.params.iter().filter(|param| param.kind != ParamKind::Int).count();
        if buffers != layout.slots.len() {
            let slots = layout.slots.len();
            return Err(Fault::layout(format!("{slots} slots for {buffers} buffer arguments")));
        }
        if let Some(slot) = layout.slots.iter().find(|&&slot| slot >= 1024) {
            return Err(Fault::layout(format!("slot {slot}, above 1023")));
        }
        let mut b = Builder::new(functions);
        let words = param_words(kernel);
        let (place, base) = words_variable(&mut b, &words, layout);
        let words_base = b.global(base);
        let reader = Words { base: words_base, place };

        let arguments = [
            ("group", BuiltIn::WorkGroupId, true),
            ("groups", BuiltIn::NumWorkGroups, true),
            ("local", BuiltIn::LocalInvocationId, true),
            ("local_index", BuiltIn::LocalInvocationIndex, false),
        ];
        for (name, builtin, vector) in arguments {
            let ty = if vector { b.vec3u() } else { b.register_ty(Register::U32) };
            let binding = Some(Binding::BuiltIn(builtin));
            b.function.arguments.push(FunctionArgument {
                name: Some(name.to_owned()),
                ty,
                binding,
            });
        }
        let local_index = b.expr(naga::Expression::FunctionArgument(3));
        let mut lowering = Self {
            b,
            kernel,
            usage: &kernel.usage,
            calls: Vec::new(),
            helpers: HashMap::new(),
            int64: layout.int64,
            group,
            buffers: Vec::new(),
            scopes: Vec::new(),
            live: None,
            local_index,
            conditions: 0,
            ended: false,
        };
        let grid = lowering.frame(reader, layout);
        lowering.bind_buffers(reader, layout)?;
        lowering.declare_constants();
        lowering.scopes.push(HashMap::new());
        lowering.bind_parameters(reader, &grid)?;
        // The body has a scope of its own: it may hide parameters.
        lowering.scopes.push(HashMap::new());
        Ok(lowering)
    }

    /// Unfolds the group's position, and leaves the shader where group or thread is outside.
    fn frame(&mut self, words: Words, layout: &Layout<'_>) -> Grid {
        use BinaryOperator as Op;
        let b = &mut self.b;
        let [group, dispatched, local] = [0, 1, 2].map(|index| {
            let value = b.expr(naga::Expression::FunctionArgument(index));
            b.lanes3(value)
        });
        let grid = [0, 1, 2].map(|lane| words.read(b, ParamWords::GRID + lane));
        let groups = [0, 1, 2].map(|lane| words.read(b, ParamWords::GROUPS + lane));
        let mut linear = b.binary(Op::Multiply, group[2], dispatched[1]);
        linear = b.binary(Op::Add, linear, group[1]);
        linear = b.binary(Op::Multiply, linear, dispatched[0]);
        linear = b.binary(Op::Add, linear, group[0]);
        let plane = b.binary(Op::Multiply, groups[0], groups[1]);
        let total = b.binary(Op::Multiply, plane, groups[2]);
        let beyond = b.binary(Op::GreaterEqual, linear, total);
        let (leave, ()) = b.block(Builder::return_);
        b.if_(beyond, leave, naga::Block::new());

        let group_z = b.call_known("msl_div_u32", &[linear, plane]);
        let in_plane = b.call_known("msl_rem_u32", &[linear, plane]);
        let group_y = b.call_known("msl_div_u32", &[in_plane, groups[0]]);
        let group_x = b.call_known("msl_rem_u32", &[in_plane, groups[0]]);
        let position = [group_x, group_y, group_z];
        let size = layout.group.map(|extent| b.u32(extent));
        let start = [0, 1, 2].map(|lane| b.binary(Op::Multiply, position[lane], size[lane]));
        let thread = [0, 1, 2].map(|lane| b.binary(Op::Add, start[lane], local[lane]));
        let inside = [0, 1, 2].map(|lane| b.binary(Op::Less, thread[lane], grid[lane]));
        let inside_plane = b.binary(Op::LogicalAnd, inside[0], inside[1]);
        let inside = b.binary(Op::LogicalAnd, inside_plane, inside[2]);
        if self.kernel.uses_barriers() {
            let ty = b.register_ty(Register::Bool);
            let live = b.local("live", ty);
            b.store(live, inside);
            self.live = Some(live);
        } else {
            let (leave, ()) = b.block(Builder::return_);
            b.if_(inside, naga::Block::new(), leave);
        }
        Grid { thread, local, group: position, size, start, grid, groups }
    }

    /// Makes a storage variable a slot, and where each argument starts in it.
    fn bind_buffers(&mut self, words: Words, layout: &Layout<'_>) -> Result<()> {
        let mut variables = HashMap::new();
        let buffers = self.kernel.params.iter().filter_map(|param| match param.kind {
            ParamKind::Buffer { element, access } => Some((param, element, access)),
            ParamKind::Int => None,
        });
        let writable = writable(self.kernel, layout);
        let atomic = atomic(self.kernel, layout);
        for (position, ((param, element, access), &slot)) in buffers.zip(layout.slots).enumerate() {
            let key = slot as usize;
            let atomic = atomic.get(key).copied().unwrap_or(false);
            let slot_writable = writable.get(key).copied().unwrap_or(false);
            let b = &mut self.b;
            let variable = *variables.entry(slot).or_insert_with(|| {
                let base = match atomic {
                    true => TypeInner::Atomic(naga::Scalar::U32),
                    false => TypeInner::Scalar(naga::Scalar::U32),
                };
                let ty = b.array_ty(base, None, 4);
                storage(b, format!("slot{slot}"), slot, ty, slot_writable)
            });
            let base = b.global(variable);
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            let offset = words.read(b, ParamWords::OFFSETS + position);
            // The start in units of the element's size, at most of words.
            let start = match element.scalar.size() {
                1 => offset,
                2 => shifted(b, offset, 1),
                _ => shifted(b, offset, 2),
            };
            b.name(start, &format!("{}_start", param.name));
            let writable = access == Access::ReadWrite;
            self.buffers.push(Buffer { base, start, atomic, writable });
        }
        Ok(())
    }

    fn bind_parameters(&mut self, words: Words, grid: &Grid) -> Result<()> {
        let kernel = self.kernel;
        let (mut buffer, mut int) = (0, 0);
        for parameter in &kernel.syntax.parameters {
            let (name, entity) = match parameter {
                Parameter::Buffer { name, ty, reference, .. } => {
                    let pointer = Pointer { place: Place::Buffer(buffer), ty: *ty, index: None };
                    buffer += 1;
                    let entity = match reference {
                        true => Entity::Element(pointer),
                        false => Entity::Pointer(pointer),
                    };
                    (name, entity)
                }
                Parameter::Int { name, ty, .. } => {
                    let low = param_words(kernel).ints_start() + 2 * int;
                    int += 1;
                    let low_word = words.read(&mut self.b, low);
                    let value = if ty.size() == 8 {
                        if !self.int64 {
                            // Only a use of it needs the type.
                            continue;
                        }
                        let high_word = words.read(&mut self.b, low + 1);
                        self.join_words(low_word, high_word, *ty)
                    } else {
                        let word = Typed::scalar(Scalar::UInt, low_word);
                        self.convert(&word, Type::scalar(*ty), 0)?.lanes[0]
                    };
                    self.b.name(value, name);
                    (name, Entity::Value(Typed::scalar(*ty, value)))
                }
                Parameter::Builtin { name, ty, builtin } => {
                    let value = self.builtin(*builtin, *ty, grid)?;
                    (name, Entity::Value(value))
                }
            };
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name, entity);
            }
        }
        Ok(())
    }

    fn builtin(&mut self, builtin: Builtin, ty: Type, grid: &Grid) -> Result<Typed> {
        use BinaryOperator as Op;
        let lanes = match builtin {
            Builtin::ThreadInGrid => grid.thread,
            Builtin::ThreadInGroup => grid.local,
            Builtin::GroupInGrid => grid.group,
            Builtin::DispatchThreadsPerGroup => grid.size,
            Builtin::ThreadsPerGrid => grid.grid,
            Builtin::GroupsPerGrid => grid.groups,
            Builtin::ThreadIndexInGroup => {
                let index = Typed::scalar(Scalar::UInt, self.local_index);
                return self.convert(&index, ty, 0);
            }
            // The last group of a dimension may be cut off by the grid.
            Builtin::ThreadsPerGroup => [0, 1, 2].map(|lane| {
                let b = &mut self.b;
                let left = b.binary(Op::Subtract, grid.grid[lane], grid.start[lane]);
                let less = b.binary(Op::Less, left, grid.size[lane]);
                b.select(less, left, grid.size[lane])
            }),
        };
        let lanes = lanes.into_iter().take(ty.lanes.into()).collect();
        let value = Typed { ty: Type { scalar: Scalar::UInt, lanes: ty.lanes }, lanes };
        self.convert(&value, ty, 0)
    }

    pub(super) fn finish(self, layout: &Layout<'_>) -> Program {
        let Self { mut b, kernel, group, .. } = self;
        let words = param_words(kernel);
        b.function.body = b.close();
        b.cut_scratch(group);
        let mut module = b.module;
        module.entry_points.push(naga::EntryPoint {
            name: "main".to_owned(),
            stage: ShaderStage::Compute,
            early_depth_test: None,
            workgroup_size: layout.group,
            workgroup_size_overrides: None,
            function: b.function,
            mesh_info: None,
            task_payload: None,
            incoming_ray_payload: None,
        });
        naga::compact::compact(&mut module, naga::compact::KeepUnused::No);
        let params = params_place(&words, layout);
        Program { module, writable: writable(kernel, layout), params, words }
    }
}

/// A thread's place.
struct Grid {
    thread: [Value; 3],
    local: [Value; 3],
    group: [Value; 3],
    size: [Value; 3],
    /// The group's first thread.
    start: [Value; 3],
    grid: [Value; 3],
    groups: [Value; 3],
}

fn group_size(kernel: &Kernel, layout: &Layout<'_>) -> Result<u32> {
    let [x, y, z] = layout.group;
    let size = x.checked_mul(y).and_then(|plane| plane.checked_mul(z));
    let most = kernel.max_threads.unwrap_or(LARGEST_GROUP).min(LARGEST_GROUP);
    match size {
        Some(size) if size > 0 && size <= most => Ok(size),
        _ => Err(Fault::layout(format!(
            "a group of {x} x {y} x {z} threads, allowed are 1 to {most}"
        ))),
    }
}

fn param_words(kernel: &Kernel) -> ParamWords {
    let ints = kernel.params.iter().filter(|param| param.kind == ParamKind::Int).count();
    let buffers = kernel.params.len().saturating_sub(ints);
    // A parameter list in one source text is far below 2^32 long.
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    ParamWords { buffers: count(buffers), ints: count(ints) }
}

fn params_place(words: &ParamWords, layout: &Layout<'_>) -> ParamsPlace {
    if words.bytes() <= layout.max_immediate_bytes {
        return ParamsPlace::Immediates;
    }
    let binding = layout.slots.iter().max().map_or(0, |&last| last.saturating_add(1));
    ParamsPlace::Storage { binding }
}

fn words_variable(
    b: &mut Builder,
    words: &ParamWords,
    layout: &Layout<'_>,
) -> (ParamsPlace, naga::Handle<GlobalVariable>) {
    let place = params_place(words, layout);
    let variable = match place {
        ParamsPlace::Immediates => {
            let quad = TypeInner::Vector { size: VectorSize::Quad, scalar: naga::Scalar::U32 };
            let quads = b.array_ty(quad, Some(words.count() / 4), 16);
            // HLSL takes nothing but a struct for immediates.
            let member = StructMember {
                name: Some("words".to_owned()),
                ty: quads,
                binding: None,
                offset: 0,
            };
            let span = words.bytes();
            let name = Some("Params".to_owned());
            let inner = TypeInner::Struct { members: vec![member], span };
            let ty = b.module.types.insert(naga::Type { name, inner }, Span::UNDEFINED);
            let variable = GlobalVariable {
                name: Some("params".to_owned()),
                space: AddressSpace::Immediate,
                binding: None,
                ty,
                init: None,
                memory_decorations: naga::MemoryDecorations::empty(),
            };
            b.module.global_variables.append(variable, Span::UNDEFINED)
        }
        ParamsPlace::Storage { binding } => {
            let ty = b.array_ty(TypeInner::Scalar(naga::Scalar::U32), None, 4);
            storage(b, "params".to_owned(), binding, ty, false)
        }
    };
    (place, variable)
}

fn storage(
    b: &mut Builder,
    name: String,
    binding: u32,
    ty: naga::Handle<naga::Type>,
    writable: bool,
) -> naga::Handle<GlobalVariable> {
    let access = match writable {
        true => StorageAccess::LOAD | StorageAccess::STORE,
        false => StorageAccess::LOAD,
    };
    let variable = GlobalVariable {
        name: Some(name),
        space: AddressSpace::Storage { access },
        binding: Some(ResourceBinding { group: 0, binding }),
        ty,
        init: None,
        memory_decorations: naga::MemoryDecorations::empty(),
    };
    b.module.global_variables.append(variable, Span::UNDEFINED)
}

fn shifted(b: &mut Builder, value: Value, by: u32) -> Value {
    let by = b.u32(by);
    b.binary(BinaryOperator::ShiftRight, value, by)
}

/// Per slot, whether `of` holds for any argument in it.
fn per_slot(
    kernel: &Kernel,
    layout: &Layout<'_>,
    of: impl Fn(&str, Type, Access) -> bool,
) -> Vec<bool> {
    let slots = layout.slots.iter().max().map_or(0, |&last| last as usize + 1);
    let mut result = vec![false; slots];
    let buffers = kernel.params.iter().filter_map(|param| match param.kind {
        ParamKind::Buffer { element, access } => Some(of(&param.name, element, access)),
        ParamKind::Int => None,
    });
    for (holds, &slot) in buffers.zip(layout.slots) {
        if let Some(entry) = result.get_mut(slot as usize) {
            *entry |= holds;
        }
    }
    result
}

fn writable(kernel: &Kernel, layout: &Layout<'_>) -> Vec<bool> {
    per_slot(kernel, layout, |_, _, access| access == Access::ReadWrite)
}

/// Slots that receive stores of less than a word, or atomic operations.
fn atomic(kernel: &Kernel, layout: &Layout<'_>) -> Vec<bool> {
    let usage: &Usage = &kernel.usage;
    per_slot(kernel, layout, |name, element, access| {
        access == Access::ReadWrite && (element.scalar.size() < 4 || usage.atomic.contains(name))
    })
}
