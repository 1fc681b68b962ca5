//! The operators that programs call: PyTorch's generated `c_shim_mps.h` and ExecuTorch's
//! own, by family.

pub mod attention;
pub mod convolution;
mod handles;
pub mod indexing;
pub mod matrix;
pub mod pooling;
pub mod quantized;
pub mod selection;
pub mod stubs;
pub mod views;
