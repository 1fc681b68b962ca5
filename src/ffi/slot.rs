//! One handle's memory: an ETensor in front, the tensor behind.
//!
//! A slot's state says who may touch the rest: a dead one is its owner's (see
//! [`super::slab`]), a busy one is of the thread that made it so, a live or undefined
//! one may be read by all. Deleting a handle while another thread uses it is an error
//! of the program, as with any pointer; deleting one twice is not.

use super::etensor::{Arrays, TensorImpl};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::tensor::{DeviceType, Tensor};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bytes from one slot to the next.
pub(super) const SLOT_BYTES: usize = size_of::<Slot>();

const DEAD: u32 = 0;
const LIVE: u32 = 1;
const UNDEFINED: u32 = 2;
const BUSY: u32 = 3;
const DEFERRED: u32 = 4;

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
    /// A tensor that is made when it is asked for: see [`super::deferred`].
    Deferred,
}

impl State {
    fn of(state: u32) -> State {
        match state {
            LIVE => State::Live,
            UNDEFINED => State::Undefined,
            BUSY => State::Busy,
            DEFERRED => State::Deferred,
            _ => State::Dead,
        }
    }
}

/// What ExecuTorch reads: an `etensor::Tensor`, which is one pointer to the next field.
#[repr(C)]
struct Front {
    etensor: *const TensorImpl,
    tensor_impl: TensorImpl,
}

/// The memory of one handle. All zeroes are a dead slot. What a tensor of up to four
/// dimensions needs apart from itself fills two cache lines.
#[repr(C, align(64))]
pub(super) struct Slot {
    front: UnsafeCell<Front>,
    state: AtomicU32,
    /// `tensor_impl.data` is what `get_data_ptr` answers, without asking the runtime.
    data_is_final: AtomicBool,
    /// The program that made the handle, as `models` numbers them.
    owner: AtomicU32,
    dtype: UnsafeCell<MaybeUninit<DType>>,
    device: UnsafeCell<MaybeUninit<DeviceType>>,
    arrays: UnsafeCell<Arrays>,
    /// Where the tensor's layout has its sizes and its strides: what the getters answer.
    sizes: UnsafeCell<*mut i64>,
    strides: UnsafeCell<*mut i64>,
    tensor: UnsafeCell<MaybeUninit<Tensor>>,
}

const _: () = {
    assert!(std::mem::offset_of!(Front, tensor_impl) == 8);
    assert!(std::mem::offset_of!(Slot, front) == 0);
    // A power of two, so that telling the start of a slot needs no division.
    assert!(SLOT_BYTES == 256);
};

// SAFETY: all but the atomics is written only by the one thread that made the slot busy,
// or that holds it dead; `state` orders those writes before every read.
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
        matches!(self.state(), State::Live | State::Undefined | State::Deferred)
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

    /// Makes a dead slot, which the caller holds, a handle to a tensor that is yet to be
    /// made; its ETensor describes it already, without data.
    pub(super) fn fill_deferred(&self, layout: &Layout, dtype: DType) {
        // SAFETY: the caller holds the dead slot alone.
        let (front, arrays) = unsafe { (&mut *self.front.get(), &mut *self.arrays.get()) };
        front.etensor = &raw const front.tensor_impl;
        front.tensor_impl = TensorImpl::describing(layout, dtype, std::ptr::null_mut(), arrays);
        self.state.store(DEFERRED, Ordering::Release);
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
    #[allow(clippy::result_large_err, reason = "the tensor that was not bound goes back whole")]
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
            if !matches!(state, LIVE | UNDEFINED | DEFERRED) {
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
        if state != LIVE {
            return Some(None);
        }
        // SAFETY: the slot was live, so it has a tensor; it is busy and this thread's
        // now, and nobody takes the tensor again before it is filled anew.
        Some(Some(unsafe { (*self.tensor.get()).assume_init_read() }))
    }

    /// # Safety
    /// The slot is dead or busy, the caller's, and has no tensor.
    #[inline]
    unsafe fn write(&self, tensor: Option<Tensor>) {
        // SAFETY: nobody else reads or writes these now, by this function's contract.
        let (front, arrays) = unsafe { (&mut *self.front.get(), &mut *self.arrays.get()) };
        front.etensor = &raw const front.tensor_impl;
        let Some(tensor) = tensor else {
            front.tensor_impl = TensorImpl::empty();
            return;
        };
        let layout = tensor.layout();
        let address = tensor.known_address();
        let data: *mut c_void = std::ptr::with_exposed_provenance_mut(address.unwrap_or(0));
        let dtype = tensor.dtype();
        front.tensor_impl = TensorImpl::describing(layout, dtype, data, arrays);
        let (sizes, strides) = (layout.sizes().as_ptr(), layout.strides().as_ptr());
        let is_final = address.is_some() && !tensor.is_packed_view();
        self.data_is_final.store(is_final, Ordering::Relaxed);
        // SAFETY: as above; what a slot without a tensor holds needs no destructor.
        unsafe {
            (*self.dtype.get()).write(dtype);
            (*self.device.get()).write(tensor.device());
            *self.sizes.get() = sizes.cast_mut();
            *self.strides.get() = strides.cast_mut();
            (*self.tensor.get()).write(tensor);
        }
    }
}

/// A slot that was seen to be live: what its handle answers.
#[derive(Clone, Copy)]
pub(super) struct LiveSlot<'a>(&'a Slot);

impl<'a> LiveSlot<'a> {
    #[inline]
    fn tensor_impl(self) -> &'a TensorImpl {
        // SAFETY: a live slot's front is not written, but for its atomic.
        unsafe { &(*self.0.front.get()).tensor_impl }
    }

    #[inline]
    pub(super) fn tensor(self) -> &'a Tensor {
        // SAFETY: a live slot has a tensor, which is not written.
        unsafe { (*self.0.tensor.get()).assume_init_ref() }
    }

    /// Sizes, which live as long as the handle: the tensor has them. C's prototype has no
    /// `const`, and callers do not write.
    #[inline]
    pub(super) fn sizes(self) -> *mut i64 {
        // SAFETY: a live slot has them, and they are not written.
        unsafe { *self.0.sizes.get() }
    }

    /// As [`LiveSlot::sizes`], of strides.
    #[inline]
    pub(super) fn strides(self) -> *mut i64 {
        // SAFETY: a live slot has them, and they are not written.
        unsafe { *self.0.strides.get() }
    }

    #[inline]
    pub(super) fn dtype(self) -> DType {
        // SAFETY: a live slot has a type, which is not written.
        unsafe { (*self.0.dtype.get()).assume_init() }
    }

    #[inline]
    pub(super) fn device(self) -> DeviceType {
        // SAFETY: a live slot has a device, which is not written.
        unsafe { (*self.0.device.get()).assume_init() }
    }

    /// The data pointer, where it is known for good.
    #[inline]
    pub(super) fn final_data(self) -> Option<*mut c_void> {
        self.0
            .data_is_final
            .load(Ordering::Acquire)
            .then(|| self.tensor_impl().data.load(Ordering::Relaxed))
    }

    /// Shows `data` in the ETensor; that of a packed view is asked for again each time.
    pub(super) fn set_data(self, data: *mut c_void) {
        self.tensor_impl().data.store(data, Ordering::Relaxed);
        self.0.data_is_final.store(!self.tensor().is_packed_view(), Ordering::Release);
    }
}
