//! The one way through the C boundary.
//!
//! Every export runs its work inside [`guard`] or [`produce`]: a panic becomes an
//! error, an error becomes a return code and the thread's last message, and an output
//! is written only on success. The checks of raw arguments live here as well: what
//! comes out of this module is non-null, aligned and within its bounds, as far as that
//! can be known of a pointer that C passed.

use crate::error::{Error, Result, panic_text};
use crate::layout::{Checked, MAX_DIMS, contiguous_strides};
use crate::runtime::check_fork;
use crate::tensor::DeviceType;
use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// ExecuTorch's `Error` in the 32 bits of an `AOTITorchError`.
pub(crate) mod code {
    pub(crate) const OK: i32 = 0;
    pub(crate) const INTERNAL: i32 = 1;
    pub(crate) const INVALID_STATE: i32 = 2;
    pub(crate) const NOT_SUPPORTED: i32 = 0x10;
    pub(crate) const NOT_IMPLEMENTED: i32 = 0x11;
    pub(crate) const INVALID_ARGUMENT: i32 = 0x12;
    pub(crate) const MEMORY_ALLOCATION_FAILED: i32 = 0x21;
}

/// The return code of an error. Poisoned memory has the code of what poisoned it.
pub(crate) fn code_of(error: &Error) -> i32 {
    match error {
        Error::InvalidArgument { .. } | Error::Compile(_) => code::INVALID_ARGUMENT,
        Error::NotSupported(_) | Error::BackendUnavailable(_) => code::NOT_SUPPORTED,
        Error::NotImplemented(_) => code::NOT_IMPLEMENTED,
        Error::OutOfMemory { .. } => code::MEMORY_ALLOCATION_FAILED,
        Error::DeviceLost(_) => code::INVALID_STATE,
        Error::Poisoned(inner) => code_of(inner),
        Error::Validation { .. } | Error::Internal(_) => code::INTERNAL,
    }
}

/// Runs the body of an export and gives its return code.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    // What a caught panic may have left half done is shared state below this module;
    // that is guarded by locks, whose holders keep it consistent.
    match catch_unwind(AssertUnwindSafe(|| check_fork().and_then(|()| body()))) {
        Ok(Ok(())) => code::OK,
        Ok(Err(error)) => fail(&error),
        Err(payload) => fail_by_panic(payload),
    }
}

/// Runs the body of an export and writes what it makes through `out`, if it makes
/// something. `name` is the output's in the header.
#[inline]
pub(crate) fn produce<T>(name: &'static str, out: *mut T, body: impl FnOnce() -> Result<T>) -> i32 {
    guard(|| {
        check_output(name, out)?;
        let value = body()?;
        // SAFETY: non-null and aligned, as just checked; that it points to a `T`
        // which nobody else uses is the contract of every export with an output.
        unsafe { out.write(value) };
        Ok(())
    })
}

/// As [`guard`], for exports without a return code: the failure goes to the log.
pub(crate) fn guard_void(function: &'static str, body: impl FnOnce() -> Result<()>) {
    if guard(body) != code::OK {
        let message = last_message();
        // SAFETY: a C string of this thread, and nothing fails before it is used.
        let message = unsafe { CStr::from_ptr(message) };
        log::error!("{function}: {}", message.to_string_lossy());
    }
}

#[cold]
fn fail(error: &Error) -> i32 {
    // What was to be made was not: the note is not for the next call.
    super::caller::take();
    remember(&error.to_string());
    log::debug!("{error}");
    code_of(error)
}

#[cold]
fn fail_by_panic(payload: Box<dyn std::any::Any + Send>) -> i32 {
    remember(&Error::Internal(panic_text(payload)).to_string());
    code::INTERNAL
}

/// Bytes kept of a message, its terminator included.
const MESSAGE_BYTES: usize = 4096;

thread_local! {
    // Inline and without a destructor: programs delete tensors from destructors of
    // thread-local objects, when others of the thread are gone.
    static LAST_MESSAGE: UnsafeCell<[u8; MESSAGE_BYTES]> =
        const { UnsafeCell::new([0; MESSAGE_BYTES]) };
}

/// Keeps `text` as this thread's last message; what does not fit is cut off at a
/// character, and a NUL within it ends it.
pub(crate) fn remember(text: &str) {
    let mut end = text.len().min(MESSAGE_BYTES - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    LAST_MESSAGE.with(|buffer| {
        let start = buffer.get().cast::<u8>();
        // SAFETY: the buffer is this thread's own and no reference into it exists;
        // `end` and the terminator after it lie within it.
        unsafe {
            start.copy_from_nonoverlapping(text.as_ptr(), end);
            start.add(end).write(0);
        }
    });
}

/// This thread's last message as a C string: empty before the first failure, never null.
pub(crate) fn last_message() -> *const c_char {
    LAST_MESSAGE.with(|buffer| buffer.get().cast::<c_char>().cast_const())
}

/// Refuses a null or misaligned output.
#[inline]
pub(crate) fn check_output<T>(name: &'static str, out: *mut T) -> Result<()> {
    if out.is_null() {
        return Err(Error::invalid(name, "null", "the result has nowhere to go"));
    }
    if !out.is_aligned() {
        return Err(misaligned(name, out.addr(), align_of::<T>()));
    }
    Ok(())
}

#[cold]
fn misaligned(name: &'static str, address: usize, align: usize) -> Error {
    Error::invalid(
        name,
        format_args!("{address:#x}"),
        format!("it is not aligned to {align} bytes"),
    )
}

/// A rank that came from C.
#[inline]
fn rank(ndim: i64) -> Result<usize> {
    match usize::try_from(ndim) {
        Ok(rank) if rank <= MAX_DIMS => Ok(rank),
        _ => Err(wrong_rank(ndim)),
    }
}

#[cold]
fn wrong_rank(ndim: i64) -> Error {
    Error::invalid("ndim", ndim, format!("a tensor has 0 to {MAX_DIMS} dimensions"))
}

/// `rank` integers at `pointer`, which may be null only where there are none.
///
/// # Safety
/// A pointer that is not null points to that many integers, which nothing writes
/// while the result is in use.
#[inline]
unsafe fn integers<'a>(name: &'static str, pointer: *const i64, rank: usize) -> Result<&'a [i64]> {
    if rank == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Error::invalid(name, "null", format!("ndim is {rank}")));
    }
    if !pointer.is_aligned() {
        return Err(misaligned(name, pointer.addr(), align_of::<i64>()));
    }
    // SAFETY: non-null, aligned, and of that length by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(pointer, rank) })
}

/// Sizes and strides as C passes them; null strides mean contiguous ones.
///
/// # Safety
/// Pointers that are not null point to `ndim` integers each, which nothing writes
/// during the call.
#[inline]
pub(crate) unsafe fn with_dims<R>(
    ndim: i64,
    sizes: *const i64,
    strides: *const i64,
    body: impl FnOnce(&[i64], &[i64]) -> Result<R>,
) -> Result<R> {
    let rank = rank(ndim)?;
    // SAFETY: by this function's contract.
    let sizes = unsafe { integers("sizes", sizes, rank) }?;
    if strides.is_null() {
        check_sizes(sizes)?;
        return body(sizes, &contiguous_strides(sizes)?);
    }
    // SAFETY: by this function's contract.
    let strides = unsafe { integers("strides", strides, rank) }?;
    body(sizes, strides)
}

/// Runs `body` on the layout that C describes; the offset is in elements.
///
/// # Safety
/// As [`with_dims`].
#[inline]
pub(crate) unsafe fn with_layout<R>(
    ndim: i64,
    sizes: *const i64,
    strides: *const i64,
    offset: i64,
    body: impl FnOnce(&Checked<'_>) -> Result<R>,
) -> Result<R> {
    let checked = |sizes: &[i64], strides: &[i64]| body(&Checked::new(sizes, strides, offset)?);
    // SAFETY: by this function's contract.
    unsafe { with_dims(ndim, sizes, strides, checked) }
}

/// Contiguous strides are made of sizes, so that these have to be sane before.
fn check_sizes(sizes: &[i64]) -> Result<()> {
    match sizes.iter().position(|&size| size < 0) {
        None => Ok(()),
        Some(d) => {
            Err(Error::invalid("sizes", format_args!("{sizes:?}"), format!("[{d}] is negative")))
        }
    }
}

/// c10's code of host memory.
pub(crate) const DEVICE_CPU: i32 = 0;
/// c10's code of the GPU.
pub(crate) const DEVICE_MPS: i32 = 13;

/// A device that came from C.
#[inline]
pub(crate) fn device(device_type: i32, device_index: i32) -> Result<DeviceType> {
    let device = match device_type {
        DEVICE_CPU => DeviceType::Cpu,
        DEVICE_MPS => DeviceType::Mps,
        _ => {
            return Err(Error::invalid(
                "device_type",
                device_type,
                "cpu (0) and mps (13) are what there is",
            ));
        }
    };
    if !matches!(device_index, 0 | -1) {
        return Err(Error::invalid(
            "device_index",
            device_index,
            "there is one device, 0 (or -1, the current one)",
        ));
    }
    Ok(device)
}

/// c10's code of a device.
pub(crate) fn device_code(device: DeviceType) -> i32 {
    match device {
        DeviceType::Cpu => DEVICE_CPU,
        DeviceType::Mps => DEVICE_MPS,
    }
}

/// A C string; null counts as empty.
///
/// # Safety
/// A pointer that is not null points to a C string, which nothing writes while the
/// result is in use.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Cow<'a, str> {
    if pointer.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn message() -> String {
        // SAFETY: always a C string of this thread.
        unsafe { CStr::from_ptr(last_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn errors_have_the_codes_of_executorch() {
        let invalid = Error::invalid("x", 1, "no");
        let cases = [
            (invalid.clone(), 0x12),
            (Error::NotSupported("x".into()), 0x10),
            (Error::NotImplemented("x"), 0x11),
            (Error::OutOfMemory { requested: 1, reason: "x".into() }, 0x21),
            (Error::DeviceLost("x".into()), 2),
            (Error::Validation { operation: "x", message: "y".into() }, 1),
            (Error::Internal("x".into()), 1),
            (Error::Poisoned(Arc::new(invalid)), 0x12),
        ];
        for (error, expected) in cases {
            assert_eq!(guard(|| Err(error.clone())), expected, "{error}");
            assert_eq!(message(), error.to_string());
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        assert_eq!(guard(|| panic!("number {}", 7)), code::INTERNAL);
        assert!(message().contains("number 7"), "{}", message());
    }

    #[test]
    fn success_keeps_the_last_message() {
        assert_eq!(guard(|| Err(Error::invalid("kept", 1, "no"))), code::INVALID_ARGUMENT);
        assert_eq!(guard(|| Ok(())), code::OK);
        assert!(message().contains("kept"));
    }

    #[test]
    fn a_new_thread_has_an_empty_message() {
        remember("of the first thread");
        std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
        assert_eq!(message(), "of the first thread");
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        remember(&"é".repeat(MESSAGE_BYTES));
        assert_eq!(message().len(), MESSAGE_BYTES - 2);
        assert!(message().chars().all(|c| c == 'é'));
    }

    #[test]
    fn outputs_are_written_on_success_only() {
        let mut out = 5;
        assert_eq!(produce("out", &mut out, || Ok(6)), code::OK);
        assert_eq!(out, 6);
        assert_ne!(produce("out", &mut out, || Err(Error::Internal("x".into()))), code::OK);
        assert_eq!(out, 6);
        let null: *mut i32 = std::ptr::null_mut();
        assert_eq!(produce("out", null, || Ok(1)), code::INVALID_ARGUMENT);
        assert!(message().contains("out is null"));
    }

    #[test]
    fn ranks_and_pointers_are_checked() {
        let sizes = [2i64, 3];
        let at = sizes.as_ptr();
        let null = std::ptr::null();
        // SAFETY: the pointers that are not null point to two integers, and no call
        // that would read more gets as far as reading.
        unsafe {
            let layout = |ndim, sizes, strides, offset| {
                with_layout(ndim, sizes, strides, offset, |layout| Ok(layout.layout()))
            };
            assert_eq!(layout(2, at, null, 0).unwrap().strides(), [3, 1]);
            assert_eq!(layout(0, null, null, 4).unwrap().offset(), 4);
            for (ndim, sizes) in [(-1, at), (17, at), (1, null), (i64::MAX, at)] {
                assert!(matches!(layout(ndim, sizes, null, 0), Err(Error::InvalidArgument { .. })));
            }
            let odd = at.byte_add(1);
            assert!(layout(1, odd, null, 0).unwrap_err().to_string().contains("aligned"));
        }
        let negative = [-1i64];
        // SAFETY: one integer.
        let error = unsafe { with_layout(1, negative.as_ptr(), null, 0, |_| Ok(())) }.unwrap_err();
        assert!(error.to_string().contains("[-1]"), "{error}");
    }

    #[test]
    fn devices_are_named_by_value() {
        assert_eq!(device(0, -1), Ok(DeviceType::Cpu));
        assert_eq!(device(13, 0), Ok(DeviceType::Mps));
        for (kind, index, text) in [(1, 0, "device_type is 1"), (13, 1, "device_index is 1")] {
            assert!(device(kind, index).unwrap_err().to_string().contains(text));
        }
    }
}
