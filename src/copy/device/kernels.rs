//! The compute kernels by name, with their source.

use crate::dtype::DType;
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
    pub constants: SmallVec<[(&'static str, u32); 5]>,
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
    STRIDED_4: "strided_4" = ["elem_4.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl", "items.wgsl"];
    STRIDED_8: "strided_8" = ["elem_8.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl", "items.wgsl"];
    STRIDED_16: "strided_16" = ["elem_16.wgsl", "params.wgsl", "walk.wgsl", "strided.wgsl", "items.wgsl"];
    TRANSPOSE_2_EVEN: "transpose_2_even" = ["params.wgsl", "tiles.wgsl", "halves_even.wgsl", "transpose_2.wgsl"];
    TRANSPOSE_2_ODD: "transpose_2_odd" = ["params.wgsl", "tiles.wgsl", "halves_odd.wgsl", "transpose_2.wgsl"];
    TRANSPOSE_4: "transpose_4" = ["elem_4.wgsl", "tile_64.wgsl", "params.wgsl", "tiles.wgsl", "transpose.wgsl"];
    TRANSPOSE_4_SMALL: "transpose_4_small" =
        ["elem_4.wgsl", "tile_32.wgsl", "params.wgsl", "tiles.wgsl", "transpose.wgsl"];
    TRANSPOSE_8: "transpose_8" = ["elem_8.wgsl", "tile_32.wgsl", "params.wgsl", "tiles.wgsl", "transpose.wgsl"];
    TRANSPOSE_16: "transpose_16" = ["elem_16.wgsl", "tile_16.wgsl", "params.wgsl", "tiles.wgsl", "transpose.wgsl"];
    NARROW_PACK: "narrow_pack" = ["params.wgsl", "walk.wgsl", "narrow_pack.wgsl"];
    NARROW_SCATTER: "narrow_scatter" = ["params.wgsl", "walk.wgsl", "narrow_scatter.wgsl"];
    SHIFT_PACK: "shift_pack" = ["params.wgsl", "walk.wgsl", "shift.wgsl", "shift_pack.wgsl"];
    SHIFT_SCATTER: "shift_scatter" = ["params.wgsl", "walk.wgsl", "shift.wgsl", "shift_scatter.wgsl"];
    CONVERT: "convert" = ["params.wgsl", "walk.wgsl", "half.wgsl", "convert.wgsl"];
    FLOAT_TO_HALF: "float_to_half" =
        ["params.wgsl", "walk.wgsl", "half.wgsl", "float_to_half.wgsl", "items.wgsl"];
    HALF_TO_FLOAT: "half_to_float" =
        ["params.wgsl", "walk.wgsl", "half.wgsl", "half_to_float.wgsl", "items.wgsl"];
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

/// A kernel that works in tiles.
pub(super) struct Tiling {
    pub kernel: Kernel,
    /// Elements of a tile along the destination's innermost dimension and along the
    /// source's.
    pub tile: [u64; 2],
    /// The most tiles that a workgroup does, one after the other along the destination's
    /// innermost dimension, or where that is one tile long along the source's.
    pub walk: u64,
    /// Elements that a row of the destination may be shifted by.
    pub shift: u64,
}

/// Of units of 4 bytes or more; `large` where large tiles neither stand half empty nor
/// leave a device idle.
pub(super) fn transpose(unit: u64, large: bool) -> Tiling {
    let (source, side, walk) = match unit {
        4 if large => (TRANSPOSE_4, 64, 4),
        4 => (TRANSPOSE_4_SMALL, 32, 4),
        8 => (TRANSPOSE_8, 32, 2),
        _ => (TRANSPOSE_16, 16, 2),
    };
    Tiling { kernel: kernel(source, &[]), tile: [side, side], walk, shift: 0 }
}

/// Of units of 2 bytes; `even` where every row begins at a word on both sides.
pub(super) fn transpose_2(even: bool) -> Tiling {
    let (source, shift) = if even { (TRANSPOSE_2_EVEN, 0) } else { (TRANSPOSE_2_ODD, 1) };
    Tiling { kernel: kernel(source, &[]), tile: [64, 64], walk: 1, shift }
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

pub(super) fn shift_scatter(rank: usize) -> Kernel {
    kernel(SHIFT_SCATTER, &[("RANK", rank as u64)])
}

/// Between f32 and, on either side, f16 or bf16.
pub(super) fn fast_convert(to: DType, from: DType, rank: usize, items: u64) -> Kernel {
    let (source, half) =
        if from == DType::F32 { (FLOAT_TO_HALF, to) } else { (HALF_TO_FLOAT, from) };
    let bfloat = u64::from(half == DType::BF16);
    kernel(source, &[("RANK", rank as u64), ("ITEMS", items), ("BFLOAT", bfloat)])
}

/// Between any two types, `group` elements of the destination an item.
pub(super) fn convert(to: DType, from: DType, group: u64, rank: usize, items: u64) -> Kernel {
    let constants = [
        ("RANK", rank as u64),
        ("ITEMS", items),
        ("SRC", code(from)),
        ("DST", code(to)),
        ("GROUP", group),
    ];
    kernel(CONVERT, &constants)
}

/// What `convert.wgsl` calls a type; types that do not convert do not come here.
fn code(dtype: DType) -> u64 {
    match dtype {
        DType::Bool => 0,
        DType::U8 => 1,
        DType::I8 => 2,
        DType::U16 => 3,
        DType::I16 => 4,
        DType::U32 => 5,
        DType::I32 => 6,
        DType::U64 => 7,
        DType::I64 => 8,
        DType::F16 => 9,
        DType::BF16 => 10,
        DType::F64 => 12,
        _ => 11,
    }
}
