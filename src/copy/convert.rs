#![allow(unsafe_code)]
use crate::{layout::Layout,dtype::DType,error::Result};
pub unsafe fn run(_d: &Layout,_s: &Layout,_dt: DType,_st: DType,_p: *mut u8,_q: *const u8)->Result<()> { unimplemented!() }
