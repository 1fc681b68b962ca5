//! Signatures only, until the runtime's branch is merged.
use crate::{dtype::DType, error::Result, layout::Layout, tensor::{DeviceType, Tensor}};
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats { pub live_storages: u64, pub live_device_bytes: u64, pub live_host_bytes: u64, pub pooled_bytes: u64, pub pool_hits: u64, pub pool_misses: u64, pub dispatches: u64, pub submits: u64, pub packs: u64, pub packs_skipped: u64 }
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterInfo { pub name: String, pub backend: String, pub device_type: String, pub driver: String, pub memory_mode: String }
/// One device with its stream, pool and tensors. Clone shares it.
#[derive(Clone)]
pub struct Runtime { _p: () }
impl Runtime {
    /// The process's runtime, configured from the environment, made at the first call and never torn
    /// down. The GPU itself starts with the first call that needs it.
    pub fn global() -> &'static Runtime { unimplemented!() }
    pub fn empty(&self, layout: Layout, dtype: DType, device: DeviceType) -> Result<Tensor> { unimplemented!() }
    /// # Safety: `data` is valid for the layout's end for as long as the tensor (or a view of it) lives, unless it lies in a live device allocation
    #[allow(unsafe_code)]
    pub unsafe fn blob(&self, data: *mut u8, layout: Layout, dtype: DType, device: DeviceType) -> Result<Tensor> { unimplemented!() }
    /// `_reinterpret_tensor`: offset increment in elements, may be negative.
    pub fn view(&self, of: &Tensor, sizes: &[i64], strides: &[i64], increment: i64) -> Result<Tensor> { unimplemented!() }
    pub fn as_strided(&self, of: &Tensor, sizes: &[i64], strides: &[i64]) -> Result<Tensor> { unimplemented!() }
    /// `_alloc_from_pool`: a plain view by byte offset with another dtype.
    pub fn view_bytes(&self, of: &Tensor, offset_bytes: i64, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor> { unimplemented!() }
    pub fn copy(&self, dst: &Tensor, src: &Tensor, non_blocking: bool) -> Result<()> { unimplemented!() }
    pub fn clone_tensor(&self, of: &Tensor, preserve_strides: bool) -> Result<Tensor> { unimplemented!() }
    pub fn zero(&self, t: &Tensor) -> Result<()> { unimplemented!() }
    /// get_data_ptr: fills a packed view where needed.
    pub fn data_ptr(&self, t: &Tensor) -> Result<*mut u8> { unimplemented!() }
    /// The one element of a tensor of numel 1, its bytes first (waits).
    pub fn item(&self, t: &Tensor) -> Result<[u8; 16]> { unimplemented!() }
    /// All elements in row-major order, dense (waits).
    pub fn to_vec(&self, t: &Tensor) -> Result<Vec<u8>> { unimplemented!() }
    pub fn mark_written(&self, t: &Tensor) -> Result<()> { unimplemented!() }
    pub fn synchronize(&self) -> Result<()> { unimplemented!() }
    pub fn trim(&self) -> Result<()> { unimplemented!() }
    pub fn set_flush_interval(&self, dispatches: i32) {}
    pub fn stats(&self) -> Stats { unimplemented!() }
    pub fn adapter_info(&self) -> Result<AdapterInfo> { unimplemented!() }
    /// aoti_torch_mps_malloc / free: an allocation known by its address.
    pub fn malloc(&self, bytes: u64) -> Result<*mut u8> { unimplemented!() }
    pub fn free(&self, ptr: *mut u8) -> Result<()> { unimplemented!() }
}
