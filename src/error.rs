//! The crate's one error type.
//!
//! Every message names the argument or the limit that it is about and the value
//! that was found, so that a caller can mend the call without a debugger. How an
//! error becomes a C return code is decided in `ffi`, not here.

use std::borrow::Cow;
use std::sync::Arc;

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. Cloning is cheap enough for an error that is stored with
/// every storage that it concerns.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument cannot be used as it is.
    #[error("{argument} is {value}: {reason}")]
    InvalidArgument {
        /// The parameter's name in the C header.
        argument: &'static str,
        /// The value that was passed, as text.
        value: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// The call is well-formed, and this library or this device cannot do it.
    #[error("not supported: {0}")]
    NotSupported(String),
    /// A function that the ABI declares and this library does not have.
    #[error("{0} is not implemented by aoti-wgpu")]
    NotImplemented(&'static str),
    /// There is not enough memory, or a limit of the device is in the way.
    #[error("cannot allocate {requested} bytes: {reason}")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// The limit that was hit, with its value.
        reason: String,
    },
    /// The backend that was asked for is not on this machine.
    #[error("{0}")]
    BackendUnavailable(String),
    /// The GPU is gone; nothing more can run on it in this process.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),
    /// wgpu refused a command.
    #[error("the GPU refused {operation}: {message}")]
    Validation {
        /// What was being done.
        operation: &'static str,
        /// wgpu's own words.
        message: String,
    },
    /// The memory holds no result, because the work that should have written it failed.
    #[error("this memory has no valid contents, because earlier work failed: {0}")]
    Poisoned(Arc<Error>),
    /// A kernel's source does not compile.
    #[error("{0}")]
    Compile(String),
    /// A broken invariant of this library. Please report it.
    #[error("internal error in aoti-wgpu: {0}")]
    Internal(String),
}

impl Error {
    /// An [`Error::InvalidArgument`].
    pub fn invalid(
        argument: &'static str,
        value: impl std::fmt::Display,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::InvalidArgument { argument, value: value.to_string(), reason: reason.into() }
    }

    /// The same error as the reason why memory has no valid contents. An error
    /// that is one already is not wrapped again.
    pub fn poisoning(self) -> Self {
        match self {
            Error::Poisoned(_) => self,
            other => Error::Poisoned(Arc::new(other)),
        }
    }
}

/// The text of a panic that was caught.
pub(crate) fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    match payload.downcast::<&str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => {
                // Its destructor is foreign code, and may panic in its turn.
                std::mem::forget(payload);
                "a panic without a text".to_owned()
            }
        },
    }
}
