//! Strided layouts: sizes, strides and an offset, all in elements.
//!
//! Pure arithmetic, no memory and no GPU. A [`Layout`] is checked when it is made,
//! so everything behind this module may rely on: at most [`MAX_DIMS`] dimensions;
//! no negative size, stride or offset; sizes and strides of at most 2^31 - 1 (an
//! ETensor holds them in 32 bits); element count and end fit in an `i64`.
//!
//! *Extent* is the distance from the first to one past the last element that a
//! layout reaches, without the offset; *end* is the same with it. A layout is
//! *packed* when its elements fill its extent with no holes and no overlap,
//! *contiguous* when it is packed in row-major order.

use crate::error::{Error, Result};
use smallvec::SmallVec;

/// The most dimensions that a tensor may have.
pub const MAX_DIMS: usize = 16;

/// The largest size or stride: what an ETensor's 32-bit fields hold.
pub const MAX_FIELD: i64 = i32::MAX as i64;

/// One integer a dimension, inline for the ranks that models use.
pub type Dims = SmallVec<[i64; 6]>;

/// Where the elements of a tensor lie in its storage, in elements.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Entries from `rank` on are 0, and all of them where there are `more`.
    sizes: [i64; INLINE_DIMS],
    strides: [i64; INLINE_DIMS],
    offset: i64,
    numel: i64,
    extent: i64,
    more: Option<Box<Many>>,
    rank: u8,
    contiguous: bool,
}

/// Dimensions whose fields lie in the layout itself. Every tensor and every view makes a
/// layout: this many leave it small enough for compilers to move without a call.
pub(crate) const INLINE_DIMS: usize = 5;

/// The fields of more dimensions than that.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Many {
    sizes: Box<[i64]>,
    strides: Box<[i64]>,
}

const _: () = assert!(size_of::<Layout>() <= 128);

/// What [`Layout::new`] takes, once it is known to be a layout: still where the caller has
/// it, so that a tensor takes it over without any copy in between.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    offset: i64,
    numel: i64,
    extent: i64,
    contiguous: bool,
}

impl<'a> Checked<'a> {
    /// Sizes, strides and offset in elements.
    ///
    /// # Errors
    /// As [`Layout::new`].
    #[inline]
    pub fn new(sizes: &'a [i64], strides: &'a [i64], offset: i64) -> Result<Self> {
        match Checked::usual(sizes, strides, offset) {
            Some(checked) => Ok(checked),
            None => Checked::unusual(sizes, strides, offset),
        }
    }

    /// What is right, found so in one pass; `None` for what must be looked at more closely.
    #[inline]
    fn usual(sizes: &'a [i64], strides: &'a [i64], offset: i64) -> Option<Self> {
        if sizes.len() > MAX_DIMS || strides.len() != sizes.len() || offset < 0 {
            return None;
        }
        let (mut numel, mut extent, mut contiguous) = (1i64, 1i64, true);
        // From the innermost dimension on, where contiguous strides are the product so far.
        for (&size, &stride) in sizes.iter().zip(strides).rev() {
            // Negative as well: as unsigned numbers those are above the largest field.
            if (size as u64).max(stride as u64) > MAX_FIELD as u64 {
                return None;
            }
            contiguous &= size == 1 || stride == numel;
            numel = numel.checked_mul(size)?;
            // Of two numbers of 31 bits, and one that may be -1: no product overflows.
            extent = extent.checked_add((size - 1) * stride)?;
        }
        if numel == 0 {
            (extent, contiguous) = (0, true);
        }
        offset.checked_add(extent)?;
        Some(Checked { sizes, strides, offset, numel, extent, contiguous })
    }

    #[cold]
    #[inline(never)]
    fn unusual(sizes: &'a [i64], strides: &'a [i64], offset: i64) -> Result<Self> {
        let (numel, extent) = check(sizes, strides, offset)?;
        let contiguous = is_row_major(sizes, strides, numel);
        Ok(Checked { sizes, strides, offset, numel, extent, contiguous })
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> Layout {
        let rank = self.sizes.len();
        let entry = |fields: &[i64], d| fields.get(d).copied().unwrap_or(0);
        let few = rank <= INLINE_DIMS;
        Layout {
            sizes: std::array::from_fn(|d| if few { entry(self.sizes, d) } else { 0 }),
            strides: std::array::from_fn(|d| if few { entry(self.strides, d) } else { 0 }),
            offset: self.offset,
            numel: self.numel,
            extent: self.extent,
            more: if few { None } else { Some(many(self.sizes, self.strides)) },
            rank: rank as u8,
            contiguous: self.contiguous,
        }
    }

    /// Elements a dimension.
    pub fn sizes(&self) -> &'a [i64] {
        self.sizes
    }

    /// Elements from one index to the next, a dimension.
    pub fn strides(&self) -> &'a [i64] {
        self.strides
    }

    /// Elements from the start of the storage to the first element.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// As [`Layout::end_bytes`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn end_bytes(&self, element_size: usize) -> Result<u64> {
        // Neither overflowed when it was checked.
        let end = if self.numel == 0 { 0 } else { self.offset.saturating_add(self.extent) };
        bytes_of(end, element_size)
    }

    /// As [`Layout::is_packed`].
    #[inline]
    pub fn is_packed(&self) -> bool {
        // Without overlap, as many elements as places means that every place is taken.
        self.numel == self.extent && (self.contiguous || !overlaps(self.sizes, self.strides))
    }

    /// As [`Layout::with_offset`].
    ///
    /// # Errors
    /// As there.
    pub fn with_offset(&self, offset: i64) -> Result<Self> {
        check_offset(offset, self.extent)?;
        Ok(Checked { offset, ..*self })
    }
}

#[cold]
fn many(sizes: &[i64], strides: &[i64]) -> Box<Many> {
    Box::new(Many { sizes: sizes.into(), strides: strides.into() })
}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layout")
            .field("sizes", &self.sizes())
            .field("strides", &self.strides())
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Layout {
    /// A checked layout; sizes, strides and offset in elements.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than [`MAX_DIMS`] dimensions, ranks that
    /// differ, a negative value, and a count or an extent that overflows 64 bits;
    /// [`Error::NotSupported`] for a size or stride above [`MAX_FIELD`].
    #[inline]
    pub fn new(sizes: &[i64], strides: &[i64], offset: i64) -> Result<Self> {
        Checked::new(sizes, strides, offset).map(|checked| checked.layout())
    }

    /// The same, borrowed.
    #[inline]
    pub fn checked(&self) -> Checked<'_> {
        Checked {
            sizes: self.sizes(),
            strides: self.strides(),
            offset: self.offset,
            numel: self.numel,
            extent: self.extent,
            contiguous: self.contiguous,
        }
    }

    /// The row-major layout without holes, at offset 0.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn contiguous(sizes: &[i64]) -> Result<Self> {
        check_rank("ndim", sizes.len())?;
        check_fields("sizes", sizes)?;
        Layout::new(sizes, &contiguous_strides(sizes)?, 0)
    }

    /// `bytes` elements of one byte, one after another: in rows, where a single size
    /// would be above [`MAX_FIELD`].
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a count above that whose largest power-of-two divisor
    /// leaves too many rows.
    pub fn of_bytes(bytes: i64) -> Result<Self> {
        if bytes <= MAX_FIELD {
            return Layout::contiguous(&[bytes]);
        }
        let row = 1i64 << bytes.trailing_zeros().min(30);
        Layout::contiguous(&[bytes / row, row])
    }

    /// Elements a dimension.
    #[inline]
    pub fn sizes(&self) -> &[i64] {
        match &self.more {
            None => self.sizes.split_at(self.rank().min(INLINE_DIMS)).0,
            Some(many) => &many.sizes,
        }
    }

    /// Elements from one index to the next, a dimension.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        match &self.more {
            None => self.strides.split_at(self.rank().min(INLINE_DIMS)).0,
            Some(many) => &many.strides,
        }
    }

    /// Sizes and strides with zeros after them, where they are few.
    #[inline]
    pub(crate) fn few(&self) -> Option<(&[i64; INLINE_DIMS], &[i64; INLINE_DIMS])> {
        self.more.is_none().then_some((&self.sizes, &self.strides))
    }

    /// Elements from the start of the storage to the first element.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> i64 {
        self.numel
    }

    /// Elements from the first to one past the last that is reached; 0 where there are none.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Elements from the start of the storage to one past the last that is reached.
    #[inline]
    pub fn end(&self) -> i64 {
        if self.numel == 0 { self.offset } else { self.offset.saturating_add(self.extent) }
    }

    /// Bytes from the start of the storage to one past the last element's last byte.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where that overflows 64 bits.
    #[inline]
    pub fn end_bytes(&self, element_size: usize) -> Result<u64> {
        self.checked().end_bytes(element_size)
    }

    /// Bytes of the elements alone.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where that overflows 64 bits.
    pub fn packed_bytes(&self, element_size: usize) -> Result<u64> {
        bytes_of(self.numel, element_size)
    }

    /// The same sizes and strides at another offset (elements).
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_offset(&self, offset: i64) -> Result<Self> {
        check_offset(offset, self.extent)?;
        Ok(Layout { offset, ..self.clone() })
    }

    /// Whether the elements lie in row-major order without holes. Strides of
    /// dimensions of size 1 do not matter, and a tensor without elements is contiguous.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Whether the elements fill the extent, in any order of the dimensions.
    #[inline]
    pub fn is_packed(&self) -> bool {
        self.checked().is_packed()
    }

    /// Whether two elements may share a place. Exact for the layouts that slicing,
    /// permuting and expanding make; for others ({2,3} of strides {3,2}, say) "yes"
    /// can be wrong and "no" cannot, as in PyTorch's own test before a write.
    pub fn overlaps(&self) -> bool {
        if self.numel <= 1 {
            return false;
        }
        overlaps(self.sizes(), self.strides())
    }

    /// This layout broadcast to `sizes`, as PyTorch's `expand`: dimensions are
    /// matched from the last one, and one of size 1 gets stride 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the sizes do not broadcast.
    pub fn broadcast_to(&self, sizes: &[i64]) -> Result<Self> {
        let refuse = || {
            Error::invalid(
                "src",
                format_args!("of sizes {:?}", self.sizes()),
                format!("it does not broadcast to {sizes:?}"),
            )
        };
        let lead = sizes.len().checked_sub(self.rank()).ok_or_else(refuse)?;
        let mut strides = Dims::from_elem(0, lead);
        let own = self.sizes().iter().zip(self.strides());
        for (&want, (&have, &stride)) in sizes.iter().skip(lead).zip(own) {
            if have == want {
                strides.push(stride);
            } else if have == 1 {
                strides.push(0);
            } else {
                return Err(refuse());
            }
        }
        Layout::new(sizes, &strides, self.offset)
    }

    /// Row-major strides after the order of this layout's strides, with the gaps
    /// closed: what PyTorch's `preserve_format` gives. A layout with overlap gives
    /// the contiguous one.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn closed(&self) -> Result<Self> {
        if self.overlaps() || self.is_contiguous() {
            return Layout::contiguous(self.sizes());
        }
        let mut order: SmallVec<[usize; 6]> = (0..self.rank()).collect();
        // Stable, outermost first: dimensions of equal stride keep their places.
        order.sort_by_key(|&d| std::cmp::Reverse(self.strides().get(d).copied().unwrap_or(0)));
        let mut strides = Dims::from_elem(1, self.rank());
        let mut next = 1i64;
        for &d in order.iter().rev() {
            if let (Some(stride), Some(&size)) = (strides.get_mut(d), self.sizes().get(d)) {
                *stride = next;
                next = next.saturating_mul(size.max(1));
            }
        }
        Layout::new(self.sizes(), &strides, 0)
    }
}

/// Dimensions of more than one element as (size, stride), smallest stride first.
fn by_stride(sizes: &[i64], strides: &[i64]) -> SmallVec<[(i64, i64); 6]> {
    let mut dims: SmallVec<[(i64, i64); 6]> =
        sizes.iter().copied().zip(strides.iter().copied()).filter(|&(size, _)| size > 1).collect();
    dims.sort_unstable_by_key(|&(size, stride)| (stride, size));
    dims
}

fn overlaps(sizes: &[i64], strides: &[i64]) -> bool {
    let mut reached = 0i64;
    for (size, stride) in by_stride(sizes, strides) {
        if stride <= reached {
            return true;
        }
        reached = reached.saturating_add((size - 1).saturating_mul(stride));
    }
    false
}

fn check_offset(offset: i64, extent: i64) -> Result<()> {
    if offset < 0 || offset.checked_add(extent).is_none() {
        return Err(Error::invalid(
            "storage_offset",
            offset,
            "it is negative, or overflows 64 bits with the extent",
        ));
    }
    Ok(())
}

fn is_row_major(sizes: &[i64], strides: &[i64], numel: i64) -> bool {
    if numel == 0 {
        return true;
    }
    let mut expected = 1;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size != 1 {
            if stride != expected {
                return false;
            }
            expected *= size;
        }
    }
    true
}

/// Row-major strides; an empty dimension counts as 1, and where there is one, no
/// stride matters and none grows past [`MAX_FIELD`].
///
/// # Errors
/// [`Error::InvalidArgument`] where the product of the sizes overflows 64 bits.
pub fn contiguous_strides(sizes: &[i64]) -> Result<Dims> {
    let empty = sizes.contains(&0);
    let mut strides = Dims::from_elem(1, sizes.len());
    let mut next = 1i64;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = next;
        next = match next.checked_mul(size.max(1)) {
            Some(next) if !empty => next,
            product if empty => product.unwrap_or(MAX_FIELD).min(MAX_FIELD),
            _ => return Err(overflow(sizes)),
        };
    }
    Ok(strides)
}

/// Element count and extent of a layout that may exist, or what is wrong with it.
fn check(sizes: &[i64], strides: &[i64], offset: i64) -> Result<(i64, i64)> {
    check_rank("ndim", sizes.len())?;
    if strides.len() != sizes.len() {
        return Err(Error::invalid(
            "strides",
            format_args!("{strides:?}"),
            format!("{} sizes need as many strides", sizes.len()),
        ));
    }
    check_fields("sizes", sizes)?;
    check_fields("strides", strides)?;
    if offset < 0 {
        return Err(Error::invalid("storage_offset", offset, "it is negative"));
    }
    let numel = count(sizes)?;
    let extent = extent_of(sizes, strides, numel)?;
    if offset.checked_add(extent).is_none() {
        return Err(Error::invalid(
            "storage_offset",
            offset,
            "offset and extent together overflow 64 bits",
        ));
    }
    Ok((numel, extent))
}

fn check_rank(argument: &'static str, rank: usize) -> Result<()> {
    if rank > MAX_DIMS {
        return Err(Error::invalid(argument, rank, format!("at most {MAX_DIMS} dimensions")));
    }
    Ok(())
}

fn check_fields(argument: &'static str, values: &[i64]) -> Result<()> {
    for (d, &value) in values.iter().enumerate() {
        if value < 0 {
            return Err(Error::invalid(
                argument,
                format_args!("{values:?}"),
                format!("[{d}] is negative"),
            ));
        }
    }
    // Only after all are known to be sane: an overflow of the product is the
    // caller's error, a merely large field is this library's limit.
    if let Some(&value) = values.iter().find(|&&value| value > MAX_FIELD) {
        if argument == "sizes" {
            count(values)?;
        }
        return Err(Error::NotSupported(format!(
            "{argument} {values:?}: {value} does not fit an ETensor's 32-bit field"
        )));
    }
    Ok(())
}

fn overflow(sizes: &[i64]) -> Error {
    Error::invalid("sizes", format_args!("{sizes:?}"), "their product overflows 64 bits")
}

fn count(sizes: &[i64]) -> Result<i64> {
    if sizes.contains(&0) {
        return Ok(0);
    }
    sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size)).ok_or_else(|| overflow(sizes))
}

fn extent_of(sizes: &[i64], strides: &[i64], numel: i64) -> Result<i64> {
    if numel == 0 {
        return Ok(0);
    }
    sizes
        .iter()
        .zip(strides)
        .try_fold(1i64, |end, (&size, &stride)| end.checked_add((size - 1).checked_mul(stride)?))
        .ok_or_else(|| {
            Error::invalid(
                "strides",
                format_args!("{strides:?}"),
                format!("with sizes {sizes:?} the extent overflows 64 bits"),
            )
        })
}

#[inline]
fn bytes_of(elements: i64, element_size: usize) -> Result<u64> {
    let bytes = i64::try_from(element_size).ok().and_then(|size| elements.checked_mul(size));
    match bytes.map(u64::try_from) {
        Some(Ok(bytes)) => Ok(bytes),
        _ => Err(too_many_bytes(elements, element_size)),
    }
}

#[cold]
fn too_many_bytes(elements: i64, element_size: usize) -> Error {
    Error::invalid(
        "sizes",
        format_args!("an extent of {elements} elements of {element_size} bytes"),
        "it overflows 64 bits",
    )
}

#[cfg(test)]
mod tests;
