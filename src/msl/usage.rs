//! What a kernel does with its parameters and variables, by name alone.
//!
//! Names are not resolved, so that a local variable that hides a parameter counts for both: the
//! answer may say "written" too often, never too seldom.

use std::collections::HashSet;

use super::ast::*;

#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// Names that something is assigned to.
    pub assigned: HashSet<String>,
    /// Names that something is assigned to through an index.
    pub indexed: HashSet<String>,
    /// Names whose memory may be written: indexed assignments, pointers handed on.
    pub written: HashSet<String>,
    /// Names whose memory atomic functions work on.
    pub atomic: HashSet<String>,
    /// Whether the kernel waits at barriers, those inside of functions included.
    pub barriers: bool,
}

impl Usage {
    pub fn of(body: &[Stmt]) -> Self {
        let mut usage = Self::default();
        usage.statements(body);
        usage
    }

    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Declare(declarations) => {
                for declaration in declarations {
                    if let Some(initial) = &declaration.initial {
                        self.expr(initial);
                        self.pointers(initial, false);
                    }
                }
            }
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Block(statements) => self.statements(statements),
            StmtKind::If { condition, accept, reject } => {
                self.expr(condition);
                self.statement(accept);
                if let Some(reject) = reject {
                    self.statement(reject);
                }
            }
            StmtKind::For { initial, condition, step, body } => {
                self.statement(initial);
                condition.iter().chain(step).for_each(|expr| self.expr(expr));
                self.statement(body);
            }
            StmtKind::While { condition, body } | StmtKind::DoWhile { body, condition } => {
                self.expr(condition);
                self.statement(body);
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.expr(value);
                }
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int { .. }
            | ExprKind::Float { .. }
            | ExprKind::Bool(_)
            | ExprKind::Path(_) => {}
            ExprKind::Unary { operand, .. }
            | ExprKind::PointerCast { operand, .. }
            | ExprKind::Bits { operand, .. }
            | ExprKind::Member { base: operand, .. } => self.expr(operand),
            ExprKind::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
                self.target(target, false);
            }
            ExprKind::Step { target, .. } => {
                self.expr(target);
                self.target(target, false);
            }
            ExprKind::Conditional { condition, accept, reject } => {
                self.expr(condition);
                self.expr(accept);
                self.expr(reject);
            }
            ExprKind::Index { base, index } => {
                self.expr(base);
                self.expr(index);
            }
            ExprKind::Cast { arguments, .. } => {
                arguments.iter().for_each(|argument| self.expr(argument));
            }
            ExprKind::Call { callee, arguments } => {
                arguments.iter().for_each(|argument| self.expr(argument));
                let name = callee.joined("::");
                self.barriers |= has_barrier(&name);
                let atomic = name.contains("atomic") || name.contains("Atomic");
                for argument in arguments {
                    self.pointers(argument, atomic);
                }
            }
        }
    }

    /// The name at the root of an assignment's target.
    fn target(&mut self, target: &Expr, indexed: bool) {
        match &target.kind {
            ExprKind::Path(path) => {
                if let Some(name) = path.local() {
                    let names = if indexed { &mut self.indexed } else { &mut self.assigned };
                    names.insert(name.to_owned());
                    self.written.insert(name.to_owned());
                }
            }
            ExprKind::Index { base, .. } | ExprKind::Unary { operand: base, .. } => {
                self.target(base, true);
            }
            ExprKind::Member { base, .. } | ExprKind::PointerCast { operand: base, .. } => {
                self.target(base, indexed);
            }
            ExprKind::Binary { left, right, .. } => {
                self.target(left, indexed);
                self.target(right, indexed);
            }
            _ => {}
        }
    }

    /// Names that may be handed on as pointers by `expr`.
    fn pointers(&mut self, expr: &Expr, atomic: bool) {
        match &expr.kind {
            ExprKind::Path(path) => {
                if let Some(name) = path.local() {
                    self.written.insert(name.to_owned());
                    if atomic {
                        self.atomic.insert(name.to_owned());
                    }
                }
            }
            ExprKind::Unary { op: UnaryOp::AddressOf, operand } => {
                self.target(operand, true);
                if let ExprKind::Index { base, .. } = &operand.kind {
                    self.pointers(base, atomic);
                }
            }
            ExprKind::PointerCast { operand, .. } => self.pointers(operand, atomic),
            ExprKind::Binary { left, right, .. } => {
                self.pointers(left, atomic);
                self.pointers(right, atomic);
            }
            ExprKind::Conditional { accept, reject, .. } => {
                self.pointers(accept, atomic);
                self.pointers(reject, atomic);
            }
            _ => {}
        }
    }
}

/// Whether a function of this name waits for the other threads of its group.
pub(super) fn has_barrier(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    last.ends_with("_barrier") || last.starts_with("threadgroup_") || last.starts_with("simd_")
}
