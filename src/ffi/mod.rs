//! The C ABI: every function that `include/aoti_wgpu.h` declares.
//!
//! An export is a few lines: arguments to Rust values, one call of the layer below, the
//! result through `boundary`'s guard. What a function does is documented once, in the
//! header. Nothing below this module knows of C.
//!
//! - `boundary`: panics, errors, nulls, outputs;
//! - `slab`, `slot`, `handle`: handles and their memory; `etensor`: the layout that
//!   ExecuTorch reads inline;
//! - `executorch`, `described`: tensors that ExecuTorch made; `delegate`: the C++ functions
//!   that its delegate links;
//! - `caller`, `models`: who made a handle, and what models leave behind;
//! - [`memory`], [`attributes`], [`constants`], [`scalar`], [`debug`]: the functions of
//!   PyTorch's `shim.h`; [`ops`]: the operators; [`extension`]: the project's own.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // Each export's contract is its text in the header.

pub mod attributes;
mod boundary;
mod caller;
pub mod constants;
pub mod debug;
mod deferred;
#[cfg(all(feature = "executorch", unix))]
mod delegate;
mod described;
mod etensor;
mod executorch;
pub mod extension;
mod handle;
mod kernel_handle;
pub mod memory;
mod models;
pub mod mps;
mod number;
pub mod ops;
pub mod scalar;
mod slab;
mod slot;

pub use handle::{AtenTensorHandle, AtenTensorOpaque};
/// A return code: ExecuTorch's `Error`, 0 for success.
pub type AOTITorchError = i32;
