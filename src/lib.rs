#![deny(unsafe_code)]
#![warn(missing_docs)]
pub mod dtype;
pub mod error;
pub mod ffi;
pub mod layout;
pub mod runtime;
pub mod tensor;
