//! Tensors that ExecuTorch made: ETensors over host memory, not handles of ours.
//!
//! The delegate passes its own `etensor::Tensor*` where a handle goes: to `copy_` on
//! both sides, to `clone` and to the getters. Such a tensor is read field by field,
//! checked, and wrapped as a blob of host memory for the length of one call. That the
//! address is one of an ETensor at all is the caller's promise; without the feature
//! `executorch` nothing is read and every such address is refused.

#[cfg(feature = "executorch")]
use super::etensor::TensorImpl;
use super::handle::AtenTensorHandle;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
#[cfg(feature = "executorch")]
use crate::layout::{Dims, MAX_DIMS};
use crate::runtime::Runtime;
use crate::tensor::{DeviceType, Tensor};
#[cfg(feature = "executorch")]
use std::sync::atomic::Ordering;

/// What was read of an ETensor.
pub(super) struct Foreign {
    pub(super) layout: Layout,
    pub(super) dtype: DType,
    pub(super) data: *mut u8,
}

impl Foreign {
    /// The tensor for one call.
    ///
    /// # Safety
    /// The ETensor's memory stays valid while the result, or a view of it, lives.
    pub(super) unsafe fn tensor(&self) -> Result<Tensor> {
        if self.data.is_null() && self.layout.numel() != 0 {
            return Err(Error::invalid("data_", "null", "the ETensor has no memory yet"));
        }
        let (layout, dtype) = (self.layout.clone(), self.dtype);
        // SAFETY: an ETensor's memory holds its elements, and lives long enough by
        // this function's contract.
        unsafe { Runtime::global().blob(self.data, layout, dtype, DeviceType::Cpu) }
    }
}

#[cfg(not(feature = "executorch"))]
pub(super) unsafe fn read(argument: &'static str, handle: AtenTensorHandle) -> Result<Foreign> {
    Err(Error::invalid(
        argument,
        format_args!("{handle:p}"),
        "this library did not make this handle, and was built without the feature `executorch`",
    ))
}

/// Reads the ETensor at an address that lies in no slab.
///
/// # Errors
/// [`Error::InvalidArgument`] where its fields cannot be those of a tensor.
///
/// # Safety
/// `handle` points to an `etensor::Tensor`, or to a null pointer.
#[cfg(feature = "executorch")]
pub(super) unsafe fn read(argument: &'static str, handle: AtenTensorHandle) -> Result<Foreign> {
    let refuse =
        |reason: &'static str| Error::invalid(argument, format_args!("{handle:p}"), reason);
    let pointer = handle.cast::<*const TensorImpl>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(refuse("neither a handle of this library nor the address of an ETensor"));
    }
    // SAFETY: aligned, and readable by this function's contract.
    let tensor_impl = unsafe { pointer.read() };
    if tensor_impl.is_null() {
        return Err(refuse("the ETensor's impl_ is null"));
    }
    if !tensor_impl.is_aligned() {
        return Err(refuse("the ETensor's impl_ is not aligned"));
    }
    // SAFETY: an ETensor's pointer leads to its impl, which nothing changes while a
    // call uses the tensor, its data pointer apart, which is read atomically.
    let tensor_impl = unsafe { &*tensor_impl };
    let rank = usize::try_from(tensor_impl.dim)
        .ok()
        .filter(|&rank| rank <= MAX_DIMS)
        .ok_or_else(|| refuse("the ETensor's dim_ is not between 0 and 16"))?;
    if rank > 0 && (tensor_impl.sizes.is_null() || !tensor_impl.sizes.is_aligned()) {
        return Err(refuse("the ETensor's sizes_ is null or not aligned"));
    }
    let at = |array: *mut i32, d: usize| -> i64 {
        // SAFETY: an ETensor's arrays have `dim_` entries.
        i64::from(unsafe { array.add(d).read() })
    };
    let sizes: Dims = (0..rank).map(|d| at(tensor_impl.sizes, d)).collect();
    let layout = if tensor_impl.strides.is_null() {
        // SAFETY: the rank is the ETensor's own.
        match unsafe { dim_order(tensor_impl, rank) } {
            Some(order) => ordered(&sizes, &order).ok_or_else(|| {
                refuse("the ETensor's dim_order_ is not an order of its dimensions")
            })??,
            None => Layout::contiguous(&sizes)?,
        }
    } else if tensor_impl.strides.is_aligned() {
        let strides: Dims = (0..rank).map(|d| at(tensor_impl.strides, d)).collect();
        Layout::new(&sizes, &strides, 0)?
    } else {
        return Err(refuse("the ETensor's strides_ is not aligned"));
    };
    if i64::try_from(tensor_impl.numel) != Ok(layout.numel()) {
        return Err(refuse("the ETensor's numel_ is not the product of its sizes_"));
    }
    let dtype = DType::from_code(i32::from(tensor_impl.scalar_type))?;
    let data = tensor_impl.data.load(Ordering::Relaxed).cast();
    Ok(Foreign { layout, dtype, data })
}

/// # Safety
/// A dimension order that is not null has `rank` entries.
#[cfg(feature = "executorch")]
unsafe fn dim_order(tensor_impl: &TensorImpl, rank: usize) -> Option<smallvec::SmallVec<[u8; 6]>> {
    if tensor_impl.dim_order.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    Some((0..rank).map(|d| unsafe { tensor_impl.dim_order.add(d).read() }).collect())
}

/// The layout without holes whose dimensions lie in memory in this order, outermost
/// first; `None` where it is not an order of them.
#[cfg(feature = "executorch")]
fn ordered(sizes: &[i64], order: &[u8]) -> Option<Result<Layout>> {
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut next = 1i64;
    for &d in order.iter().rev() {
        let d = usize::from(d);
        let (stride, &size) = (strides.get_mut(d)?, sizes.get(d)?);
        if *stride != 0 {
            return None;
        }
        *stride = next;
        next = next.checked_mul(size.max(1))?;
    }
    Some(Layout::new(sizes, &strides, 0))
}

#[cfg(all(test, feature = "executorch"))]
mod tests {
    use super::*;

    struct ETensor {
        sizes: Vec<i32>,
        strides: Option<Vec<i32>>,
        order: Option<Vec<u8>>,
        dim: isize,
        numel: isize,
        scalar_type: i8,
    }

    impl ETensor {
        fn new(sizes: &[i32], strides: Option<&[i32]>, order: Option<&[u8]>) -> Self {
            ETensor {
                sizes: sizes.to_vec(),
                strides: strides.map(<[i32]>::to_vec),
                order: order.map(<[u8]>::to_vec),
                dim: sizes.len() as isize,
                numel: sizes.iter().map(|&size| size as isize).product(),
                scalar_type: 6,
            }
        }

        fn read(&mut self) -> Result<Foreign> {
            let null = std::ptr::null_mut;
            let tensor_impl = TensorImpl {
                sizes: self.sizes.as_mut_ptr(),
                strides: self.strides.as_mut().map_or(null(), |s| s.as_mut_ptr()),
                dim_order: self.order.as_mut().map_or(std::ptr::null_mut(), |o| o.as_mut_ptr()),
                dim: self.dim,
                numel: self.numel,
                scalar_type: self.scalar_type,
                ..TensorImpl::empty()
            };
            let mut tensor: *const TensorImpl = &tensor_impl;
            // SAFETY: a pointer to an impl, whose arrays have `dim` entries where it
            // is not refused.
            unsafe { read("src", (&raw mut tensor).cast()) }
        }

        fn refused(&mut self, text: &str) {
            let error = self.read().err().unwrap().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn layouts_come_from_strides_or_dim_order() {
        let read = |sizes: &[i32], strides: Option<&[i32]>, order: Option<&[u8]>| {
            ETensor::new(sizes, strides, order).read().unwrap().layout.strides().to_vec()
        };
        assert_eq!(read(&[2, 3], Some(&[1, 2]), Some(&[1, 0])), [1, 2]);
        assert_eq!(read(&[2, 3], None, Some(&[1, 0])), [1, 2]);
        assert_eq!(read(&[2, 3], None, None), [3, 1]);
        assert_eq!(read(&[2, 3, 4, 5], None, Some(&[0, 2, 3, 1])), [60, 1, 15, 3]);
        assert_eq!(read(&[], None, None), [0i64; 0]);
        assert_eq!(read(&[0, 7], None, Some(&[0, 1])), [7, 1]);
    }

    #[test]
    fn what_cannot_be_a_tensor_is_refused() {
        ETensor::new(&[2, 3], None, Some(&[1, 1])).refused("dim_order_");
        ETensor::new(&[2, 3], None, Some(&[0, 2])).refused("dim_order_");
        ETensor::new(&[2, -3], Some(&[3, 1]), None).refused("negative");
        ETensor { dim: 17, ..ETensor::new(&[1], None, None) }.refused("dim_");
        ETensor { dim: -1, ..ETensor::new(&[1], None, None) }.refused("dim_");
        ETensor { numel: 5, ..ETensor::new(&[2, 3], None, None) }.refused("numel_");
        ETensor { scalar_type: 127, ..ETensor::new(&[1], None, None) }.refused("127");
    }

    #[test]
    fn a_null_impl_is_refused() {
        let mut tensor: *const TensorImpl = std::ptr::null();
        // SAFETY: a pointer to a null pointer.
        let error = unsafe { read("src", (&raw mut tensor).cast()) }.err().unwrap();
        assert!(error.to_string().contains("impl_ is null"));
        let odd: AtenTensorHandle = std::ptr::without_provenance_mut(0x1001);
        // SAFETY: misaligned, so it is not read.
        assert!(unsafe { read("src", odd) }.is_err());
    }
}
