//! The C functions that AOTInductor programs for ExecuTorch's Metal backend call, on any GPU that
//! wgpu reaches.
#![deny(unsafe_code)]

pub mod msl;
