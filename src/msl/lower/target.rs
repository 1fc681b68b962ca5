//! What assignments write.

use super::super::ast::*;
use super::super::types::Type;
use super::memory::Pointer;
use super::*;

/// What an assignment writes.
pub(super) enum Target {
    /// Function variables, one a lane.
    Variable { ty: Type, lanes: Lanes },
    /// These lanes of an element in memory.
    Memory { ty: Type, pointer: Pointer, lanes: SmallVec<[u8; 4]> },
}

impl<'a> Lowering<'a> {
    pub(super) fn assign(
        &mut self,
        at: u32,
        op: Option<BinaryOp>,
        target: &'a Expr,
        value: &'a Expr,
    ) -> Result<Typed> {
        let mut value = self.value(value)?;
        let target = self.target(target)?;
        if let Some(op) = op {
            let old = self.read(&target, at)?;
            value = self.binary(op, &old, &value, at)?;
        }
        let (Target::Variable { ty, .. } | Target::Memory { ty, .. }) = &target;
        let value = self.convert(&value, *ty, at)?;
        self.write(&target, &value, at)?;
        Ok(value)
    }

    pub(super) fn target(&mut self, expr: &'a Expr) -> Result<Target> {
        let at = expr.at;
        match &expr.kind {
            ExprKind::Path(path) => {
                let entity = path.local().and_then(|name| self.find(name)).cloned();
                match entity {
                    Some(Entity::Variable { ty, lanes }) => Ok(Target::Variable { ty, lanes }),
                    Some(Entity::Element(pointer)) => Ok(memory_target(pointer)),
                    _ => {
                        let name = path.joined("::");
                        Err(Fault::unsupported(at, format!("an assignment to `{name}`")))
                    }
                }
            }
            ExprKind::Index { base, index } => match self.operand(base)? {
                Operand::Pointer(pointer) => {
                    let index = self.value(index)?;
                    Ok(memory_target(self.offset(pointer, &index, at)?))
                }
                Operand::Value(_) => {
                    let ExprKind::Int { value: lane @ 0..=3, .. } = index.kind else {
                        return Err(Fault::unsupported(at, "a lane by a computed number"));
                    };
                    let target = self.target(base)?;
                    let name = ["x", "y", "z", "w"][lane as usize];
                    self.lanes_of(target, name, at)
                }
            },
            ExprKind::Member { base, name } => {
                let target = self.target(base)?;
                self.lanes_of(target, name, at)
            }
            ExprKind::Unary { op: UnaryOp::Dereference, operand } => {
                Ok(memory_target(self.pointer(operand)?))
            }
            _ => Err(Fault::unsupported(at, "an assignment to this")),
        }
    }

    fn lanes_of(&self, target: Target, name: &str, at: u32) -> Result<Target> {
        let (Target::Variable { ty, .. } | Target::Memory { ty, .. }) = &target;
        let ty = *ty;
        let chosen = swizzle(name, ty)
            .ok_or_else(|| Fault::unsupported(at, format!("`.{name}` of {ty}")))?;
        let result = Type { scalar: ty.scalar, lanes: chosen.len() as u8 };
        Ok(match target {
            Target::Variable { lanes, .. } => Target::Variable {
                ty: result,
                lanes: chosen.iter().map(|&lane| lanes[usize::from(lane)]).collect(),
            },
            Target::Memory { pointer, lanes, .. } => Target::Memory {
                ty: result,
                pointer,
                lanes: chosen.iter().map(|&lane| lanes[usize::from(lane)]).collect(),
            },
        })
    }

    pub(super) fn read(&mut self, target: &Target, at: u32) -> Result<Typed> {
        match target {
            Target::Variable { ty, lanes } => {
                let lanes = lanes.iter().map(|&pointer| self.b.load(pointer)).collect();
                Ok(Typed { ty: *ty, lanes })
            }
            Target::Memory { ty, pointer, lanes } => {
                let whole = self.load(pointer, at)?;
                let lanes = lanes.iter().map(|&lane| whole.lanes[usize::from(lane)]).collect();
                Ok(Typed { ty: *ty, lanes })
            }
        }
    }

    pub(super) fn write(&mut self, target: &Target, value: &Typed, at: u32) -> Result<()> {
        match target {
            Target::Variable { lanes, .. } => {
                for (pointer, lane) in lanes.iter().zip(&value.lanes) {
                    self.b.store(*pointer, *lane);
                }
                Ok(())
            }
            Target::Memory { pointer, lanes, .. } => {
                let pairs = lanes.iter().zip(&value.lanes);
                for (&lane, &value) in pairs {
                    self.store_scalar(pointer, lane, value, at)?;
                }
                Ok(())
            }
        }
    }
}

fn memory_target(pointer: Pointer) -> Target {
    Target::Memory { ty: pointer.ty, pointer, lanes: (0..pointer.ty.lanes).collect() }
}

/// The lanes that `.xyzw` or `.rgba` names, if the vector has them all.
pub(super) fn swizzle(name: &str, ty: Type) -> Option<SmallVec<[u8; 4]>> {
    if ty.lanes < 2 || name.is_empty() || name.len() > 4 {
        return None;
    }
    let set = if name.bytes().all(|c| b"xyzw".contains(&c)) { b"xyzw" } else { b"rgba" };
    name.bytes()
        .map(|c| {
            let lane = set.iter().position(|&name| name == c)?;
            u8::try_from(lane).ok().filter(|&lane| lane < ty.lanes)
        })
        .collect()
}
