//! The memory layout of ExecuTorch's tensors (DESIGN.md 1.5), on 64-bit targets.
//!
//! ExecuTorch's delegate reads our handles inline as `etensor::Tensor*`: one pointer to
//! a [`TensorImpl`]. The layout is the same from ExecuTorch v0.4 to v1.5; users'
//! builds check it by `include/aoti_wgpu_executorch.h`.

use crate::layout::{Layout, MAX_DIMS};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// ExecuTorch's `TensorImpl`: 64 bytes.
#[repr(C)]
pub(super) struct TensorImpl {
    pub(super) sizes: *mut i32,
    pub(super) dim_order: *mut u8,
    pub(super) strides: *mut i32,
    /// Atomic, because the first `get_data_ptr` of a packed view stores it, and may be
    /// called by several threads.
    pub(super) data: AtomicPtr<c_void>,
    pub(super) dim: isize,
    pub(super) numel: isize,
    pub(super) numel_bound: usize,
    pub(super) scalar_type: i8,
    /// 0: the shape is static.
    pub(super) shape_dynamism: u8,
    /// ExecuTorch's own numbering, which knows CPU (0) and CUDA: all of ours are 0.
    pub(super) device_type: i8,
    pub(super) device_index: i8,
}

/// A dimension order and the 32-bit sizes and strides that a [`TensorImpl`] points to.
#[repr(C)]
pub(super) struct Arrays {
    pub(super) sizes: [i32; MAX_DIMS],
    pub(super) strides: [i32; MAX_DIMS],
    pub(super) dim_order: [u8; MAX_DIMS],
}

const _: () = {
    assert!(size_of::<TensorImpl>() == 64);
    assert!(std::mem::offset_of!(TensorImpl, data) == 24);
    assert!(std::mem::offset_of!(TensorImpl, scalar_type) == 56);
    assert!(std::mem::offset_of!(TensorImpl, device_type) == 58);
};

impl TensorImpl {
    /// Of a tensor without dimensions, elements or data.
    pub(super) const fn empty() -> Self {
        TensorImpl {
            sizes: null_mut(),
            dim_order: null_mut(),
            strides: null_mut(),
            data: AtomicPtr::new(null_mut()),
            dim: 0,
            numel: 0,
            numel_bound: 0,
            scalar_type: 0,
            shape_dynamism: 0,
            device_type: 0,
            device_index: 0,
        }
    }
}

impl Arrays {
    /// Takes over a layout's sizes and strides; entries past its rank stay as they are.
    #[inline]
    pub(super) fn describe(&mut self, layout: &Layout) {
        let mut ordered = true;
        let mut previous = i64::MAX;
        for (d, (&size, &stride)) in layout.sizes().iter().zip(layout.strides()).enumerate() {
            // A layout's fields fit in 31 bits and its rank in `MAX_DIMS`.
            if let (Some(to_size), Some(to_stride), Some(to_order)) =
                (self.sizes.get_mut(d), self.strides.get_mut(d), self.dim_order.get_mut(d))
            {
                *to_size = size as i32;
                *to_stride = stride as i32;
                *to_order = d as u8;
            }
            ordered &= stride <= previous;
            previous = stride;
        }
        if !ordered && let Some(order) = self.dim_order.get_mut(..layout.rank()) {
            let strides = layout.strides();
            // Stable: dimensions of equal stride keep their places.
            order.sort_by_key(|&d| std::cmp::Reverse(strides.get(usize::from(d)).copied()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(sizes: &[i64], strides: &[i64]) -> Vec<u8> {
        let mut arrays =
            Arrays { sizes: [0; MAX_DIMS], strides: [0; MAX_DIMS], dim_order: [0; MAX_DIMS] };
        arrays.describe(&Layout::new(sizes, strides, 0).unwrap());
        arrays.dim_order[..sizes.len()].to_vec()
    }

    #[test]
    fn dim_order_is_outermost_first() {
        assert_eq!(order(&[2, 3, 4], &[12, 4, 1]), [0, 1, 2]);
        assert_eq!(order(&[2, 3, 4, 5], &[60, 1, 15, 3]), [0, 2, 3, 1]);
        assert_eq!(order(&[2, 3], &[0, 1]), [1, 0]);
        assert_eq!(order(&[2, 2, 2], &[1, 1, 1]), [0, 1, 2]);
        assert_eq!(order(&[], &[]), [0u8; 0]);
        assert_eq!(order(&[1; 16], &[1; 16]), (0..16).collect::<Vec<u8>>());
    }
}
