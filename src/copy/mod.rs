//! The copy engine: from any strided layout to any other.
//!
//! [`plan`] turns a pair of layouts into a [`plan::CopyPlan`]: few dimensions, as
//! wide a unit as both sides allow, and a [`plan::Form`] that names the kind of work.
//! [`host`] runs a plan over host memory, [`convert`] is the same between two
//! element types, and [`device`] turns either into launches of the compute kernels
//! in `shaders/`. Nothing here allocates device memory or knows of wgpu; a caller
//! validates that both layouts lie inside their storages, which
//! [`plan::CopyPlan::dst_end`] and [`plan::CopyPlan::src_end`] say in bytes.

pub mod convert;
pub mod device;
pub mod host;
pub mod plan;
