//! The Metal front end: the text of a compiled program's kernels to naga modules.
//!
//! Pure: text in, module out, no GPU. [`Library::parse`] finds the kernels of a source and parses
//! them, PyTorch's headers before them being known by name and skipped; [`Kernel::lower`] makes a
//! module for one way of binding a kernel's arguments. A source's own constants and functions, of
//! scalars and vectors to a scalar, may stand outside of all namespaces. What neither knows is an
//! error that names the construct, the kernel and the line.
//!
//! # What the generated entry point assumes
//! Every binding is an array of u32 words, atomic where narrow elements are stored or atomics
//! work. An argument starts at a byte offset, a multiple of its element's size, that comes as a
//! parameter word. Element indices are 32 bits wide: they wrap at 2^32.
//!
//! # Where this defines what C++ or Metal leave open
//! - Signed integers wrap. `x / 0` is `x` and `x % 0` is 0; the smallest integer by -1 is itself,
//!   with remainder 0. A shift takes its amount modulo the width of the promoted left side.
//! - A float converts to int, uint, long and ulong by truncation and saturation, NaN to 0; to
//!   narrower integers by way of int, whose low bits remain.
//! - half and bfloat are f32 registers: each result of one of those types is rounded to it, to
//!   nearest even, NaN stays NaN. half with bfloat is computed as float.
//! - Comparisons of floats are made on their bits: denormals count as what they are, whatever the
//!   device flushes, and no compiler may assume NaN away. -0 equals 0.
//! - Reductions over a threadgroup are trees of fixed shape, whatever a subgroup's width is: the
//!   order of a float sum differs from Metal's, and `argmax` and `argmin` take the first thread
//!   that holds the extreme, as Metal does; NaN wins.
//! - A kernel with barriers runs threads outside the grid, and those that returned, to its end with
//!   all their writes masked, so that barriers stay in uniform control flow; reductions leave them
//!   out. A barrier below `if` is refused.

mod ast;
mod error;
mod lexer;
mod library;
mod lower;
mod parser;
mod scan;
mod types;
mod usage;

use std::sync::Arc;

pub use error::Error;
pub use types::{Scalar, Type};

use ast::{Declaration, HelperSyntax, KernelSyntax, Parameter};
use usage::Usage;

/// The element type of a buffer argument.
pub type Element = Type;

/// Whether a kernel writes an argument's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only read.
    Read,
    /// Written or atomically updated somewhere in the body.
    ReadWrite,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A pointer into device memory, set by `set_arg_tensor`.
    Buffer {
        /// The element's type.
        element: Element,
        /// Whether the kernel writes it.
        access: Access,
    },
    /// An integer by reference (`constant long&`), set by `set_arg_int`.
    Int,
}

/// An argument of a kernel; what Metal itself provides (`[[thread_position_in_grid]]`) is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// As the source names it.
    pub name: String,
    /// The index that `set_arg_*` uses: `[[buffer(i)]]`, else the position among the arguments.
    pub index: u32,
    /// What it is.
    pub kind: ParamKind,
}

/// The kernels of one source.
#[derive(Clone, Debug)]
pub struct Library {
    kernels: Vec<Kernel>,
}

impl Library {
    /// Finds and parses all kernels of `source`. A source without any is an empty library.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let scan::Sites { kernels: sites, helpers, constants } = scan::sites(source);
        let constants: Arc<[Declaration]> = constants
            .iter()
            .filter_map(|&start| parser::parse_constants(source, start).ok())
            .flatten()
            .collect();
        // One that cannot be parsed is an unknown function to whoever calls it.
        let helpers: Arc<[Helper]> = helpers
            .iter()
            .filter_map(|site| {
                let syntax = parser::parse_helper(source, site.start).ok()?;
                let usage = Usage::of(&syntax.body);
                (syntax.name == site.name).then_some(Helper { syntax, usage })
            })
            .collect();
        let mut kernels = Vec::with_capacity(sites.len());
        let (mut line, mut counted) = (1_u32, 0_usize);
        for (position, site) in sites.iter().enumerate() {
            let end = sites.get(position + 1).map_or(source.len(), |next| next.line_start);
            let skipped = &source.as_bytes()[counted..site.line_start];
            let newlines = skipped.iter().filter(|&&byte| byte == b'\n').count();
            line = line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
            counted = site.line_start;
            // Two kernels on one line share its start.
            let end = end.max(site.parameters);
            let end = if end == site.parameters { source.len() } else { end };
            let text: Arc<str> = source[site.line_start..end].into();
            let syntax = parser::parse_kernel(&text, site.parameters - site.line_start)
                .map_err(|fault| fault.locate(site.name, &text, line))?;
            let own = (Arc::clone(&helpers), Arc::clone(&constants));
            kernels.push(Kernel::new(site, text, line, syntax, own));
        }
        Ok(Self { kernels })
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// All kernels, in the order of the source.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter()
    }
}

/// One parsed kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    params: Vec<Param>,
    max_threads: Option<u32>,
    /// From the line of `kernel` on.
    text: Arc<str>,
    first_line: u32,
    syntax: KernelSyntax,
    usage: Usage,
    helpers: Arc<[Helper]>,
    /// `constant T NAME = value;` outside of all functions.
    constants: Arc<[Declaration]>,
}

/// A function of the source's own, of values to a value.
#[derive(Clone, Debug)]
struct Helper {
    syntax: HelperSyntax,
    usage: Usage,
}

impl Kernel {
    fn new(
        site: &scan::Site<'_>,
        text: Arc<str>,
        first_line: u32,
        syntax: KernelSyntax,
        (helpers, constants): (Arc<[Helper]>, Arc<[Declaration]>),
    ) -> Self {
        let usage = Usage::of(&syntax.body);
        let params = syntax.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Buffer { name, index, ty, constant, .. } => {
                let written = !constant && usage.written.contains(name);
                let access = if written { Access::ReadWrite } else { Access::Read };
                let kind = ParamKind::Buffer { element: *ty, access };
                Some(Param { name: name.clone(), index: *index, kind })
            }
            Parameter::Int { name, index, .. } => {
                Some(Param { name: name.clone(), index: *index, kind: ParamKind::Int })
            }
            Parameter::Builtin { .. } => None,
        });
        Self {
            name: site.name.to_owned(),
            params: params.collect(),
            max_threads: site.max_threads,
            text,
            first_line,
            syntax,
            usage,
            helpers,
            constants,
        }
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments in the order of the parameter list.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Whether threads of a group wait for each other.
    pub fn uses_barriers(&self) -> bool {
        self.usage.barriers
    }

    /// `[[max_total_threads_per_threadgroup(n)]]`.
    pub fn max_threads(&self) -> Option<u32> {
        self.max_threads
    }

    /// Makes a module whose one entry point, `main`, runs this kernel under `layout`.
    ///
    /// The module is not validated: whoever makes a pipeline of it does that.
    pub fn lower(&self, layout: &Layout<'_>) -> Result<Program, Error> {
        lower::lower(self, layout)
            .map_err(|fault| fault.locate(&self.name, &self.text, self.first_line))
    }
}

/// How a kernel's arguments are bound and its threads grouped.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// For each buffer argument, in the order of [`Kernel::params`], the binding that it lives in.
    /// Several may share one.
    pub slots: &'a [u32],
    /// Threads of a group in x, y and z.
    pub group: [u32; 3],
    /// Bytes of immediates that the device allows; parameter words that do not fit come from a
    /// storage buffer.
    pub max_immediate_bytes: u32,
    /// Whether the device has 64-bit integers (`SHADER_INT64`).
    pub int64: bool,
}

/// Where the parameter words come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamsPlace {
    /// `var<immediate>` of [`ParamWords::bytes`] bytes.
    Immediates,
    /// A read-only storage buffer of as many bytes in this binding of group 0, the one after the
    /// last slot.
    Storage {
        /// The binding's number.
        binding: u32,
    },
}

/// The order of the parameter words, u32 each, that a dispatch hands to the shader:
/// the grid's thread counts x, y, z; its group counts x, y, z (those of the grid, not of the
/// folded dispatch); for each buffer argument its byte offset in its binding; for each integer
/// argument its low and its high word. Zeros fill up to a multiple of four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamWords {
    /// Buffer arguments.
    pub buffers: u32,
    /// Integer arguments.
    pub ints: u32,
}

impl ParamWords {
    /// Word of the grid's three thread counts.
    pub const GRID: u32 = 0;
    /// Word of the three group counts.
    pub const GROUPS: u32 = 3;
    /// Word of the first buffer's byte offset.
    pub const OFFSETS: u32 = 6;

    /// Word of the first integer's low half; the n-th is 2 n words on.
    pub const fn ints_start(&self) -> u32 {
        Self::OFFSETS + self.buffers
    }

    /// All words, the padding included.
    pub const fn count(&self) -> u32 {
        (self.ints_start() + 2 * self.ints).next_multiple_of(4)
    }

    /// Size of the words in bytes, a multiple of 16.
    pub const fn bytes(&self) -> u32 {
        4 * self.count()
    }
}

/// A kernel as a module.
#[derive(Clone, Debug)]
pub struct Program {
    /// One compute entry point, `main`; binding i of group 0 is slot i, an array of u32 words.
    pub module: naga::Module,
    /// Per slot, whether its binding is read-write.
    pub writable: Vec<bool>,
    /// Where the kernel finds its parameter words.
    pub params: ParamsPlace,
    /// How many words there are.
    pub words: ParamWords,
}
