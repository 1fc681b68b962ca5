//! Handles, lists and optional values as operators get them.

use crate::error::{Error, Result};
use crate::ffi::AtenTensorHandle;
use crate::ffi::boundary::check_output;
use crate::ffi::described::with_tensor;
use crate::ffi::handle;
use crate::tensor::Tensor;

/// The tensor behind a handle, for the length of one call.
///
/// # Safety
/// As [`with_tensor`].
pub(super) unsafe fn tensor(name: &'static str, handle: AtenTensorHandle) -> Result<Tensor> {
    // SAFETY: by this function's contract; the tensor is gone when the call ends.
    unsafe { with_tensor(name, handle, |tensor| Ok(tensor.clone())) }
}

/// The tensors behind handles, in their order.
///
/// # Safety
/// As [`with_tensor`], for each handle.
pub(super) unsafe fn tensors<const N: usize>(
    handles: [(&'static str, AtenTensorHandle); N],
) -> Result<[Tensor; N]> {
    let mut list = Vec::with_capacity(N);
    for (name, handle) in handles {
        // SAFETY: by this function's contract.
        list.push(unsafe { tensor(name, handle) }?);
    }
    list.try_into().map_err(|_| Error::Internal("not as many tensors as handles".into()))
}

/// A list of C: null where it has no entries.
///
/// # Safety
/// A pointer that is not null points to `len` values, which nothing writes during the call.
pub(super) unsafe fn list<'a, T>(name: &'static str, start: *const T, len: i64) -> Result<&'a [T]> {
    let count = usize::try_from(len).map_err(|_| {
        Error::invalid(name, format_args!("a list of {len}"), "its length is negative")
    })?;
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() {
        return Err(Error::invalid(
            name,
            format_args!("{start:p}"),
            format!("a list of {count} values is expected there"),
        ));
    }
    // SAFETY: not null, aligned, and of that length by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// An optional value of C: null is none.
///
/// # Safety
/// A pointer that is not null points to a value, which nothing writes during the call.
pub(super) unsafe fn optional<T: Copy>(name: &'static str, value: *const T) -> Result<Option<T>> {
    if value.is_null() {
        return Ok(None);
    }
    if !value.is_aligned() {
        return Err(Error::invalid(name, format_args!("{value:p}"), "it is not aligned"));
    }
    // SAFETY: not null, aligned, and valid by this function's contract.
    Ok(Some(unsafe { value.read() }))
}

/// The tensor behind an optional handle; a null handle is none as well.
///
/// # Safety
/// As [`optional`] and [`tensor`].
pub(super) unsafe fn optional_tensor(
    name: &'static str,
    at: *const AtenTensorHandle,
) -> Result<Option<Tensor>> {
    // SAFETY: by this function's contract.
    match unsafe { optional(name, at) }?.filter(|handle| !handle.is_null()) {
        // SAFETY: as above.
        Some(handle) => Ok(Some(unsafe { tensor(name, handle) }?)),
        None => Ok(None),
    }
}

/// Gives two results out, both or none.
///
/// # Safety
/// Both pointers, where they are not null, point to a handle that nobody else uses.
pub(super) unsafe fn give_two(
    outs: [(&'static str, *mut AtenTensorHandle); 2],
    body: impl FnOnce() -> Result<(Tensor, Tensor)>,
) -> Result<()> {
    for (name, out) in outs {
        check_output(name, out)?;
    }
    let (first, second) = body()?;
    let first = handle::insert(first)?;
    let second = match handle::insert(second) {
        Ok(second) => second,
        Err(error) => {
            handle::remove("ret0", first)?;
            return Err(error);
        }
    };
    for ((_, out), value) in outs.into_iter().zip([first, second]) {
        // SAFETY: not null and aligned, as checked, and ours by this function's contract.
        unsafe { out.write(value) };
    }
    Ok(())
}
