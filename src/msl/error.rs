//! What may go wrong between a kernel's text and its module.

/// Why a Metal kernel could not be translated.
///
/// Lines and columns count from 1 and refer to the source that was handed to
/// [`Library::parse`](super::Library::parse), prelude included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not what the grammar expects.
    #[error("{construct} in kernel `{kernel}`, line {line}, column {column}: `{quote}`")]
    Parse {
        /// The kernel's name.
        kernel: String,
        /// Counted from 1.
        line: u32,
        /// Counted from 1.
        column: u32,
        /// What was found.
        construct: String,
        /// The source line.
        quote: String,
    },
    /// The text is Metal, but uses what this front end does not know.
    #[error(
        "{construct} is not supported, in kernel `{kernel}`, line {line}, column {column}: `{quote}`"
    )]
    Unsupported {
        /// The kernel's name.
        kernel: String,
        /// Counted from 1.
        line: u32,
        /// Counted from 1.
        column: u32,
        /// What was found.
        construct: String,
        /// The source line.
        quote: String,
    },
    /// The kernel computes with 64-bit integers and the adapter has none.
    #[error(
        "kernel `{kernel}` needs 64-bit integers in shaders (SHADER_INT64), which this adapter \
         lacks: line {line}, column {column}: `{quote}`"
    )]
    Int64 {
        /// The kernel's name.
        kernel: String,
        /// Counted from 1.
        line: u32,
        /// Counted from 1.
        column: u32,
        /// The source line.
        quote: String,
    },
    /// The layout asked for does not fit the kernel.
    #[error("kernel `{kernel}` cannot be laid out: {reason}")]
    Layout {
        /// The kernel's name.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// The crate's own shader library is broken.
    #[error("the shader library of the Metal front end is broken: {0}")]
    Library(String),
}

/// An error before its place is turned into a line: a byte offset into the kernel's text.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub at: u32,
    pub kind: FaultKind,
}

#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    Parse(String),
    Unsupported(String),
    Int64,
    Layout(String),
    Library(String),
}

impl Fault {
    pub fn parse(at: u32, construct: impl Into<String>) -> Self {
        Self { at, kind: FaultKind::Parse(construct.into()) }
    }

    pub fn unsupported(at: u32, construct: impl Into<String>) -> Self {
        Self { at, kind: FaultKind::Unsupported(construct.into()) }
    }

    pub fn layout(reason: impl Into<String>) -> Self {
        Self { at: 0, kind: FaultKind::Layout(reason.into()) }
    }

    /// A fault in a function's text, told where that is called.
    pub fn inside(self, function: &str, at: u32) -> Self {
        let kind = match self.kind {
            FaultKind::Parse(what) => FaultKind::Parse(format!("in `{function}`, {what}")),
            FaultKind::Unsupported(what) => {
                FaultKind::Unsupported(format!("in `{function}`, {what}"))
            }
            other => other,
        };
        Self { at, kind }
    }

    /// Gives the fault its place in `text`, whose first line is line `first_line` of the source.
    pub fn locate(self, kernel: &str, text: &str, first_line: u32) -> Error {
        let kernel = kernel.to_owned();
        let mut at = (self.at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = text.split_at(at);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let newlines = before.bytes().filter(|&byte| byte == b'\n').count();
        let line = first_line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        let column = u32::try_from(before.chars().rev().take_while(|&c| c != '\n').count())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let line_end = after.find('\n').map_or(text.len(), |newline| at + newline);
        let quote = quoted(text.get(line_start..line_end).unwrap_or_default());
        match self.kind {
            FaultKind::Parse(construct) => Error::Parse { kernel, line, column, construct, quote },
            FaultKind::Unsupported(construct) => {
                Error::Unsupported { kernel, line, column, construct, quote }
            }
            FaultKind::Int64 => Error::Int64 { kernel, line, column, quote },
            FaultKind::Layout(reason) => Error::Layout { kernel, reason },
            FaultKind::Library(reason) => Error::Library(reason),
        }
    }
}

/// A source line short enough for a message.
fn quoted(line: &str) -> String {
    const LONGEST: usize = 160;
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
