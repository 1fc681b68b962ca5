//! All of wgpu: one device with its queue, buffers, pipelines and command stream.
//!
//! Nothing above this module names a wgpu type that it did not get from here, and
//! nothing here knows of tensors. Callers vouch for what they bind: windows lie
//! inside their buffers. wgpu checks it again, and what it refuses comes back as an
//! [`Error`](crate::error::Error) of the submission that held the work.

mod adapter;
mod buffer;
mod disk_cache;
mod ending;
mod errors;
pub mod faults;
mod fork;
mod pipeline;
mod shader;
mod stream;
mod timing;
mod usage;

pub use adapter::{Gpu, list_adapters};
pub use buffer::{Buffer, BufferKind, Reservation};
pub use ending::{at_exit, outlive};
pub use fork::{check as check_fork, in_child};
pub use pipeline::{Pipeline, PipelineKey, Shader};
pub use stream::{Binding, Stream};
pub use timing::Timer;
pub use usage::Usage;
