//! Storages, the addresses that name them, and the pool that recycles their memory.
//!
//! Ownership is by reference count alone: a [`Storage`] goes when its last tensor
//! goes, and gives its [`Block`] to the pool. The address map answers one question,
//! which live storage an address lies in, and owns nothing. Which queued work uses a
//! block is kept beside it (`gpu::Usage`) and outlives its owners.

mod addresses;
mod block;
mod manager;
mod pool;
mod storage;

pub use block::Block;
pub use manager::{Manager, Place};
pub use storage::{DeviceType, Storage};
