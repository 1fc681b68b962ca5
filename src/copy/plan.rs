//! What is to be copied, with everything that does not matter taken out.
//!
//! A [`CopyPlan`] is made from a destination and a source layout of equal sizes.
//! Dimensions of size 1 go; the others are sorted so that the destination is walked
//! in the order of its addresses; neighbours that both sides walk alike are merged;
//! and what is contiguous on both sides becomes the *run*, a number of bytes that is
//! moved as one. The *unit* is the largest power of two, up to [`MAX_UNIT`] bytes,
//! that divides the run and every offset and stride: 32 `u8` at aligned offsets are
//! two units of 16 bytes. From here on nobody asks for an element type.
//!
//! All lengths and strides of a plan are in bytes.

use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_DIMS};

/// The widest unit, in bytes: a `vec4<u32>`.
pub const MAX_UNIT: u64 = 16;

/// Below this many elements along either axis a transpose through tiles wastes
/// more lanes than the strided reads of the plain walk cost.
const MIN_TRANSPOSE: u64 = 8;

/// One dimension that is walked: `size` runs, `dst` and `src` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dim {
    /// How many; at least 2 in a plan.
    pub size: u64,
    /// Bytes from one to the next in the destination.
    pub dst: u64,
    /// Bytes from one to the next in the source; 0 where the source is expanded.
    pub src: u64,
}

/// The kind of work, which decides who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// No elements.
    Empty,
    /// One run.
    Contiguous,
    /// Runs of more than one unit.
    Runs,
    /// Single units, the source expanded along the innermost dimension.
    Splat,
    /// Single units; the source is walked along dimension `axis` in the order of
    /// its addresses, the destination along the innermost one.
    Transpose {
        /// Index into [`CopyPlan::dims`].
        axis: usize,
    },
    /// Single units at any strides.
    Elements,
}

/// A pair of layouts, ready to be copied. Plain data, no allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyPlan {
    form: Form,
    unit: u64,
    run: u64,
    dst: u64,
    src: u64,
    dst_end: u64,
    src_end: u64,
    rank: usize,
    dims: [Dim; MAX_DIMS],
}

impl CopyPlan {
    /// The plan that copies `src` to `dst`, of `element` bytes each; `src` already
    /// has `dst`'s sizes ([`Layout::broadcast_to`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the sizes differ, elements of `dst` share a
    /// place, `element` is not 1, 2, 4, 8 or 16, or an end overflows 64 bits.
    pub fn new(dst: &Layout, src: &Layout, element: usize) -> Result<Self> {
        Self::at(dst, 0, src, 0, element)
    }

    /// As [`CopyPlan::new`], with each layout `dst_base` and `src_base` bytes into
    /// its memory. The bases need not be multiples of the element.
    ///
    /// # Errors
    /// As [`CopyPlan::new`].
    pub fn at(
        dst: &Layout,
        dst_base: u64,
        src: &Layout,
        src_base: u64,
        element: usize,
    ) -> Result<Self> {
        if src.sizes() != dst.sizes() {
            return Err(Error::invalid(
                "src",
                format_args!("of sizes {:?}", src.sizes()),
                format!("the destination's are {:?}", dst.sizes()),
            ));
        }
        Self::build(dst, dst_base, element, Some(src), src_base)
    }

    /// The plan that fills `dst` from a source of [`MAX_UNIT`] bytes that holds the
    /// element's bytes over and over.
    ///
    /// # Errors
    /// As [`CopyPlan::new`].
    pub fn fill(dst: &Layout, dst_base: u64, element: usize) -> Result<Self> {
        Self::build(dst, dst_base, element, None, 0)
    }

    fn build(
        dst: &Layout,
        dst_base: u64,
        element: usize,
        src: Option<&Layout>,
        src_base: u64,
    ) -> Result<Self> {
        if !matches!(element, 1 | 2 | 4 | 8 | 16) {
            return Err(Error::invalid("element size", element, "it is not 1, 2, 4, 8 or 16"));
        }
        let mut plan = CopyPlan {
            form: Form::Empty,
            unit: element as u64,
            run: element as u64,
            dst: 0,
            src: 0,
            dst_end: 0,
            src_end: 0,
            rank: 0,
            dims: [Dim::default(); MAX_DIMS],
        };
        if dst.numel() == 0 {
            return Ok(plan);
        }
        if dst.overlaps() {
            return Err(Error::invalid(
                "self",
                format_args!("of sizes {:?} and strides {:?}", dst.sizes(), dst.strides()),
                "elements of the destination share a place",
            ));
        }
        let end = |layout: &Layout, base: u64| {
            layout.end_bytes(element)?.checked_add(base).ok_or_else(|| {
                Error::invalid("storage_offset", base, "with the extent it overflows 64 bits")
            })
        };
        // Both ends fit in 64 bits, so every product below does.
        plan.dst_end = end(dst, dst_base)?;
        plan.dst = dst_base + dst.offset() as u64 * element as u64;
        match src {
            Some(src) => {
                plan.src_end = end(src, src_base)?;
                plan.src = src_base + src.offset() as u64 * element as u64;
            }
            None => plan.src_end = MAX_UNIT,
        }
        for (d, (&size, &stride)) in dst.sizes().iter().zip(dst.strides()).enumerate() {
            if size > 1 {
                let from = src.and_then(|src| src.strides().get(d)).copied().unwrap_or(0);
                plan.insert(Dim {
                    size: size as u64,
                    dst: stride as u64 * element as u64,
                    src: from as u64 * element as u64,
                });
            }
        }
        plan.merge(element as u64, src.is_none());
        plan.classify();
        Ok(plan)
    }

    /// Adds a dimension where the destination's order wants it, outermost first.
    fn insert(&mut self, dim: Dim) {
        let at = self.dims().iter().position(|d| (d.dst, d.src) < (dim.dst, dim.src));
        let at = at.unwrap_or(self.rank);
        self.rank += 1;
        if let Some(tail) = self.dims.get_mut(at..self.rank) {
            tail.rotate_right(1);
            if let Some(first) = tail.first_mut() {
                *first = dim;
            }
        }
    }

    /// Joins what is walked alike, and takes the run off the inner end.
    fn merge(&mut self, element: u64, fill: bool) {
        let mut merged = [Dim::default(); MAX_DIMS];
        let mut kept = 0usize;
        for &dim in self.dims() {
            if let Some(outer) = kept.checked_sub(1).and_then(|last| merged.get_mut(last))
                && outer.dst == dim.dst * dim.size
                && outer.src == dim.src * dim.size
            {
                *outer = Dim { size: outer.size * dim.size, ..dim };
                continue;
            }
            if let Some(slot) = merged.get_mut(kept) {
                *slot = dim;
                kept += 1;
            }
        }
        (self.dims, self.rank) = (merged, kept);
        if let Some(&inner) = self.dims().last()
            && inner.dst == self.run
            && (inner.src == self.run || fill)
        {
            self.run *= inner.size;
            self.rank -= 1;
        }
        let misaligned =
            self.dims().iter().fold(self.dst | self.src | self.run, |bits, d| bits | d.dst | d.src);
        self.unit = 1 << misaligned.trailing_zeros().min(MAX_UNIT.trailing_zeros());
        // A filled run is so many steps from one place. A step is no less than an element,
        // which a base off the element's alignment makes more than a unit.
        let step = self.unit.max(element);
        if fill && self.run > step {
            self.insert(Dim { size: self.run / step, dst: step, src: 0 });
            self.run = step;
        }
    }

    fn classify(&mut self) {
        let Some((inner, outer)) = self.dims().split_last() else {
            self.form = Form::Contiguous;
            return;
        };
        self.form = if self.run > self.unit {
            Form::Runs
        } else if inner.src == 0 {
            Form::Splat
        } else {
            // The axis along which the source's addresses grow slowest.
            let axis =
                outer.iter().enumerate().filter(|(_, d)| d.src > 0).min_by_key(|(_, d)| d.src);
            match axis {
                Some((axis, across))
                    if across.src < inner.src && across.size.min(inner.size) >= MIN_TRANSPOSE =>
                {
                    Form::Transpose { axis }
                }
                _ => Form::Elements,
            }
        };
    }

    /// The kind of work.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Bytes that are moved as one: 1, 2, 4, 8 or 16. Every offset, stride and run
    /// of the plan is a multiple.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Bytes that are contiguous on both sides.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The dimensions around the run, outermost in the destination first.
    pub fn dims(&self) -> &[Dim] {
        self.dims.get(..self.rank).unwrap_or_default()
    }

    /// Bytes from the start of the destination's memory to its first element.
    pub fn dst(&self) -> u64 {
        self.dst
    }

    /// Bytes from the start of the source's memory to its first element.
    pub fn src(&self) -> u64 {
        self.src
    }

    /// Bytes from the start of the destination's memory to one past the last byte written.
    pub fn dst_end(&self) -> u64 {
        self.dst_end
    }

    /// Bytes from the start of the source's memory to one past the last byte read.
    pub fn src_end(&self) -> u64 {
        self.src_end
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        match self.form {
            Form::Empty => 0,
            _ => self.dims().iter().map(|d| d.size).product::<u64>() * self.run,
        }
    }

    /// Whether source and destination, in one storage, are the same bytes in the
    /// same order, so that there is nothing to do.
    pub fn is_identity(&self) -> bool {
        self.dst == self.src && self.dims().iter().all(|d| d.dst == d.src)
    }

    /// Whether source and destination, in one storage, may share a byte. "No" is
    /// certain; "yes" is exact for the views that slicing makes, such as two column
    /// ranges of one matrix.
    pub fn overlaps(&self) -> bool {
        if self.form == Form::Empty || self.dst_end <= self.src || self.src_end <= self.dst {
            return false;
        }
        // With every stride of the outer dimensions a multiple of `period`, only the
        // inner extents' places within a period matter.
        let mut period = 0;
        for outer in 0..=self.rank {
            let (around, inner) = self.dims().split_at(outer);
            if let Some(dim) = around.last() {
                period = gcd(period, gcd(dim.dst, dim.src));
            }
            let extent = |stride: fn(&Dim) -> u64| {
                inner.iter().map(|d| (d.size - 1) * stride(d)).sum::<u64>() + self.run
            };
            let (dst, src) = (extent(|d| d.dst), extent(|d| d.src));
            if period > 0 && dst <= period && src <= period {
                let ahead = (self.src % period + period - self.dst % period) % period;
                // The source begins `ahead` bytes after the destination, in a circle.
                if ahead >= dst && ahead + src <= period {
                    return false;
                }
            }
        }
        true
    }

    /// The same plan for `count` indices of dimension `axis` from `first`; a plan of
    /// its own only in its extent, its unit and dimensions stay.
    pub(crate) fn part(&self, axis: usize, first: u64, count: u64) -> CopyPlan {
        let mut part = *self;
        if let Some(dim) = part.dims.get_mut(axis) {
            part.dst += first * dim.dst;
            part.src += first * dim.src;
            dim.size = count;
        }
        part.set_ends();
        part
    }

    /// `bytes` of the run from byte `first`, a multiple of the unit.
    pub(crate) fn part_of_run(&self, first: u64, bytes: u64) -> CopyPlan {
        let mut part = *self;
        part.dst += first;
        part.src += first;
        part.run = bytes;
        part.set_ends();
        part
    }

    fn set_ends(&mut self) {
        self.dst_end = self.dst + self.run;
        self.src_end = self.src + self.run;
        for &Dim { size, dst, src } in self.dims.iter().take(self.rank) {
            self.dst_end += (size - 1) * dst;
            self.src_end += (size - 1) * src;
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
