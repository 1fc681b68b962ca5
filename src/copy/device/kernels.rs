//! The compute kernels by name, with their source.

use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// A shader with its constants: what one pipeline is made of. Two are equal, and
/// hash alike, by name and constants; the source is not looked at.
#[derive(Clone)]
pub struct Kernel {
    /// The shader's name; one name, one source.
    pub name: &'static str,
    /// WGSL with the entry point `main`.
    pub wgsl: &'static str,
    /// The values of its `override` constants, all of them `u32`.
    pub constants: SmallVec<[(&'static str, u32); 4]>,
}

impl Kernel {
    fn key(&self) -> (&'static str, &[(&'static str, u32)]) {
        (self.name, &self.constants)
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.name, self.constants.as_slice())
    }
}

macro_rules! sources {
    ($(#[$doc:meta])* $vis:vis const $all:ident; $($const:ident: $name:literal = [$($file:literal),*];)*) => {
        $(const $const: (&str, &str) =
            ($name, concat!($(include_str!(concat!("../../../shaders/", $file))),*));)*
        $(#[$doc])*
        $vis const $all: &[(&str, &str)] = &[$($const),*];
    };
}

sources! {
    /// Every shader, as (name, WGSL).
    pub const ALL;
    STRIDED_4: "strided_4" = ["elem_4.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl"];
    STRIDED_8: "strided_8" = ["elem_8.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl"];
    STRIDED_16: "strided_16" = ["elem_16.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl"];
    TRANSPOSE_2: "transpose_2" = ["params.wgsl", "transpose_2.wgsl"];
    TRANSPOSE_4: "transpose_4" = ["elem_4.wgsl", "params.wgsl", "transpose.wgsl"];
    TRANSPOSE_8: "transpose_8" = ["elem_8.wgsl", "params.wgsl", "transpose.wgsl"];
    TRANSPOSE_16: "transpose_16" = ["elem_16.wgsl", "params.wgsl", "transpose.wgsl"];
    NARROW_PACK: "narrow_pack" = ["params.wgsl", "walk.wgsl", "narrow_pack.wgsl"];
    NARROW_SCATTER: "narrow_scatter" = ["params.wgsl", "walk.wgsl", "shift.wgsl", "narrow_scatter.wgsl"];
    SHIFT_PACK: "shift_pack" = ["params.wgsl", "walk.wgsl", "shift.wgsl", "shift_pack.wgsl"];
}

fn kernel((name, wgsl): (&'static str, &'static str), constants: &[(&'static str, u64)]) -> Kernel {
    let constants = constants.iter().map(|&(name, value)| (name, value as u32)).collect();
    Kernel { name, wgsl, constants }
}

pub(super) fn strided(unit: u64, rank: usize, items: u64) -> Kernel {
    let source = match unit {
        4 => STRIDED_4,
        8 => STRIDED_8,
        _ => STRIDED_16,
    };
    kernel(source, &[("RANK", rank as u64), ("ITEMS", items)])
}

/// With the tile's side, and the elements that a row may be shifted by.
pub(super) fn transpose(unit: u64) -> (Kernel, u64, u64) {
    let (source, side) = match unit {
        4 => (TRANSPOSE_4, 32),
        8 => (TRANSPOSE_8, 32),
        _ => (TRANSPOSE_16, 16),
    };
    (kernel(source, &[]), side, 0)
}

/// As [`transpose`].
pub(super) fn transpose_2() -> (Kernel, u64, u64) {
    (kernel(TRANSPOSE_2, &[]), 64, 1)
}

pub(super) fn narrow_pack(unit: u64, rank: usize, items: u64) -> Kernel {
    kernel(NARROW_PACK, &[("RANK", rank as u64), ("ITEMS", items), ("UNIT", unit)])
}

pub(super) fn narrow_scatter(rank: usize, items: u64) -> Kernel {
    kernel(NARROW_SCATTER, &[("RANK", rank as u64), ("ITEMS", items)])
}

pub(super) fn shift_pack(rank: usize) -> Kernel {
    kernel(SHIFT_PACK, &[("RANK", rank as u64)])
}
