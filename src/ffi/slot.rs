//! One handle's memory: an ETensor in front, the tensor behind.
//!
//! A slot's state says who may touch the rest: a dead one is its owner's (see
//! [`super::slab`]), a busy one is of the thread that made it so, a live or undefined
//! one may be read by all. Deleting a handle while another thread uses it is an error
//! of the program, as with any pointer; deleting one twice is not.

use super::etensor::{Arrays, TensorImpl};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::MAX_DIMS;
use crate::tensor::{DeviceType, Tensor};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bytes from one slot to the next.
pub(super) const SLOT_BYTES: usize = size_of::<Slot>();

const DEAD: u32 = 0;
const LIVE: u32 = 1;
const UNDEFINED: u32 = 2;
const BUSY: u32 = 3;

/// What a handle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Deleted, or never made.
    Dead,
    /// A tensor.
    Live,
    /// A handle without a tensor (`aoti_torch_new_uninitialized_tensor`).
    Undefined,
    /// Being changed by another thread.
    Busy,
}

impl State {
    fn of(state: u32) -> State {
        match state {
            LIVE => State::Live,
            UNDEFINED => State::Undefined,
            BUSY => State::Busy,
            _ => State::Dead,
        }
    }
}

/// All that changes only while the slot is busy or dead. Zeroes are a valid value.
#[repr(C)]
struct Body {
    /// An `etensor::Tensor`: one pointer to the next field.
    etensor: *mut TensorImpl,
    tensor_impl: TensorImpl,
    tensor: MaybeUninit<Tensor>,
    dtype: MaybeUninit<DType>,
    device: MaybeUninit<DeviceType>,
    /// `tensor_impl.data` is what `get_data_ptr` answers, without asking the runtime.
    data_is_final: AtomicBool,
    arrays: Arrays,
    sizes: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
}

/// The memory of one handle. All zeroes are a dead slot.
#[repr(C, align(64))]
pub(super) struct Slot {
    body: UnsafeCell<Body>,
    state: AtomicU32,
    /// The program that made the handle, as `models` numbers them.
    owner: AtomicU32,
}

const _: () = assert!(std::mem::offset_of!(Body, tensor_impl) == 8);

// SAFETY: `body` is written only by the one thread that made the slot busy, or that
// holds it dead; `state` orders those writes before every read.
unsafe impl Sync for Slot {}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({self:p}, {:?})", self.state())
    }
}

impl Slot {
    #[inline]
    pub(super) fn state(&self) -> State {
        State::of(self.state.load(Ordering::Acquire))
    }

    /// Whether there is a handle here, defined or not.
    pub(super) fn is_handle(&self) -> bool {
        matches!(self.state(), State::Live | State::Undefined)
    }

    /// Says who makes the handle, before a dead slot is filled.
    #[inline]
    pub(super) fn set_owner(&self, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Who made the handle.
    pub(super) fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// The tensor, where there is one.
    #[inline]
    pub(super) fn live(&self) -> Option<LiveSlot<'_>> {
        (self.state.load(Ordering::Acquire) == LIVE).then_some(LiveSlot(self))
    }

    /// Makes a dead slot, which the caller holds, a handle to `tensor`, or to none.
    #[inline]
    pub(super) fn fill(&self, tensor: Option<Tensor>) {
        let state = if tensor.is_some() { LIVE } else { UNDEFINED };
        // SAFETY: the caller holds the dead slot alone, and it has no tensor.
        unsafe { self.write(tensor) };
        self.state.store(state, Ordering::Release);
    }

    /// Ends the handle. `None` where it is none (any more): of two threads that
    /// delete one handle, one succeeds. The slot is the caller's then.
    #[inline]
    pub(super) fn clear(&self) -> Option<Option<Tensor>> {
        let tensor = self.take()?;
        self.state.store(DEAD, Ordering::Release);
        Some(tensor)
    }

    /// Binds the handle to another tensor, and gives the one it had. `Err` gives the
    /// tensor back where this is no handle.
    pub(super) fn rebind(&self, tensor: Option<Tensor>) -> Result<Option<Tensor>, Option<Tensor>> {
        match self.take() {
            Some(old) => {
                self.fill(tensor);
                Ok(old)
            }
            None => Err(tensor),
        }
    }

    /// Makes the slot busy and moves its tensor out.
    #[inline]
    fn take(&self) -> Option<Option<Tensor>> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state != LIVE && state != UNDEFINED {
                return None;
            }
            match self.state.compare_exchange_weak(
                state,
                BUSY,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if state == UNDEFINED {
            return Some(None);
        }
        // SAFETY: the slot was live, so it has a tensor; it is busy and this thread's
        // now, and nobody takes the tensor again before it is filled anew.
        Some(Some(unsafe { (*self.body.get()).tensor.assume_init_read() }))
    }

    /// # Safety
    /// The slot is dead or busy, the caller's, and has no tensor.
    #[inline]
    unsafe fn write(&self, tensor: Option<Tensor>) {
        let body = self.body.get();
        // SAFETY: nobody else reads or writes the body now, by this function's contract.
        let body = unsafe { &mut *body };
        body.etensor = addr_of_mut!(body.tensor_impl);
        let Some(tensor) = tensor else {
            body.tensor_impl = TensorImpl::empty();
            return;
        };
        let layout = tensor.layout();
        body.arrays.describe(layout);
        for (to, &size) in body.sizes.iter_mut().zip(layout.sizes()) {
            *to = size;
        }
        for (to, &stride) in body.strides.iter_mut().zip(layout.strides()) {
            *to = stride;
        }
        let address = tensor.known_address();
        body.data_is_final = AtomicBool::new(address.is_some() && !tensor.is_packed_view());
        let dtype = tensor.dtype();
        let data: *mut c_void = std::ptr::with_exposed_provenance_mut(address.unwrap_or(0));
        body.tensor_impl = TensorImpl {
            sizes: body.arrays.sizes.as_mut_ptr(),
            dim_order: body.arrays.dim_order.as_mut_ptr(),
            strides: body.arrays.strides.as_mut_ptr(),
            data: data.into(),
            // At most 2^63 - 1, as a layout guarantees.
            dim: layout.rank() as isize,
            numel: layout.numel() as isize,
            numel_bound: layout.numel() as usize,
            scalar_type: dtype as i8,
            ..TensorImpl::empty()
        };
        body.dtype.write(dtype);
        body.device.write(tensor.device());
        body.tensor.write(tensor);
    }
}

/// A slot that was seen to be live: what its handle answers.
#[derive(Clone, Copy)]
pub(super) struct LiveSlot<'a>(&'a Slot);

impl<'a> LiveSlot<'a> {
    #[inline]
    fn body(self) -> &'a Body {
        // SAFETY: a live slot's body is not written, but for its atomics.
        unsafe { &*self.0.body.get() }
    }

    #[inline]
    pub(super) fn tensor(self) -> &'a Tensor {
        // SAFETY: a live slot has a tensor.
        unsafe { self.body().tensor.assume_init_ref() }
    }

    #[inline]
    pub(super) fn dtype(self) -> DType {
        // SAFETY: a live slot has a type.
        unsafe { self.body().dtype.assume_init() }
    }

    #[inline]
    pub(super) fn device(self) -> DeviceType {
        // SAFETY: a live slot has a device.
        unsafe { self.body().device.assume_init() }
    }

    /// `int64_t` sizes that live as long as the handle. C's prototype has no `const`;
    /// nothing here reads what a caller should write there.
    #[inline]
    pub(super) fn sizes(self) -> *mut i64 {
        self.field(std::mem::offset_of!(Body, sizes))
    }

    /// As [`LiveSlot::sizes`], of strides.
    #[inline]
    pub(super) fn strides(self) -> *mut i64 {
        self.field(std::mem::offset_of!(Body, strides))
    }

    #[inline]
    fn field(self, offset: usize) -> *mut i64 {
        self.0.body.get().wrapping_byte_add(offset).cast()
    }

    /// The data pointer, where it is known for good.
    #[inline]
    pub(super) fn final_data(self) -> Option<*mut c_void> {
        let body = self.body();
        body.data_is_final
            .load(Ordering::Acquire)
            .then(|| body.tensor_impl.data.load(Ordering::Relaxed))
    }

    /// Shows `data` in the ETensor; that of a packed view is asked for again each time.
    pub(super) fn set_data(self, data: *mut c_void) {
        let body = self.body();
        body.tensor_impl.data.store(data, Ordering::Relaxed);
        body.data_is_final.store(!self.tensor().is_packed_view(), Ordering::Release);
    }
}
