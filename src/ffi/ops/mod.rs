//! The operators that programs call: PyTorch's generated `c_shim_mps.h` and ExecuTorch's
//! own, by family.

mod handles;
pub mod quantized;
