//! Kernels that a program brings along as Metal source: libraries, functions, dispatch.
//!
//! A source is parsed once a process, and a kernel lowered once for each way of binding
//! it: which arguments share a buffer, and the threads of a group. Every binding is a
//! whole buffer, or the largest window of it that a binding may have, and a kernel finds
//! its arguments by byte offsets in its parameters; so a view is bound where it lies, at any
//! multiple of its element's size, packed or not.

use super::Runtime;
use super::mirrors::{Hosted, Mirror};
use crate::error::{Error, Result, panic_text};
use crate::gpu::{Binding, Buffer, BufferKind, Gpu, Pipeline, PipelineKey, Shader, Stream, Usage};
use crate::memory::Storage;
use crate::msl::{self, Access, ParamKind, ParamWords, ParamsPlace};
use crate::tensor::Tensor;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// The kernels of one Metal source.
#[derive(Debug)]
pub struct KernelLibrary {
    functions: Vec<Arc<KernelFunction>>,
}

/// One kernel, ready to be dispatched once it is bound.
#[derive(Debug)]
pub struct KernelFunction {
    kernel: msl::Kernel,
    /// Tells this kernel from all others, in pipeline keys.
    digest: [u64; 2],
    /// Kinds of the arguments in the order of the parameter list, with their indices.
    params: SmallVec<[(u32, Kind); 8]>,
    variants: Mutex<FxHashMap<VariantKey, Arc<Variant>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `unit`: what its byte offset in a buffer has to be a multiple of.
    Buffer {
        writes: bool,
        unit: u64,
    },
    Int,
}

/// How a kernel is bound: an argument's slot, the group, and whether slots share a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct VariantKey {
    slots: SmallVec<[u32; 8]>,
    group: [u32; 3],
    aliased: bool,
}

#[derive(Debug)]
struct Variant {
    pipeline: Arc<Pipeline>,
    place: ParamsPlace,
    words: ParamWords,
    writable: SmallVec<[bool; 8]>,
}

/// An argument as a thread has set it.
#[derive(Debug, Clone, Default)]
enum Argument {
    #[default]
    Unset,
    Tensor {
        storage: Weak<Storage>,
        /// Keeps the storage until the dispatch: what is set is used, even if its last
        /// handle goes in between.
        kept: Option<Arc<Storage>>,
        offset: u64,
        end: u64,
    },
    Int(i64),
}

/// The arguments of one function on one thread, from the start of an encoding on.
#[derive(Debug, Default)]
pub struct Arguments {
    values: SmallVec<[Argument; 8]>,
}

/// Arguments beyond this index are refused; Metal has 31 buffers.
const MAX_ARGUMENTS: usize = 128;

impl Arguments {
    /// Forgets all arguments.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Sets argument `index` to a tensor: its elements where they truly lie.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an index that no kernel has.
    pub fn set_tensor(&mut self, index: u32, tensor: &Tensor) -> Result<()> {
        let size = tensor.dtype.size() as u64;
        let value = Argument::Tensor {
            storage: Arc::downgrade(&tensor.storage),
            kept: Some(tensor.storage.clone()),
            offset: (tensor.layout.offset() as u64).saturating_mul(size),
            end: tensor.layout.end_bytes(tensor.dtype.size())?,
        };
        self.set(index, value)
    }

    /// Sets argument `index` to an integer.
    ///
    /// # Errors
    /// As [`Arguments::set_tensor`].
    pub fn set_int(&mut self, index: u32, value: i64) -> Result<()> {
        self.set(index, Argument::Int(value))
    }

    fn set(&mut self, index: u32, value: Argument) -> Result<()> {
        let at = index as usize;
        if at >= MAX_ARGUMENTS {
            return Err(Error::invalid("idx", index, format!("at most {MAX_ARGUMENTS} arguments")));
        }
        if self.values.len() <= at {
            self.values.resize_with(at + 1, Argument::default);
        }
        if let Some(slot) = self.values.get_mut(at) {
            *slot = value;
        }
        Ok(())
    }

    fn storage(&self, index: u32) -> Option<Arc<Storage>> {
        match self.values.get(index as usize)? {
            Argument::Tensor { storage, .. } => storage.upgrade(),
            _ => None,
        }
    }

    /// Marks what every tensor argument holds as lost.
    pub fn poison(&self, error: &Error) {
        for value in &self.values {
            if let Argument::Tensor { storage, .. } = value
                && let Some(storage) = storage.upgrade()
            {
                poison(&storage, error);
            }
        }
    }

    /// After a dispatch the tensors are the program's again; a second dispatch of the
    /// same encoding finds those that are still alive.
    fn release(&mut self) {
        for value in &mut self.values {
            if let Argument::Tensor { kept, .. } = value {
                *kept = None;
            }
        }
    }
}

/// Marks a storage's contents as lost.
pub fn poison_tensor(tensor: &Tensor, error: &Error) {
    poison(&tensor.storage, error);
}

pub(super) fn poison(storage: &Storage, error: &Error) {
    let usage: &Arc<Usage> = storage.usage();
    usage.poison(usage.generation(), error);
    storage.written();
}

/// The threads of a dispatch in x, y, z, and those of a group where the caller chose.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Threads; exact, not rounded up to groups.
    pub threads: [u64; 3],
    /// Threads of a group.
    pub group: Option<[u64; 3]>,
}

impl KernelLibrary {
    fn parse(source: &str, digest: u64) -> Result<Self> {
        let library = msl::Library::parse(source).map_err(|e| Error::Compile(e.to_string()))?;
        let functions = (0u64..)
            .zip(library.kernels())
            .map(|(index, kernel)| {
                Arc::new(KernelFunction {
                    params: kernel
                        .params()
                        .iter()
                        .map(|param| {
                            let kind = match param.kind {
                                ParamKind::Buffer { access, element } => Kind::Buffer {
                                    writes: access == Access::ReadWrite,
                                    // Larger elements are read as words.
                                    unit: u64::from(element.scalar.size()).min(4),
                                },
                                ParamKind::Int => Kind::Int,
                            };
                            (param.index, kind)
                        })
                        .collect(),
                    kernel: kernel.clone(),
                    digest: [digest, index],
                    variants: Mutex::default(),
                })
            })
            .collect();
        Ok(KernelLibrary { functions })
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] listing the names that there are.
    pub fn function(&self, name: &str) -> Result<Arc<KernelFunction>> {
        self.functions.iter().find(|f| f.kernel.name() == name).cloned().ok_or_else(|| {
            let names: Vec<_> = self.functions.iter().map(|f| f.kernel.name()).collect();
            Error::invalid("name", name, format!("the library has the kernels {names:?}"))
        })
    }
}

/// The libraries of a process by source, so that one made again costs nothing. A source
/// that does not compile is kept with its error.
#[derive(Debug, Default)]
pub struct Libraries {
    by_source: Mutex<FxHashMap<Box<str>, Result<Arc<KernelLibrary>>>>,
}

impl Runtime {
    /// The kernels of a Metal source. What it holds is checked for syntax now, and
    /// compiled when it is first dispatched.
    ///
    /// # Errors
    /// [`Error::Compile`] naming the construct, the kernel and the line.
    pub fn kernel_library(&self, source: &str) -> Result<Arc<KernelLibrary>> {
        let mut libraries = self.inner.libraries.by_source.lock();
        if let Some(library) = libraries.get(source) {
            return library.clone();
        }
        // Libraries are told apart by their text above; the digest only has to differ
        // between those of this process.
        let library = KernelLibrary::parse(source, libraries.len() as u64).map(Arc::new);
        libraries.insert(source.into(), library.clone());
        library
    }

    /// Records one dispatch of `function` over `grid` with `arguments`.
    ///
    /// # Errors
    /// Whatever is wrong with the function, the grid or an argument; the contents of all
    /// memory that the kernel should have written are lost then, and say so to whoever
    /// reads them.
    pub fn dispatch(
        &self,
        function: &KernelFunction,
        arguments: &mut Arguments,
        grid: Grid,
    ) -> Result<()> {
        log::trace!("dispatch {} over {:?}", function.kernel.name(), grid.threads);
        let result = without_panic(|| self.encode_kernel(function, arguments, grid));
        if let Err(error) = &result {
            for &(index, kind) in &function.params {
                if let (Kind::Buffer { writes: true, .. }, Some(storage)) =
                    (kind, arguments.storage(index))
                {
                    poison(&storage, error);
                }
            }
        }
        arguments.release();
        result
    }

    fn encode_kernel(
        &self,
        function: &KernelFunction,
        arguments: &Arguments,
        grid: Grid,
    ) -> Result<()> {
        let Some(gpu) = self.gpu()? else {
            return Err(Error::NotSupported(format!(
                "kernel {}: the host backend runs copies alone, not kernels; a Vulkan driver for \
                 the CPU is in Debian's and Ubuntu's package mesa-vulkan-drivers",
                function.kernel.name()
            )));
        };
        let bound = self.bind(function, arguments)?;
        let Some((threads, group)) = shape(function, grid, gpu)? else { return Ok(()) };
        let plan = slots(function, &bound, gpu)?;
        let key = VariantKey { slots: plan.slots, group, aliased: plan.aliased };
        let variant = function.variant(gpu, key)?;

        let mut words: SmallVec<[u32; 64]> = SmallVec::new();
        let mut groups = [0u32; 3];
        for ((count, &threads), &group) in groups.iter_mut().zip(&threads).zip(&group) {
            *count = threads.div_ceil(group);
        }
        words.extend_from_slice(&threads);
        words.extend_from_slice(&groups);
        words.extend_from_slice(&plan.offsets);
        for &value in &bound.ints {
            words.push(value as u32);
            words.push((value >> 32) as u32);
        }
        words.resize(variant.words.count() as usize, 0);
        let fold =
            fold(groups, gpu.limits().max_compute_workgroups_per_dimension).ok_or_else(|| {
                Error::invalid(
                    "length",
                    format_args!("{threads:?}"),
                    format!("in groups of {group:?} they are more groups than a dispatch has"),
                )
            })?;

        let bytes = bytemuck::cast_slice(&words);
        let parameters;
        let mut stream = self.inner.stream.lock();
        let mut bindings: SmallVec<[Binding<'_>; 8]> = plan
            .windows
            .iter()
            .enumerate()
            .map(|(slot, window)| Binding {
                buffer: window.buffer,
                offset: window.start,
                size: window.end - window.start,
                writes: variant.writable.get(slot).copied().unwrap_or(true),
            })
            .collect();
        match variant.place {
            ParamsPlace::Immediates => {}
            ParamsPlace::Storage { .. } => {
                let kind = BufferKind::Device;
                let size = bytes.len() as u64;
                parameters = self.inner.staging.lock().take(gpu, size, kind)?;
                gpu.write(&parameters, bytes)?;
                bindings.push(Binding { buffer: &parameters, offset: 0, size, writes: false });
                self.inner.staging.lock().give(gpu, parameters.clone());
            }
        }
        watch_mirrored(&mut stream, &bound.buffers);
        stream.dispatch(gpu, &variant.pipeline, &bindings, bytes, fold)?;
        drop(stream);
        self.note_writes(&bound.buffers);
        Ok(())
    }

    /// The buffers and integers that the kernel's parameters ask for.
    fn bind(&self, function: &KernelFunction, arguments: &Arguments) -> Result<Bound> {
        let mut bound = Bound::default();
        for &(index, kind) in &function.params {
            let name = || format!("{} of kernel {}", index, function.kernel.name());
            match (kind, arguments.values.get(index as usize)) {
                (
                    Kind::Buffer { writes, unit },
                    Some(Argument::Tensor { storage, offset, end, .. }),
                ) => {
                    let storage = storage.upgrade().ok_or_else(|| {
                        Error::invalid("idx", name(), "the tensor was deleted since it was set")
                    })?;
                    if !writes {
                        storage.check()?;
                    }
                    if !offset.is_multiple_of(unit) {
                        return Err(Error::invalid(
                            "idx",
                            name(),
                            format!(
                                "it starts at byte {offset} of its storage, not at a multiple of \
                                 its element's {unit}"
                            ),
                        ));
                    }
                    bound.buffers.push(BoundBuffer {
                        writes,
                        unit,
                        mirror: None,
                        offset: *offset,
                        end: *end,
                        storage,
                    });
                }
                (Kind::Int, Some(Argument::Int(value))) => bound.ints.push(*value),
                (Kind::Buffer { .. }, Some(Argument::Int(value))) => {
                    return Err(Error::invalid(
                        "idx",
                        name(),
                        format!("it is the integer {value}, a tensor is needed"),
                    ));
                }
                (Kind::Int, Some(Argument::Tensor { .. })) => {
                    return Err(Error::invalid(
                        "idx",
                        name(),
                        "it is a tensor, an integer is needed",
                    ));
                }
                (_, Some(Argument::Unset) | None) => {
                    return Err(Error::invalid("idx", name(), "this argument was not set"));
                }
            }
        }
        self.attach_mirrors(&mut bound.buffers)?;
        Ok(bound)
    }

    /// Gives device copies to the arguments that lie in host memory.
    pub(super) fn attach_mirrors(&self, buffers: &mut [BoundBuffer]) -> Result<()> {
        let in_host = |b: &&mut BoundBuffer| b.storage.buffer().is_none() && b.storage.bytes() > 0;
        let mut host: Vec<&mut BoundBuffer> = buffers.iter_mut().filter(in_host).collect();
        if host.is_empty() {
            return Ok(());
        }
        let arguments: Vec<Hosted<'_>> = host
            .iter()
            .map(|b| Hosted { storage: &b.storage, offset: b.offset, unit: b.unit })
            .collect();
        let mirrors = self.mirrors_of(&arguments)?;
        for (buffer, mirror) in host.iter_mut().zip(mirrors) {
            let place = mirror.place(buffer.storage.address());
            buffer.offset = buffer.offset.saturating_add(place);
            buffer.end = buffer.end.saturating_add(place);
            buffer.mirror = Some(mirror);
        }
        Ok(())
    }

    /// Notes what a recorded dispatch writes.
    pub(super) fn note_writes(&self, buffers: &[BoundBuffer]) {
        for argument in buffers.iter().filter(|argument| argument.writes) {
            argument.storage.written();
            if let Some(mirror) = &argument.mirror {
                self.mirror_written(mirror);
            }
        }
    }
}

/// Runs `encode`; a panic is an error like any other, so that what should have been written
/// is marked as lost.
pub(super) fn without_panic(encode: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(encode)).unwrap_or_else(|payload| {
        let text = panic_text(payload);
        Err(Error::Internal(format!("a panic while a kernel was encoded: {text}")))
    })
}

/// Before a dispatch that writes device copies of host memory is recorded: if it fails, the
/// memory that they stand for has no valid contents either.
pub(super) fn watch_mirrored(stream: &mut Stream, buffers: &[BoundBuffer]) {
    for argument in buffers.iter().filter(|argument| argument.writes && argument.mirror.is_some()) {
        stream.watch(argument.storage.usage());
    }
}

/// A kernel's arguments, in the order of its parameters.
#[derive(Default)]
struct Bound {
    buffers: SmallVec<[BoundBuffer; 8]>,
    ints: SmallVec<[i64; 4]>,
}

pub(super) struct BoundBuffer {
    pub storage: Arc<Storage>,
    pub mirror: Option<Mirror>,
    pub writes: bool,
    /// What `offset` is a multiple of, in bytes.
    pub unit: u64,
    /// First byte of the argument in its buffer, and one past its last.
    pub offset: u64,
    pub end: u64,
}

impl BoundBuffer {
    pub fn buffer(&self) -> Option<&Arc<Buffer>> {
        match &self.mirror {
            Some(mirror) => mirror.storage.buffer(),
            None => self.storage.buffer(),
        }
    }
}

impl BoundBuffer {
    /// The part of its buffer to bind: all, or as much as a binding holds.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming both sizes where the argument is larger than that.
    pub fn window<'a>(
        &self,
        buffer: &'a Arc<Buffer>,
        kernel: &str,
        gpu: &Gpu,
    ) -> Result<Window<'a>> {
        let largest = gpu.limits().max_storage_buffer_binding_size;
        if buffer.size() <= largest {
            return Ok(Window { buffer, start: 0, end: buffer.size() });
        }
        let alignment = u64::from(gpu.limits().min_storage_buffer_offset_alignment).max(4);
        let start = self.offset / alignment * alignment;
        let end = (start + largest / 4 * 4).min(buffer.size());
        if self.end > end {
            return Err(Error::NotSupported(format!(
                "kernel {kernel}: an argument of {} bytes is larger than a binding of this \
                 adapter, {largest} bytes",
                self.end.saturating_sub(self.offset),
            )));
        }
        Ok(Window { buffer, start, end })
    }
}

/// A window of a buffer, in bytes.
pub(super) struct Window<'a> {
    pub buffer: &'a Arc<Buffer>,
    pub start: u64,
    pub end: u64,
}

struct Slots<'a> {
    slots: SmallVec<[u32; 8]>,
    /// An argument's byte offset in its window.
    offsets: SmallVec<[u32; 8]>,
    windows: SmallVec<[Window<'a>; 8]>,
    /// Whether two windows are of one buffer.
    aliased: bool,
}

/// Gives each buffer argument a slot: one for all that lie in one buffer, as far as a
/// binding reaches.
fn slots<'a>(function: &KernelFunction, bound: &'a Bound, gpu: &'a Gpu) -> Result<Slots<'a>> {
    let mut out = Slots {
        slots: SmallVec::new(),
        offsets: SmallVec::new(),
        windows: SmallVec::new(),
        aliased: false,
    };
    for argument in &bound.buffers {
        let buffer = match argument.buffer() {
            Some(buffer) => buffer,
            // No elements, no memory: the kernel gets a word that it never looks at.
            None => gpu.empty_buffer()?,
        };
        let window = argument.window(buffer, function.kernel.name(), gpu)?;
        let same = |w: &Window<'_>| Arc::ptr_eq(w.buffer, buffer);
        let shared = out
            .windows
            .iter()
            .position(|w| same(w) && w.start <= argument.offset && argument.end <= w.end);
        let slot = shared.unwrap_or_else(|| {
            out.aliased |= out.windows.iter().any(same);
            out.windows.push(window);
            out.windows.len() - 1
        });
        let start = out.windows.get(slot).map_or(0, |w| w.start);
        out.slots.push(slot as u32);
        out.offsets.push(u32::try_from(argument.offset.saturating_sub(start)).map_err(|_| {
            Error::NotSupported(format!(
                "kernel {}: an argument lies {} bytes into a binding, 2^32 are the limit",
                function.kernel.name(),
                argument.offset
            ))
        })?);
    }
    Ok(out)
}

/// Threads of a group where the program leaves it open, by the rank of the grid.
const FREE_GROUP: u32 = 64;

/// The grid and the group as the shader takes them; `None` for no threads.
fn shape(function: &KernelFunction, grid: Grid, gpu: &Gpu) -> Result<Option<([u32; 3], [u32; 3])>> {
    let limits = gpu.limits();
    let mut threads = [1u32; 3];
    for (out, &length) in threads.iter_mut().zip(&grid.threads) {
        *out = u32::try_from(length).map_err(|_| {
            Error::invalid("length", length, "a dimension of a grid has fewer than 2^32 threads")
        })?;
    }
    if threads.contains(&0) {
        return Ok(None);
    }
    let most = [
        limits.max_compute_workgroup_size_x,
        limits.max_compute_workgroup_size_y,
        limits.max_compute_workgroup_size_z,
    ];
    let all = limits.max_compute_invocations_per_workgroup;
    let group = match grid.group {
        None => [FREE_GROUP.min(threads[0].next_power_of_two()).min(all), 1, 1],
        Some(asked) => {
            let mut group = [1u32; 3];
            for (((out, &asked), &most), &threads) in
                group.iter_mut().zip(&asked).zip(&most).zip(&threads)
            {
                // More threads than the grid has would only stand idle.
                let useful = asked.min(u64::from(threads)).max(1);
                *out = u32::try_from(useful).unwrap_or(u32::MAX);
                if asked == 0 || *out > most {
                    return Err(Error::invalid(
                        "group_size",
                        format_args!("{asked}"),
                        format!("this adapter has groups of 1 to {most} threads there"),
                    ));
                }
            }
            group
        }
    };
    let product = group.iter().fold(1u32, |n, &g| n.saturating_mul(g));
    if product > all {
        return Err(Error::NotSupported(format!(
            "kernel {}: a group of {product} threads, this adapter has {all}",
            function.kernel.name()
        )));
    }
    Ok(Some((threads, group)))
}

/// The dispatch that holds all groups when a dimension has at most `most`.
fn fold(groups: [u32; 3], most: u32) -> Option<[u32; 3]> {
    let total = groups.iter().map(|&g| u64::from(g)).product::<u64>();
    let most = u64::from(most);
    let x = total.min(most);
    let y = total.div_ceil(x);
    if y > most || total > u64::from(u32::MAX) {
        return None;
    }
    Some([x as u32, y as u32, 1])
}

impl KernelFunction {
    fn variant(&self, gpu: &Gpu, key: VariantKey) -> Result<Arc<Variant>> {
        if let Some(variant) = self.variants.lock().get(&key) {
            return Ok(variant.clone());
        }
        let program = self
            .kernel
            .lower(&msl::Layout {
                slots: &key.slots,
                group: key.group,
                max_immediate_bytes: gpu.limits().max_immediate_size,
                int64: gpu.has_int64(),
            })
            .map_err(|error| match error {
                msl::Error::Unsupported { .. } | msl::Error::Int64 { .. } => {
                    Error::NotSupported(error.to_string())
                }
                other => Error::Compile(other.to_string()),
            })?;
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        let [library, index] = self.digest;
        let digest = PipelineKey::Digest([library, index, hasher.finish(), 0]);
        let aliased = key.aliased;
        let module = Box::new(program.module);
        let pipeline = gpu.pipeline(&digest, || Ok(Shader::Module { module, aliased }))?;
        let variant = Arc::new(Variant {
            pipeline,
            place: program.params,
            words: program.words,
            writable: program.writable.into(),
        });
        Ok(self.variants.lock().entry(key).or_insert(variant).clone())
    }
}
