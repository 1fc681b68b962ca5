//! A kernel's syntax tree. Every `at` is a byte offset into the kernel's text.

use super::types::{Scalar, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryOp {
    Negate,
    Plus,
    Not,
    Complement,
    Dereference,
    AddressOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    LogicalAnd,
    LogicalOr,
}

#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub at: u32,
    /// Levels of expressions in it, which bounds the recursion over it.
    pub depth: u16,
    pub kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Int {
        value: u64,
        ty: Scalar,
    },
    Float {
        value: f32,
        ty: Scalar,
    },
    Bool(bool),
    Path(Path),
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `target = value`, or `target op= value`.
    Assign {
        op: Option<BinaryOp>,
        target: Box<Expr>,
        value: Box<Expr>,
    },
    /// `++x`, `x--` and the like.
    Step {
        target: Box<Expr>,
        up: bool,
        prefix: bool,
    },
    Conditional {
        condition: Box<Expr>,
        accept: Box<Expr>,
        reject: Box<Expr>,
    },
    Call {
        callee: Path,
        arguments: Vec<Expr>,
    },
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    Member {
        base: Box<Expr>,
        name: String,
    },
    /// `static_cast<T>(x)`, `(T)x`, `T(x, y)` and `T{x, y}`.
    Cast {
        ty: TypeName,
        arguments: Vec<Expr>,
    },
    /// `reinterpret_cast<T*>(x)` and `(device T*)x`.
    PointerCast {
        ty: TypeName,
        operand: Box<Expr>,
    },
    /// `as_type<T>(x)`.
    Bits {
        ty: TypeName,
        operand: Box<Expr>,
    },
}

/// A name with its qualifiers and template arguments; a leading `::` is dropped.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub name: String,
    pub arguments: Vec<TypeName>,
}

impl Path {
    /// The name, if nothing qualifies it.
    pub fn local(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [segment] if segment.arguments.is_empty() => Some(&segment.name),
            _ => None,
        }
    }

    /// The segments joined by `separator`, without template arguments.
    pub fn joined(&self, separator: &str) -> String {
        let names: Vec<&str> = self.segments.iter().map(|segment| segment.name.as_str()).collect();
        names.join(separator)
    }

    /// The first template argument of any segment.
    pub fn template_argument(&self) -> Option<&TypeName> {
        self.segments.iter().find_map(|segment| segment.arguments.first())
    }
}

#[derive(Clone, Debug)]
pub(super) struct TypeName {
    pub at: u32,
    pub kind: TypeKind,
    pub pointer: bool,
}

#[derive(Clone, Debug)]
pub(super) enum TypeKind {
    Known(Type),
    Auto,
    Decltype(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Thread,
    Threadgroup,
}

#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub at: u32,
    pub name: String,
    pub space: Space,
    pub ty: TypeName,
    /// `[n]` after the name.
    pub length: Option<Expr>,
    pub initial: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(super) struct Stmt {
    pub kind: StmtKind,
}

#[derive(Clone, Debug)]
pub(super) enum StmtKind {
    Declare(Vec<Declaration>),
    Expr(Expr),
    Block(Vec<Stmt>),
    If { condition: Expr, accept: Box<Stmt>, reject: Option<Box<Stmt>> },
    For { initial: Box<Stmt>, condition: Option<Expr>, step: Option<Expr>, body: Box<Stmt> },
    While { condition: Expr, body: Box<Stmt> },
    DoWhile { body: Box<Stmt>, condition: Expr },
    Return(Option<Expr>),
    Break,
    Continue,
    Empty,
}

/// A value that Metal hands to each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    ThreadInGrid,
    ThreadInGroup,
    GroupInGrid,
    ThreadsPerGroup,
    DispatchThreadsPerGroup,
    ThreadsPerGrid,
    GroupsPerGrid,
    ThreadIndexInGroup,
}

impl Builtin {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "thread_position_in_grid" => Self::ThreadInGrid,
            "thread_position_in_threadgroup" => Self::ThreadInGroup,
            "threadgroup_position_in_grid" => Self::GroupInGrid,
            "threads_per_threadgroup" => Self::ThreadsPerGroup,
            "dispatch_threads_per_threadgroup" => Self::DispatchThreadsPerGroup,
            "threads_per_grid" => Self::ThreadsPerGrid,
            "threadgroups_per_grid" => Self::GroupsPerGrid,
            "thread_index_in_threadgroup" => Self::ThreadIndexInGroup,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
pub(super) enum Parameter {
    /// `device T*`, `constant T*`, and a reference to what is no integer.
    Buffer {
        name: String,
        index: u32,
        ty: Type,
        constant: bool,
        reference: bool,
    },
    /// `constant long&` and other integers by reference.
    Int {
        name: String,
        index: u32,
        ty: Scalar,
    },
    Builtin {
        name: String,
        ty: Type,
        builtin: Builtin,
    },
}

/// A function of the source's own.
#[derive(Clone, Debug)]
pub(super) struct HelperSyntax {
    pub name: String,
    pub result: TypeName,
    pub parameters: Vec<(String, TypeName)>,
    pub body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(super) struct KernelSyntax {
    pub parameters: Vec<Parameter>,
    pub body: Vec<Stmt>,
}
