//! The operators that compiled programs call by name: methods of
//! [`Runtime`](crate::runtime::Runtime), with their checks and messages, over kernels of
//! the crate's own.
//!
//! A module is a family of operators; its kernels have its name in `shaders/ops`. Sums of
//! 16-bit elements are kept in f32 and rounded once.

pub mod attention;
pub mod conv;
pub mod delta_rule;
mod dense;
pub mod index;
pub mod matmul;
pub mod pool;
pub mod quantized;
pub mod scan;
pub mod sort;
pub mod views;
