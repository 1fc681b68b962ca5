#![deny(unsafe_code)]
#![warn(missing_docs)]
pub mod dtype;
pub mod error;
pub mod layout;
pub mod tensor;
pub mod runtime;
