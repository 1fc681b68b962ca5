#![deny(unsafe_code)]
#![warn(missing_docs)]
pub mod copy;
pub mod dtype;
pub mod error;
pub mod layout;
pub mod config;
pub mod gpu;
