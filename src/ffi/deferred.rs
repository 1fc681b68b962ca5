//! Results that are made when somebody asks for them: handles that say what their tensor
//! will be, without the tensor.
//!
//! Programs name every result of an operator and delete at once those that they do not use.
//! Where such a result costs much more than what it is made from, its handle is a deferred
//! one: the first call that is given the handle makes the tensor, and deleting the handle
//! makes nothing.

use super::handle::{self, AtenTensorHandle};
use super::slot::{LiveSlot, Slot, State};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::tensor::{DeviceType, Tensor};
use parking_lot::ReentrantMutex;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::LazyLock;

/// Makes the tensor. What it is made from is its own: programs overwrite their operands.
pub(super) type Make = Box<dyn Fn() -> Result<Tensor> + Send>;

/// By the slot's address. Held while a tensor is made, so that nobody deletes the handle
/// meanwhile; reentrant, because what is released on the way may be another one.
static PENDING: LazyLock<ReentrantMutex<RefCell<FxHashMap<usize, Make>>>> =
    LazyLock::new(Default::default);

fn key(slot: &Slot) -> usize {
    std::ptr::from_ref(slot).addr()
}

/// A handle to what `make` returns: a tensor on the GPU of this layout and type.
///
/// # Errors
/// [`crate::Error::OutOfMemory`] where there is no memory for more handles.
pub(super) fn insert(layout: &Layout, dtype: DType, make: Make) -> Result<AtenTensorHandle> {
    handle::new_deferred(|slot| {
        PENDING.lock().borrow_mut().insert(key(slot), make);
        slot.fill_deferred(layout, dtype);
    })
}

/// The handle's tensor, made now where the handle is a deferred one; `None` where it has
/// none.
///
/// # Errors
/// What making it returns; the handle stays as it is then.
#[cold]
pub(super) fn settle(slot: &Slot) -> Result<Option<LiveSlot<'_>>> {
    let pending = PENDING.lock();
    if slot.state() != State::Deferred {
        // Another thread may just have made it.
        return Ok(slot.live());
    }
    let Some(make) = pending.borrow_mut().remove(&key(slot)) else {
        return Ok(None);
    };
    match make() {
        Ok(tensor) => {
            debug_assert_eq!(tensor.device(), DeviceType::Mps);
            // It was deferred, and this thread holds the lock.
            let old = slot.rebind(Some(tensor));
            debug_assert!(matches!(old, Ok(None)));
            Ok(slot.live())
        }
        Err(error) => {
            pending.borrow_mut().insert(key(slot), make);
            Err(error)
        }
    }
}

/// Ends a deferred handle, or binds it to another tensor, by `end`: what the tensor would
/// have been made from is given up with it.
#[cold]
pub(super) fn give_up<R>(slot: &Slot, end: impl FnOnce() -> R) -> R {
    let pending = PENDING.lock();
    let make = pending.borrow_mut().remove(&key(slot));
    let result = end();
    // It may hold the last reference to a storage.
    drop(make);
    result
}
