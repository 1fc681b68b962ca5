//! A portable runtime for programs that AOTInductor compiled for ExecuTorch's Metal backend.
//!
//! Such a program calls some sixty C functions (`aoti_torch_*`) to make tensors, view and
//! copy them, and run its kernels. This crate implements them over wgpu, so that the same
//! program runs on Metal, Vulkan and Direct3D 12. Rust programs use the same through
//! [`runtime::Runtime`] and [`tensor::Tensor`].
//!
//! # Map
//!
//! A module uses only those above it; a test holds that.
//!
//! | module | responsible for |
//! |---|---|
//! | [`error`] | the error type |
//! | [`config`] | what the environment asks for |
//! | [`dtype`] | c10's scalar types |
//! | [`layout`] | sizes, strides, offset: element count, extent, packed, broadcast |
//! | [`copy`] | two layouts to a plan; the plan run by the host, or as kernel launches |
//! | [`msl`] | Metal kernel text to naga modules |
//! | `gpu` | all of wgpu: adapter, buffers, pipelines, the command stream |
//! | `memory` | storages, addresses, the pool |
//! | [`tensor`] | a storage, a layout and a type; packed views |
//! | [`runtime`] | one device with its tensors: the safe API |
//! | [`ops`] | matrix products and the other operators that programs call |
//! | [`ffi`] | the C ABI |
#![deny(unsafe_code)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_docs)]

pub mod config;
pub mod copy;
pub mod dtype;
pub mod error;
pub mod ffi;
mod gpu;
#[cfg(feature = "faults")]
#[doc(hidden)]
pub use gpu::faults;
pub mod layout;
mod memory;
pub mod msl;
pub mod ops;
pub mod runtime;
pub mod tensor;
