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

/// What a pair of layouts is joined for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Copy,
    /// The source is a pattern that repeats itself.
    Fill,
    /// Elements are handled one by one.
    Walk,
}

/// A pair of layouts, ready to be copied. Plain data, no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyPlan {
    form: Form,
    unit: u64,
    run: u64,
    /// What is read for a run; other than `run` where element types differ.
    src_run: u64,
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
            return Err(sizes_differ(dst, src));
        }
        Self::build((dst, dst_base, element), Some((src, src_base, element)), Purpose::Copy)
    }

    /// The plan that fills `dst` from a source of [`MAX_UNIT`] bytes that holds the
    /// element's bytes over and over.
    ///
    /// # Errors
    /// As [`CopyPlan::new`].
    pub fn fill(dst: &Layout, dst_base: u64, element: usize) -> Result<Self> {
        Self::build((dst, dst_base, element), None, Purpose::Fill)
    }

    /// How elements of two sizes are walked together: `dst` and `src` as (layout, base in
    /// bytes, bytes an element). The run is one element.
    pub(super) fn walk_of(dst: (&Layout, u64, usize), src: (&Layout, u64, usize)) -> Result<Self> {
        if src.0.sizes() != dst.0.sizes() {
            return Err(sizes_differ(dst.0, src.0));
        }
        Self::build(dst, Some(src), Purpose::Walk)
    }

    fn build(
        (dst, dst_base, element): (&Layout, u64, usize),
        src: Option<(&Layout, u64, usize)>,
        purpose: Purpose,
    ) -> Result<Self> {
        let src_element = src.map_or(element, |(_, _, size)| size);
        for size in [element, src_element] {
            if !matches!(size, 1 | 2 | 4 | 8 | 16) {
                return Err(Error::invalid("element size", size, "it is not 1, 2, 4, 8 or 16"));
            }
        }
        let mut plan = CopyPlan {
            form: Form::Empty,
            unit: element as u64,
            run: element as u64,
            src_run: src_element as u64,
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
        let end = |layout: &Layout, base: u64, size: usize| {
            layout.end_bytes(size)?.checked_add(base).ok_or_else(|| {
                Error::invalid("storage_offset", base, "with the extent it overflows 64 bits")
            })
        };
        // Both ends fit in 64 bits, so every product below does.
        plan.dst_end = end(dst, dst_base, element)?;
        plan.dst = dst_base + dst.offset() as u64 * element as u64;
        match src {
            Some((src, src_base, _)) => {
                plan.src_end = end(src, src_base, src_element)?;
                plan.src = src_base + src.offset() as u64 * src_element as u64;
            }
            None => plan.src_end = MAX_UNIT,
        }
        for (d, (&size, &stride)) in dst.sizes().iter().zip(dst.strides()).enumerate() {
            if size > 1 {
                let from = src.and_then(|(src, _, _)| src.strides().get(d)).copied().unwrap_or(0);
                plan.insert(Dim {
                    size: size as u64,
                    dst: stride as u64 * element as u64,
                    src: from as u64 * src_element as u64,
                });
            }
        }
        plan.merge(element as u64, purpose);
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
    fn merge(&mut self, element: u64, purpose: Purpose) {
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
        if purpose == Purpose::Walk {
            return;
        }
        let fill = purpose == Purpose::Fill;
        if let Some(&inner) = self.dims().last()
            && inner.dst == self.run
            && (inner.src == self.run || fill)
        {
            self.run *= inner.size;
            self.rank -= 1;
        }
        self.src_run = self.run;
        self.set_unit();
        // A filled run is so many steps from one place. A step is no less than an element,
        // which a base off the element's alignment makes more than a unit.
        let step = self.unit.max(element);
        if fill && self.run > step {
            self.insert(Dim { size: self.run / step, dst: step, src: 0 });
            self.run = step;
            self.src_run = step;
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

    /// Whether the destination is one contiguous range, written in order.
    pub fn is_packed(&self) -> bool {
        let mut expected = self.run;
        self.dims().iter().rev().all(|d| {
            let fits = d.dst == expected;
            expected = d.dst * d.size;
            fits
        })
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
            let extent = |run: u64, stride: fn(&Dim) -> u64| {
                inner.iter().map(|d| (d.size - 1) * stride(d)).sum::<u64>() + run
            };
            let dst = extent(self.run, |d| d.dst);
            let src = extent(self.src_run, |d| d.src);
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

    /// Two plans that together are this one, cut in the middle of dimension `axis`.
    pub(super) fn halves(&self, axis: usize) -> (CopyPlan, CopyPlan) {
        self.split_at(axis, self.dims().get(axis).map_or(0, |d| d.size / 2))
    }

    /// The same, cut before index `at`.
    pub(super) fn split_at(&self, axis: usize, at: u64) -> (CopyPlan, CopyPlan) {
        let size = self.dims().get(axis).map_or(0, |d| d.size);
        (self.part(axis, 0, at), self.part(axis, at, size - at))
    }

    /// Indices `first` to `first + count` of dimension `axis`.
    fn part(&self, axis: usize, first: u64, count: u64) -> CopyPlan {
        let mut part = *self;
        if let Some(dim) = part.dims.get_mut(axis) {
            part.dst += first * dim.dst;
            part.src += first * dim.src;
            dim.size = count;
        }
        if count == 1 {
            if let Some(tail) = part.dims.get_mut(axis..self.rank) {
                tail.rotate_left(1);
            }
            part.rank -= 1;
            part.classify();
        }
        part.set_ends();
        part
    }

    /// Two plans that together are this one, cut in the middle of the run; none where
    /// the run is no more than one unit.
    pub(super) fn halves_of_run(&self) -> Option<(CopyPlan, CopyPlan)> {
        let middle = (self.run / 2).next_multiple_of(MAX_UNIT.min(self.run / 2).max(self.unit));
        (middle < self.run)
            .then(|| (self.part_of_run(0, middle), self.part_of_run(middle, self.run - middle)))
    }

    /// A contiguous plan in two: as many bytes as the widest unit divides, and the
    /// rest. None where that gains nothing.
    pub(super) fn split_off_tail(&self) -> Option<(CopyPlan, CopyPlan)> {
        let aligned = (self.dst | self.src).is_multiple_of(MAX_UNIT);
        let wide = self.run / MAX_UNIT * MAX_UNIT;
        (self.rank == 0 && aligned && self.unit < MAX_UNIT && wide > 0)
            .then(|| (self.part_of_run(0, wide), self.part_of_run(wide, self.run - wide)))
    }

    fn part_of_run(&self, first: u64, bytes: u64) -> CopyPlan {
        let mut part = *self;
        part.dst += first;
        part.src += first;
        part.run = bytes;
        part.src_run = bytes;
        part.set_unit();
        part.classify();
        part.set_ends();
        part
    }

    fn set_unit(&mut self) {
        let bits =
            self.dims().iter().fold(self.dst | self.src | self.run, |bits, d| bits | d.dst | d.src);
        self.unit = 1 << bits.trailing_zeros().min(MAX_UNIT.trailing_zeros());
    }

    fn set_ends(&mut self) {
        self.dst_end = self.dst + self.run;
        self.src_end = self.src + self.src_run;
        for &Dim { size, dst, src } in self.dims.iter().take(self.rank) {
            self.dst_end += (size - 1) * dst;
            self.src_end += (size - 1) * src;
        }
    }
}

impl std::fmt::Debug for CopyPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyPlan")
            .field("form", &self.form)
            .field("unit", &self.unit)
            .field("run", &self.run)
            .field("dst", &(self.dst..self.dst_end))
            .field("src", &(self.src..self.src_end))
            .field("dims", &self.dims())
            .finish()
    }
}

fn sizes_differ(dst: &Layout, src: &Layout) -> Error {
    Error::invalid(
        "src",
        format_args!("of sizes {:?}", src.sizes()),
        format!("the destination's are {:?}", dst.sizes()),
    )
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
pub(super) mod tests;
