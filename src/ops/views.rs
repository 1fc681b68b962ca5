//! Views by shape, and `cat`.

use super::dense::{axis, relaid};
use crate::dtype::{DType, NumberKind};
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, contiguous_strides};
use crate::runtime::Runtime;
use crate::tensor::Tensor;

impl Runtime {
    /// `length` indices of `dim`, from `start` on, which counts from the end where it is
    /// negative.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where they are not there.
    pub fn narrow(&self, of: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let (axis, size) = dimension(of, dim)?;
        let from = if start < 0 { start.saturating_add(size) } else { start };
        if !(0..=size).contains(&from) {
            return Err(Error::invalid("start", start, format!("the dimension has {size}")));
        }
        if length < 0 || length > size - from {
            let reason = format!("from {from} on the dimension has {}", size - from);
            return Err(Error::invalid("length", length, reason));
        }
        self.part(of, axis, from, length, 1)
    }

    /// Every `step`-th index of `dim` from `start` to before `end`; both count from the
    /// end where negative, are cut to the dimension, and default to all of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dimension that is not there and a step below 1.
    pub fn slice(
        &self,
        of: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        let (axis, size) = dimension(of, dim)?;
        if step < 1 {
            return Err(Error::invalid("step", step, "it must be positive"));
        }
        let cut = |at: i64| {
            let at = if at < 0 { at.saturating_add(size) } else { at };
            at.clamp(0, size)
        };
        let from = cut(start.unwrap_or(0));
        let to = cut(end.unwrap_or(i64::MAX)).max(from);
        let length = (to - from) / step + i64::from((to - from) % step != 0);
        self.part(of, axis, from, length, step)
    }

    fn part(&self, of: &Tensor, axis: usize, from: i64, length: i64, step: i64) -> Result<Tensor> {
        let mut sizes: Dims = of.sizes().into();
        let mut strides: Dims = of.layout.strides().into();
        let mut increment = 0;
        if let (Some(size), Some(stride)) = (sizes.get_mut(axis), strides.get_mut(axis)) {
            increment = from.saturating_mul(*stride);
            *size = length;
            // A single index needs no stride, and a large one might not be held.
            if length > 1 {
                *stride = stride.saturating_mul(step);
            }
        }
        self.view(of, &sizes, &strides, increment)
    }

    /// The dimensions in another order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where `dims` is no order of all dimensions.
    pub fn permute(&self, of: &Tensor, dims: &[i64]) -> Result<Tensor> {
        let rank = of.layout.rank();
        let refuse = || {
            let reason = format!("an order of {rank} dimensions is expected");
            Error::invalid("dims", format_args!("{dims:?}"), reason)
        };
        if dims.len() != rank {
            return Err(refuse());
        }
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        let mut seen = vec![false; rank];
        for &dim in dims {
            let from = axis(dim, rank)?;
            match seen.get_mut(from) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(refuse()),
            }
            sizes.extend(of.sizes().get(from).copied());
            strides.extend(of.layout.strides().get(from).copied());
        }
        self.view(of, &sizes, &strides, 0)
    }

    /// The same elements in another shape, where one size may be -1: a view where strides
    /// can express it, and a contiguous copy otherwise.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a shape of another number of elements.
    pub fn reshape(&self, of: &Tensor, shape: &[i64]) -> Result<Tensor> {
        let sizes = inferred(shape, of.numel())?;
        match strides_of(&of.layout, &sizes) {
            Some(strides) => self.view(of, &sizes, &strides, 0),
            None => {
                let copy = self.empty(Layout::contiguous(of.sizes())?, of.dtype, of.device())?;
                self.copy(&copy, of, true)?;
                relaid(&copy, Layout::contiguous(&sizes)?)
            }
        }
    }

    /// Without dimension `dim` where its size is 1, and as it is otherwise.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dimension that is not there.
    pub fn squeeze(&self, of: &Tensor, dim: i64) -> Result<Tensor> {
        let axis = axis(dim, of.layout.rank())?;
        let mut sizes: Dims = of.sizes().into();
        let mut strides: Dims = of.layout.strides().into();
        if sizes.get(axis) == Some(&1) {
            sizes.remove(axis);
            strides.remove(axis);
        }
        self.view(of, &sizes, &strides, 0)
    }

    /// The same bytes as elements of another type. Where these are of another size, so is
    /// the last dimension, which lies without gaps.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where sizes, strides or the offset are no multiples.
    pub fn view_dtype(&self, of: &Tensor, dtype: DType) -> Result<Tensor> {
        let (from, to) = (of.dtype.size() as i64, dtype.size() as i64);
        let refuse = |reason: String| {
            let found = format!(
                "of sizes {:?}, strides {:?} and {}",
                of.sizes(),
                of.layout.strides(),
                of.dtype
            );
            Error::invalid("self", found, format!("as {dtype}: {reason}"))
        };
        let mut sizes: Dims = of.sizes().into();
        let mut strides: Dims = of.layout.strides().into();
        if from != to {
            let (Some(size), Some(stride)) = (sizes.last_mut(), strides.pop()) else {
                return Err(refuse("a scalar has no dimension to change".into()));
            };
            if stride != 1 && *size != 1 {
                return Err(refuse("the last dimension has gaps".into()));
            }
            let bytes = size.saturating_mul(from);
            if bytes % to != 0 {
                return Err(refuse(format!("rows of {bytes} bytes hold no whole elements")));
            }
            *size = bytes / to;
            for stride in &mut strides {
                let bytes = stride.saturating_mul(from);
                if bytes % to != 0 {
                    return Err(refuse(format!("a stride of {bytes} bytes is no multiple")));
                }
                *stride = bytes / to;
            }
            strides.push(1);
        }
        let offset = of.layout.offset().saturating_mul(from);
        let plain = self.view_bytes(of, offset, dtype, &sizes, &strides)?;
        self.view(&plain, &sizes, &strides, 0)
    }

    /// PyTorch's `cat`: the tensors one after another along `dim`, of the type that all
    /// promote to. Tensors of sizes `[0]` are left out. The result is contiguous, and
    /// channels-last where all tensors are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no tensors and sizes that differ elsewhere;
    /// [`Error::NotSupported`] for types that do not promote.
    pub fn cat(&self, tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        let Some(&any) = tensors.first() else {
            return Err(Error::invalid("tensors", "empty", "at least one is needed"));
        };
        let mut dtype = any.dtype;
        for tensor in tensors {
            dtype = promoted(dtype, tensor.dtype)?;
        }
        let parts: Vec<&Tensor> = tensors.iter().copied().filter(|t| t.sizes() != [0]).collect();
        let Some(&first) = parts.first() else {
            return self.empty(Layout::contiguous(&[0])?, dtype, any.device());
        };
        if first.layout.rank() == 0 {
            return Err(Error::invalid("tensors", "a scalar", "cat needs a dimension"));
        }
        let axis = axis(dim, first.layout.rank())?;
        let mut sizes: Dims = first.sizes().into();
        let mut total = 0i64;
        for part in &parts {
            let same = part.layout.rank() == sizes.len()
                && (part.sizes().iter().zip(&sizes).enumerate())
                    .all(|(d, (a, b))| d == axis || a == b);
            if !same {
                let found = format!("of sizes {:?} and {:?}", first.sizes(), part.sizes());
                return Err(Error::invalid("tensors", found, "they differ elsewhere too"));
            }
            total = total.saturating_add(part.sizes().get(axis).copied().unwrap_or(0));
        }
        if let Some(size) = sizes.get_mut(axis) {
            *size = total;
        }
        let mut layout = Layout::contiguous(&sizes)?;
        if parts.iter().all(|part| is_channels_last(&part.layout))
            && let &[_, c, h, w] = sizes.as_slice()
        {
            layout = Layout::new(&sizes, &[h * w * c, 1, w * c, c], 0)?;
        }
        let out = self.empty(layout, dtype, first.device())?;
        let mut at = 0i64;
        for part in parts {
            let stride = out.layout.strides().get(axis).copied().unwrap_or(0);
            let offset = at.saturating_mul(stride);
            let place = Layout::new(part.sizes(), out.layout.strides(), offset)?;
            if part.numel() > 0 {
                self.copy(&relaid(&out, place)?, part, true)?;
            }
            at += part.sizes().get(axis).copied().unwrap_or(0);
        }
        Ok(out)
    }
}

/// A dimension that a tensor has, and its size.
fn dimension(of: &Tensor, dim: i64) -> Result<(usize, i64)> {
    let axis = axis(dim, of.layout.rank())?;
    match of.sizes().get(axis) {
        Some(&size) => Ok((axis, size)),
        None => Err(Error::invalid("self", "a scalar", "it has no dimension to slice")),
    }
}

fn is_channels_last(layout: &Layout) -> bool {
    let (&[n, c, h, w], &[a, b, y, x]) = (layout.sizes(), layout.strides()) else { return false };
    !layout.is_contiguous()
        && Layout::new(&[n, h, w, c], &[a, y, x, b], 0).is_ok_and(|last| last.is_contiguous())
}

/// The shape with its -1 replaced.
fn inferred(shape: &[i64], numel: i64) -> Result<Dims> {
    let refuse = |reason: &str| {
        let reason = format!("for {numel} elements {reason}");
        Error::invalid("shape", format_args!("{shape:?}"), reason)
    };
    let mut sizes: Dims = shape.into();
    let mut known = 1i64;
    let mut open = None;
    for (d, &size) in shape.iter().enumerate() {
        match size {
            -1 if open.is_none() => open = Some(d),
            ..0 => return Err(refuse("one size may be -1, and none less")),
            _ => {
                known = known.checked_mul(size).ok_or_else(|| refuse("its product overflows"))?;
            }
        }
    }
    if let Some(size) = open.and_then(|d| sizes.get_mut(d)) {
        if known == 0 || numel % known != 0 {
            return Err(refuse("the size of -1 is not known"));
        }
        *size = numel / known;
    } else if known != numel {
        return Err(refuse("its product is another"));
    }
    Ok(sizes)
}

/// The strides of a view of other sizes, where there are such: runs of dimensions that
/// lie without gaps, each taken apart into the new sizes.
fn strides_of(layout: &Layout, sizes: &[i64]) -> Option<Dims> {
    if layout.numel() == 0 {
        return contiguous_strides(sizes).ok();
    }
    let mut strides = Dims::from_elem(1, sizes.len());
    let mut to = (0..sizes.len()).rev().peekable();
    let own: Vec<(i64, i64)> = layout
        .sizes()
        .iter()
        .copied()
        .zip(layout.strides().iter().copied())
        .filter(|&(size, _)| size != 1)
        .collect();
    let mut from = own.iter().rev().peekable();
    while let Some(&(size, stride)) = from.next() {
        let mut run = size;
        while let Some(&&(size, next)) = from.peek() {
            if Some(next) != run.checked_mul(stride) {
                break;
            }
            run = run.checked_mul(size)?;
            from.next();
        }
        let mut taken = 1i64;
        while taken < run {
            let d = to.next()?;
            *strides.get_mut(d)? = taken.checked_mul(stride)?;
            taken = taken.checked_mul(*sizes.get(d)?)?;
        }
        if taken != run {
            return None;
        }
    }
    // What is left is of size 1.
    for d in to {
        let after = strides.get(d + 1).copied().unwrap_or(1);
        let size = sizes.get(d + 1).copied().unwrap_or(1);
        *strides.get_mut(d)? = after.checked_mul(size)?;
    }
    Some(strides)
}

/// The type that two promote to, as PyTorch's `promote_types`.
fn promoted(a: DType, b: DType) -> Result<DType> {
    use NumberKind::{Bool, Float, Integer};
    if a == b {
        return Ok(a);
    }
    let larger = if a.size() >= b.size() { a } else { b };
    let signed = |size: usize| match size {
        1 => Some(DType::I16),
        2 => Some(DType::I32),
        4 => Some(DType::I64),
        _ => None,
    };
    let found = match (a.number_kind(), b.number_kind()) {
        (Some(Bool), Some(_)) => Some(b),
        (Some(_), Some(Bool)) => Some(a),
        (Some(Float), Some(Integer { .. })) => Some(a),
        (Some(Integer { .. }), Some(Float)) => Some(b),
        (Some(Float), Some(Float)) if a.size() == b.size() => Some(DType::F32),
        (Some(Float), Some(Float)) => Some(larger),
        (Some(Integer { signed: x }), Some(Integer { signed: y })) if x == y => Some(larger),
        (Some(Integer { signed: x }), Some(Integer { .. })) => {
            let (signed_one, other) = if x { (a, b) } else { (b, a) };
            if signed_one.size() > other.size() { Some(signed_one) } else { signed(other.size()) }
        }
        _ => None,
    };
    found.ok_or_else(|| Error::NotSupported(format!("cat: tensors of {a} and {b} together")))
}
