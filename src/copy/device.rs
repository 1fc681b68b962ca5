use super::plan::CopyPlan; use crate::{layout::Layout,dtype::DType,error::Result}; use smallvec::SmallVec; use std::ops::Range;
pub struct DeviceLimits { pub max_binding_bytes: u64, pub offset_alignment: u64, pub max_groups: u32, pub max_buffer: u64 }
pub struct Kernel { pub name: &'static str, pub wgsl: &'static str, pub constants: SmallVec<[(&'static str, u64); 4]> }
pub struct Launch { pub kernel: Kernel, pub dst: Range<u64>, pub src: Range<u64>, pub params: [u32; 28], pub groups: [u32; 3] }
pub fn launches(_plan: &CopyPlan, _d: u64, _s: u64, _l: &DeviceLimits, _out: &mut SmallVec<[Launch; 1]>) -> Result<()> { unimplemented!() }
#[allow(clippy::too_many_arguments)]
pub fn convert_launches(_d: &Layout,_s: &Layout,_dt: DType,_st: DType,_db: u64,_sb: u64,_l: &DeviceLimits, _out: &mut SmallVec<[Launch; 1]>) -> Result<()> { unimplemented!() }
