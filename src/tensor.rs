//! Signatures only, until the runtime's branch is merged.
use crate::{dtype::DType, error::Result, layout::Layout};
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceType { Cpu, Mps }
/// Cheap to clone (one or two reference counts); Send + Sync.
#[derive(Clone)]
pub struct Tensor { _p: () }
impl Tensor {
    /// What the getters report: for a packed view the contiguous layout at offset 0.
    pub fn layout(&self) -> &Layout { unimplemented!() }
    pub fn dtype(&self) -> DType { unimplemented!() }
    pub fn device(&self) -> DeviceType { unimplemented!() }
    /// Exact bytes of the storage (of the packed buffer for a packed view), as storage_size reports.
    pub fn storage_bytes(&self) -> u64 { unimplemented!() }
    /// Strides are as asked and data in the base (false), or a packed view (true).
    pub fn is_packed_view(&self) -> bool { unimplemented!() }
    /// The address that is known without waiting or filling anything: None for a packed view whose
    /// buffer does not exist yet, and for recycled memory that the GPU still uses. Some(0) for no elements in device memory.
    pub fn known_address(&self) -> Option<usize> { unimplemented!() }
}
