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
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    sizes: Dims,
    strides: Dims,
    offset: i64,
    numel: i64,
    extent: i64,
}

impl Clone for Layout {
    // Every handle has a layout: copying the integers at once halves the cost of one.
    fn clone(&self) -> Self {
        Layout {
            sizes: Dims::from_slice(&self.sizes),
            strides: Dims::from_slice(&self.strides),
            ..*self
        }
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
        let (numel, extent) = check(sizes, strides, offset)?;
        Ok(Layout {
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            offset,
            numel,
            extent,
        })
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
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// Elements from one index to the next, a dimension.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Elements from the start of the storage to the first element.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> i64 {
        self.numel
    }

    /// Elements from the first to one past the last that is reached; 0 where there are none.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Elements from the start of the storage to one past the last that is reached.
    pub fn end(&self) -> i64 {
        if self.numel == 0 { self.offset } else { self.offset.saturating_add(self.extent) }
    }

    /// Bytes from the start of the storage to one past the last element's last byte.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where that overflows 64 bits.
    pub fn end_bytes(&self, element_size: usize) -> Result<u64> {
        let end = if self.numel == 0 { 0 } else { self.end() };
        bytes_of(end, element_size)
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
        if offset < 0 || offset.checked_add(self.extent).is_none() {
            return Err(Error::invalid(
                "storage_offset",
                offset,
                "it is negative, or overflows 64 bits with the extent",
            ));
        }
        Ok(Layout { offset, ..self.clone() })
    }

    /// Whether the elements lie in row-major order without holes. Strides of
    /// dimensions of size 1 do not matter, and a tensor without elements is contiguous.
    pub fn is_contiguous(&self) -> bool {
        if self.numel == 0 {
            return true;
        }
        let mut expected = 1;
        for (&size, &stride) in self.sizes.iter().zip(&self.strides).rev() {
            if size != 1 {
                if stride != expected {
                    return false;
                }
                expected *= size;
            }
        }
        true
    }

    /// Whether the elements fill the extent, in any order of the dimensions.
    pub fn is_packed(&self) -> bool {
        // Without overlap, as many elements as places means that every place is taken.
        self.numel == self.extent && (self.is_contiguous() || !self.overlaps())
    }

    /// Whether two elements may share a place. Exact for the layouts that slicing,
    /// permuting and expanding make; for others ({2,3} of strides {3,2}, say) "yes"
    /// can be wrong and "no" cannot, as in PyTorch's own test before a write.
    pub fn overlaps(&self) -> bool {
        if self.numel <= 1 {
            return false;
        }
        let mut reached = 0i64;
        for (size, stride) in self.by_stride() {
            if stride <= reached {
                return true;
            }
            reached = reached.saturating_add((size - 1).saturating_mul(stride));
        }
        false
    }

    /// Dimensions of more than one element as (size, stride), smallest stride first.
    fn by_stride(&self) -> SmallVec<[(i64, i64); 6]> {
        let mut dims: SmallVec<[(i64, i64); 6]> = self
            .sizes
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .filter(|&(size, _)| size > 1)
            .collect();
        dims.sort_unstable_by_key(|&(size, stride)| (stride, size));
        dims
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
                format_args!("of sizes {:?}", self.sizes.as_slice()),
                format!("it does not broadcast to {sizes:?}"),
            )
        };
        let lead = sizes.len().checked_sub(self.rank()).ok_or_else(refuse)?;
        let mut strides = Dims::from_elem(0, lead);
        for ((&want, &have), &stride) in sizes.iter().skip(lead).zip(&self.sizes).zip(&self.strides)
        {
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
            return Layout::contiguous(&self.sizes);
        }
        let mut order: SmallVec<[usize; 6]> = (0..self.rank()).collect();
        // Stable, outermost first: dimensions of equal stride keep their places.
        order.sort_by_key(|&d| std::cmp::Reverse(self.strides.get(d).copied().unwrap_or(0)));
        let mut strides = Dims::from_elem(1, self.rank());
        let mut next = 1i64;
        for &d in order.iter().rev() {
            if let (Some(stride), Some(&size)) = (strides.get_mut(d), self.sizes.get(d)) {
                *stride = next;
                next = next.saturating_mul(size.max(1));
            }
        }
        Layout::new(&self.sizes, &strides, 0)
    }
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

/// Element count and extent of a layout that may exist. Apart from [`Layout::new`], so that
/// that is small enough to be inlined and a layout is made where it stays.
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

fn bytes_of(elements: i64, element_size: usize) -> Result<u64> {
    let bytes = i64::try_from(element_size).ok().and_then(|size| elements.checked_mul(size));
    match bytes.map(u64::try_from) {
        Some(Ok(bytes)) => Ok(bytes),
        _ => Err(Error::invalid(
            "sizes",
            format_args!("an extent of {elements} elements of {element_size} bytes"),
            "it overflows 64 bits",
        )),
    }
}

#[cfg(test)]
mod tests;
