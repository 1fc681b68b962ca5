//! Copies between two element types, over host memory.
//!
//! What a value becomes, here and in `shaders/convert.wgsl`, bit for bit:
//!
//! - to `bool`: whether it is not equal to zero, so NaN is true; from `bool`: 0 or 1,
//!   any byte but 0 being true;
//! - integer to integer: the low bits, so it wraps;
//! - integer to float, f64 to f32: the nearest, ties to even;
//! - to f16 and bf16: through f32, as PyTorch has it, the nearest each time, ties to
//!   even; what is too large becomes infinite;
//! - float to integer: towards zero. PyTorch leaves open what a value out of range
//!   becomes; here it is the nearest end of the range, and NaN is 0;
//! - NaN stays NaN, quiet, with its sign and the bits of its payload that fit.
#![allow(unsafe_code)]

use super::host::{At, walk};
use super::plan::{CopyPlan, Dim};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use number::{BFloat16, Bool, Half, Number};

mod number;

/// Two layouts and their element types, which differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertPlan {
    walk: CopyPlan,
    dst: DType,
    src: DType,
}

impl ConvertPlan {
    /// The plan that converts `src`, which has `dst`'s sizes, to `dst`. Each side is a
    /// layout, the bytes by which it is moved into its memory, and a type. Bases are
    /// multiples of the element.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where the types do not convert to each other;
    /// otherwise as [`CopyPlan::new`].
    pub fn new(dst: (&Layout, u64, DType), src: (&Layout, u64, DType)) -> Result<Self> {
        if dst.2.number_kind().is_none() || src.2.number_kind().is_none() {
            return Err(Error::NotSupported(format!("a conversion from {} to {}", src.2, dst.2)));
        }
        for (argument, base, dtype) in [("dst", dst.1, dst.2), ("src", src.1, src.2)] {
            if !base.is_multiple_of(dtype.size() as u64) {
                return Err(Error::invalid(
                    argument,
                    format_args!("at byte {base}"),
                    format!("{dtype} converts at multiples of its size only"),
                ));
            }
        }
        let walk = CopyPlan::walk_of((dst.0, dst.1, dst.2.size()), (src.0, src.1, src.2.size()))?;
        Ok(ConvertPlan { walk, dst: dst.2, src: src.2 })
    }

    /// The dimensions and reach of both sides; its run is one element of the
    /// destination. It is not to be copied.
    pub(super) fn walk(&self) -> &CopyPlan {
        &self.walk
    }

    /// The destination's type.
    pub fn dst_dtype(&self) -> DType {
        self.dst
    }

    /// The source's type.
    pub fn src_dtype(&self) -> DType {
        self.src
    }

    /// Bytes from the start of the destination's memory to one past the last byte written.
    pub fn dst_end(&self) -> u64 {
        self.walk.dst_end()
    }

    /// Bytes from the start of the source's memory to one past the last byte read.
    pub fn src_end(&self) -> u64 {
        self.walk.src_end()
    }

    /// Whether source and destination, in one storage, may share a byte: as
    /// [`CopyPlan::overlaps`].
    pub fn overlaps(&self) -> bool {
        self.walk.overlaps()
    }
}

/// Converts between two byte slices.
///
/// # Errors
/// [`Error::InvalidArgument`] where the plan reaches past the end of a slice.
pub fn run_slices(plan: &ConvertPlan, dst: &mut [u8], src: &[u8]) -> Result<()> {
    super::host::check_reach("dst", plan.dst_end(), dst.len())?;
    super::host::check_reach("src", plan.src_end(), src.len())?;
    // SAFETY: both ends were compared with the slices' lengths, and a shared and an
    // exclusive slice do not overlap.
    unsafe { run(plan, dst.as_mut_ptr(), src.as_ptr()) };
    Ok(())
}

/// Converts; `dst` and `src` point to the start of the two memories.
///
/// # Safety
/// As [`super::host::run`]'s, of this plan.
pub unsafe fn run(plan: &ConvertPlan, dst: *mut u8, src: *const u8) {
    if plan.walk.bytes() == 0 {
        return;
    }
    macro_rules! from {
        ($($name:ident: $type:ty),*) => {
            match plan.src {
                // SAFETY: the caller's promise, of elements of this type.
                $(DType::$name => unsafe { to!($type) },)*
                _ => {}
            }
        };
    }
    macro_rules! to {
        ($from:ty) => { to!($from; Bool: Bool, U8: u8, I8: i8, U16: u16, I16: i16, U32: u32,
            I32: i32, U64: u64, I64: i64, F16: Half, BF16: BFloat16, F32: f32, F64: f64) };
        ($from:ty; $($name:ident: $type:ty),*) => {
            match plan.dst {
                $(DType::$name => rows::<$from, $type>(&plan.walk, dst, src),)*
                _ => {}
            }
        };
    }
    from!(Bool: Bool, U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64,
        I64: i64, F16: Half, BF16: BFloat16, F32: f32, F64: f64);
}

/// # Safety
/// An `S` may be read and a `D` written at every index of the plan.
unsafe fn rows<S: Number, D: Number>(plan: &CopyPlan, dst: *mut u8, src: *const u8) {
    let at = At {
        dst: dst.wrapping_add(plan.dst() as usize),
        src: src.wrapping_add(plan.src() as usize),
    };
    let unit = Dim { size: 1, dst: size_of::<D>() as u64, src: size_of::<S>() as u64 };
    let (&inner, outer) = plan.dims().split_last().unwrap_or((&unit, &[]));
    let n = inner.size as usize;
    let d = inner.dst as usize / size_of::<D>();
    let s = inner.src as usize / size_of::<S>();
    // SAFETY: each row is one index of the outer dimensions.
    match (d, s) {
        (1, 1) => walk(outer, at, |at| unsafe { row::<S, D>(at, n, 1, 1) }),
        _ => walk(outer, at, |at| unsafe { row::<S, D>(at, n, d, s) }),
    }
}

/// # Safety
/// `n` elements may be converted from `at`, `d` and `s` elements apart.
#[inline(always)]
unsafe fn row<S: Number, D: Number>(at: At, n: usize, d: usize, s: usize) {
    let (dst, src) = (at.dst.cast::<D>(), at.src.cast::<S>());
    for i in 0..n {
        // SAFETY: the i-th of the row's elements.
        unsafe { dst.add(i * d).write_unaligned(src.add(i * s).read_unaligned().to::<D>()) }
    }
}

#[cfg(test)]
mod tests;
