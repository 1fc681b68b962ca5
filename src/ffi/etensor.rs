//! The memory layout of ExecuTorch's tensors (DESIGN.md 1.5), on 64-bit targets.
//!
//! ExecuTorch's delegate reads our handles inline as `etensor::Tensor*`: one pointer to
//! a [`TensorImpl`]. The layout is the same from ExecuTorch v0.4 to v1.5; users'
//! builds check it by `include/aoti_wgpu_executorch.h`.

use crate::dtype::DType;
use crate::layout::{INLINE_DIMS, Layout, MAX_DIMS};
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

/// A dimension order and the 32-bit sizes and strides that a [`TensorImpl`] points to:
/// the strides right behind the sizes, so that small ranks touch little memory.
#[repr(C)]
pub(super) struct Arrays {
    dim_order: [u8; MAX_DIMS],
    sizes_and_strides: [i32; 2 * MAX_DIMS],
}

/// Every dimension in its own place.
const IN_ORDER: [u8; MAX_DIMS] = {
    let mut order = [0; MAX_DIMS];
    let mut d = 0;
    while d < MAX_DIMS {
        order[d] = d as u8;
        d += 1;
    }
    order
};

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

    /// Of a tensor of this layout, whose sizes and strides `arrays` keeps.
    #[inline]
    pub(super) fn describing(
        layout: &Layout,
        dtype: DType,
        data: *mut c_void,
        arrays: &mut Arrays,
    ) -> Self {
        let (sizes, strides, dim_order) = arrays.describe(layout);
        TensorImpl {
            sizes,
            dim_order,
            strides,
            data: data.into(),
            // At most 2^63 - 1, as a layout guarantees.
            dim: layout.rank() as isize,
            numel: layout.numel() as isize,
            numel_bound: layout.numel() as usize,
            scalar_type: dtype as i8,
            ..TensorImpl::empty()
        }
    }
}

impl Arrays {
    /// Takes over a layout's sizes and strides, and gives where they lie: sizes, strides,
    /// dimension order.
    #[inline]
    pub(super) fn describe(&mut self, layout: &Layout) -> (*mut i32, *mut i32, *mut u8) {
        // A layout's rank is at most `MAX_DIMS`, and its fields fit in 31 bits.
        match layout.few() {
            Some(fields) => self.describe_few(layout, fields),
            None => self.describe_many(layout),
        }
    }

    /// All of the places at once, the unused ones too: no loop has to know the rank.
    #[inline]
    fn describe_few(
        &mut self,
        layout: &Layout,
        (sizes, strides): (&[i64; INLINE_DIMS], &[i64; INLINE_DIMS]),
    ) -> (*mut i32, *mut i32, *mut u8) {
        let (to_sizes, rest) = self.sizes_and_strides.split_at_mut(INLINE_DIMS);
        let (to_strides, _) = rest.split_at_mut(INLINE_DIMS);
        to_sizes.copy_from_slice(&sizes.map(|size| size as i32));
        to_strides.copy_from_slice(&strides.map(|stride| stride as i32));
        self.dim_order = IN_ORDER;
        // Unused strides are 0 and so in order.
        let ordered = strides.array_windows().fold(true, |all, [a, b]| all & (b <= a));
        if !ordered {
            self.sort(layout);
        }
        let (sizes, rest) = self.sizes_and_strides.split_at_mut(INLINE_DIMS);
        (sizes.as_mut_ptr(), rest.as_mut_ptr(), self.dim_order.as_mut_ptr())
    }

    fn describe_many(&mut self, layout: &Layout) -> (*mut i32, *mut i32, *mut u8) {
        let rank = layout.rank().min(MAX_DIMS);
        self.dim_order = IN_ORDER;
        self.sort(layout);
        let (sizes, strides) = self.sizes_and_strides.split_at_mut(rank);
        sizes.iter_mut().zip(layout.sizes()).for_each(|(to, &size)| *to = size as i32);
        strides.iter_mut().zip(layout.strides()).for_each(|(to, &stride)| *to = stride as i32);
        (sizes.as_mut_ptr(), strides.as_mut_ptr(), self.dim_order.as_mut_ptr())
    }

    /// Orders the dimensions, which are in their own order so far, by falling stride.
    #[cold]
    fn sort(&mut self, layout: &Layout) {
        let strides = layout.strides();
        if let Some(order) = self.dim_order.get_mut(..strides.len()) {
            // Stable: dimensions of equal stride keep their places.
            order.sort_by_key(|&d| std::cmp::Reverse(strides.get(usize::from(d)).copied()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(sizes: &[i64], strides: &[i64]) -> Vec<u8> {
        let mut arrays = Arrays { dim_order: [0; MAX_DIMS], sizes_and_strides: [0; 2 * MAX_DIMS] };
        let _ = arrays.describe(&Layout::new(sizes, strides, 0).unwrap());
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
