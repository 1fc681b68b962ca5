//! Handles: `AtenTensorHandle` to tensor and back.
//!
//! An address is taken for what it is only after its place was looked up: a deleted
//! handle, an address within one, and (where ETensors are not accepted) any other
//! address are refused without being read.

use super::deferred;
use super::models;
use super::slab::{self, Place};
use super::slot::{LiveSlot, Slot, State};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// What a handle points to, as C sees it.
#[repr(C)]
pub struct AtenTensorOpaque {
    _private: [u8; 0],
}

/// A tensor handle, as in PyTorch's `shim.h`.
pub type AtenTensorHandle = *mut AtenTensorOpaque;

/// A new handle to `tensor`.
///
/// # Errors
/// [`Error::OutOfMemory`] where there is no memory for more handles.
#[inline]
pub(super) fn insert(tensor: Tensor) -> Result<AtenTensorHandle> {
    new(Some(tensor))
}

/// A new handle to `tensor`, or one that is not defined.
#[inline]
pub(super) fn new(tensor: Option<Tensor>) -> Result<AtenTensorHandle> {
    let slot = slab::take()?;
    slot.set_owner(models::owner_of_tensor());
    slot.fill(tensor);
    Ok(std::ptr::from_ref(slot).cast_mut().cast())
}

/// A new handle that `fill` makes a deferred one.
pub(super) fn new_deferred(fill: impl FnOnce(&Slot)) -> Result<AtenTensorHandle> {
    let slot = slab::take()?;
    slot.set_owner(models::owner_of_tensor());
    fill(slot);
    Ok(std::ptr::from_ref(slot).cast_mut().cast())
}

/// Ends a handle; null is none and fine.
///
/// # Errors
/// [`Error::InvalidArgument`] where `handle` is not a live one of this library.
#[inline]
pub(super) fn remove(argument: &'static str, handle: AtenTensorHandle) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let slot = slot(argument, handle)?;
    let ended = match slot.state() {
        State::Deferred => deferred::give_up(slot, || slot.clear()),
        _ => slot.clear(),
    };
    let Some(tensor) = ended else {
        return Err(refuse(argument, handle, slot.state()));
    };
    slab::give(slot);
    // Last, because it may run the release of a storage.
    drop(tensor);
    Ok(())
}

/// Binds `handle` to another tensor, or to none.
///
/// # Errors
/// [`Error::InvalidArgument`] where `handle` is not a live one of this library.
pub(super) fn rebind(
    argument: &'static str,
    handle: AtenTensorHandle,
    tensor: Option<Tensor>,
) -> Result<()> {
    let slot = slot(argument, handle)?;
    let rebound = match slot.state() {
        State::Deferred => deferred::give_up(slot, || slot.rebind(tensor)),
        _ => slot.rebind(tensor),
    };
    match rebound {
        Ok(old) => {
            drop(old);
            Ok(())
        }
        Err(_) => Err(refuse(argument, handle, slot.state())),
    }
}

/// A tensor of this library.
///
/// # Errors
/// [`Error::InvalidArgument`] where `handle` is not a live one of this library, or not
/// defined.
#[inline]
pub(super) fn own<'a>(argument: &'static str, handle: AtenTensorHandle) -> Result<LiveSlot<'a>> {
    match known(handle) {
        Some(live) => Ok(live),
        None => own_otherwise(argument, handle),
    }
}

#[cold]
fn own_otherwise<'a>(argument: &'static str, handle: AtenTensorHandle) -> Result<LiveSlot<'a>> {
    own_or_foreign(argument, handle)?.ok_or_else(|| refuse_place(argument, handle, &Place::Outside))
}

/// A tensor of this library, or `None` for an address in none of its slabs, which may
/// be another library's tensor.
///
/// # Errors
/// [`Error::InvalidArgument`] where `handle` is null, deleted, or not defined.
#[inline]
pub(super) fn own_or_foreign<'a>(
    argument: &'static str,
    handle: AtenTensorHandle,
) -> Result<Option<LiveSlot<'a>>> {
    match slab::find(handle.addr()) {
        Place::Slot(slot) => match slot.live() {
            Some(live) => Ok(Some(live)),
            None => settled(argument, handle, slot).map(Some),
        },
        Place::Outside if !handle.is_null() => Ok(None),
        place => Err(refuse_place(argument, handle, &place)),
    }
}

/// A tensor of this library, of those that are found at once: `None` says nothing.
#[inline(always)]
pub(super) fn known<'a>(handle: AtenTensorHandle) -> Option<LiveSlot<'a>> {
    slab::find_first(handle.addr())?.live()
}

/// A tensor of this library, or `None` for a handle that is not defined.
///
/// # Errors
/// [`Error::InvalidArgument`] where `handle` is not a live one of this library.
pub(super) fn maybe_defined<'a>(
    argument: &'static str,
    handle: AtenTensorHandle,
) -> Result<Option<&'a Tensor>> {
    let slot = slot(argument, handle)?;
    match slot.state() {
        State::Undefined => Ok(None),
        _ => match slot.live() {
            Some(live) => Ok(Some(live.tensor())),
            None => settled(argument, handle, slot).map(|live| Some(live.tensor())),
        },
    }
}

/// Whether `handle` lies in no slab, so that it may be another library's tensor.
#[inline]
pub(super) fn is_foreign(handle: AtenTensorHandle) -> bool {
    !handle.is_null() && matches!(slab::find(handle.addr()), Place::Outside)
}

/// Handles that are alive now.
pub(super) fn live() -> u64 {
    slab::live()
}

#[inline]
fn slot(argument: &'static str, handle: AtenTensorHandle) -> Result<&'static Slot> {
    match slab::find(handle.addr()) {
        Place::Slot(slot) => Ok(slot),
        place => Err(refuse_place(argument, handle, &place)),
    }
}

/// The tensor of a slot that was not live; made now, where that was deferred.
#[cold]
fn settled<'a>(
    argument: &'static str,
    handle: AtenTensorHandle,
    slot: &'a Slot,
) -> Result<LiveSlot<'a>> {
    deferred::settle(slot)?.ok_or_else(|| refuse(argument, handle, slot.state()))
}

#[cold]
fn refuse_place(argument: &'static str, handle: AtenTensorHandle, place: &Place) -> Error {
    if handle.is_null() {
        return Error::invalid(argument, "null", "a tensor handle is needed");
    }
    let reason = match place {
        Place::Outside => "this library did not make this handle",
        _ => "it points into a tensor handle, not to its start",
    };
    Error::invalid(argument, format_args!("{handle:p}"), reason)
}

#[cold]
fn refuse(argument: &'static str, handle: AtenTensorHandle, state: State) -> Error {
    let reason = match state {
        State::Undefined => "the tensor is not defined",
        State::Busy => "another thread is deleting or rebinding this handle",
        State::Dead | State::Live | State::Deferred => "this handle was deleted, or never made",
    };
    Error::invalid(argument, format_args!("{handle:p}"), reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn undefined() -> AtenTensorHandle {
        new(None).unwrap()
    }

    fn text(error: Error) -> String {
        assert!(matches!(error, Error::InvalidArgument { .. }));
        error.to_string()
    }

    #[test]
    fn a_deleted_handle_is_refused_and_null_is_fine() {
        let handle = undefined();
        assert!(matches!(maybe_defined("t", handle), Ok(None)));
        remove("t", handle).unwrap();
        assert!(text(remove("t", handle).unwrap_err()).contains("deleted"));
        assert!(maybe_defined("t", handle).is_err());
        assert!(rebind("t", handle, None).is_err());
        remove("t", std::ptr::null_mut()).unwrap();
        assert!(text(own("t", std::ptr::null_mut()).err().unwrap()).contains("t is null"));
    }

    #[test]
    fn an_undefined_handle_is_no_tensor() {
        let handle = undefined();
        assert!(text(own("t", handle).err().unwrap()).contains("not defined"));
        remove("t", handle).unwrap();
    }

    #[test]
    fn one_of_many_deletes_wins() {
        for _ in 0..200 {
            let handle = undefined();
            let address = handle.expose_provenance();
            let wins: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(move || {
                            let handle = std::ptr::with_exposed_provenance_mut(address);
                            usize::from(remove("t", handle).is_ok())
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(wins, 1);
        }
    }

    #[test]
    fn handles_are_deleted_from_destructors_of_thread_locals() {
        struct Last(usize);
        impl Drop for Last {
            fn drop(&mut self) {
                let handle = std::ptr::with_exposed_provenance_mut(self.0);
                remove("t", handle).unwrap();
                assert!(remove("t", handle).is_err());
                let other = undefined();
                remove("t", other).unwrap();
            }
        }
        thread_local! {
            static LAST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
        }
        // Registered before the slab's own thread-local, so destroyed after it.
        std::thread::spawn(|| {
            LAST.with(|last| *last.borrow_mut() = Some(Last(0)));
            let address = undefined().expose_provenance();
            LAST.with(|last| last.borrow_mut().as_mut().unwrap().0 = address);
        })
        .join()
        .unwrap();
    }

    proptest! {
        #[test]
        fn no_other_address_is_a_handle(random: usize, inside in 1usize..1 << 20) {
            let handle = undefined();
            for address in [random, handle.addr().wrapping_add(inside | 1)] {
                let wild: AtenTensorHandle = std::ptr::without_provenance_mut(address);
                if wild != handle {
                    prop_assert!(remove("t", wild).is_err() || wild.is_null());
                    prop_assert!(own("t", wild).is_err());
                }
            }
            remove("t", handle).unwrap();
        }
    }
}
