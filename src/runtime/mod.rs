//! One device with its stream, its memory and its tensors: the safe API.
//!
//! Everything that the C functions do is here, with [`Result`] and without `unsafe` for
//! callers. Calls take effect in the order in which they are made; GPU work is recorded
//! and submitted in batches. Locks are taken in the order packed view, mirrors, stream,
//! memory; the last two are not held while waiting for the GPU.

mod kernels;
mod launch;
mod mirrors;
mod staging;
mod transfer;
mod views;

pub use kernels::{Arguments, Grid, KernelFunction, KernelLibrary, poison_tensor};
pub(crate) use launch::{Launch, Operand};

pub use crate::config::{Backend, Config, CopyEngine, MemoryMode, Views};
pub(crate) use crate::gpu::{check_fork, in_child};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{self, Gpu, Stream, Timer};
use crate::layout::{Checked, Layout};
use crate::memory::{Manager, Storage};
use crate::tensor::{DeviceType, Tensor};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use staging::Staging;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What a runtime holds and has done; bytes are exact sizes of storages, not of the
/// memory behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Storages that a tensor holds.
    pub live_storages: u64,
    /// Bytes of `mps` storages.
    pub live_device_bytes: u64,
    /// Bytes of `cpu` storages that the library owns.
    pub live_host_bytes: u64,
    /// Bytes of freed memory that is kept for reuse.
    pub pooled_bytes: u64,
    /// Allocations that kept memory served.
    pub pool_hits: u64,
    /// Allocations that it could not.
    pub pool_misses: u64,
    /// Kernels dispatched.
    pub dispatches: u64,
    /// Submissions to the GPU.
    pub submits: u64,
    /// Packed views filled.
    pub packs: u64,
    /// Fills that were not needed, because nothing had been written since.
    pub packs_skipped: u64,
}

/// The adapter that a runtime uses, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterInfo {
    /// The adapter's own name.
    pub name: String,
    /// `vulkan`, `metal`, `dx12` or `host`.
    pub backend: String,
    /// `discrete GPU`, `integrated GPU`, `virtual GPU`, `CPU` or `other`.
    pub device_type: String,
    /// The driver's name and version.
    pub driver: String,
    /// `unified`, `device` or `host`.
    pub memory_mode: String,
}

/// The process's runtime.
static GLOBAL: OnceLock<Runtime> = OnceLock::new();

/// What a program has queued is done while the driver still can. Nobody is left to be told of
/// a failure.
extern "C" fn finish_global() {
    let finish = || GLOBAL.get().map(Runtime::synchronize);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(finish));
}

/// A device and everything on it. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    gpu: OnceLock<Result<Option<Arc<Gpu>>>>,
    memory: Arc<Manager>,
    stream: Mutex<Stream>,
    staging: Mutex<Staging>,
    /// Allocations that C holds by address alone.
    allocations: Mutex<FxHashMap<usize, Arc<Storage>>>,
    mirrors: mirrors::Mirrors,
    libraries: kernels::Libraries,
    packs: AtomicU64,
    packs_skipped: AtomicU64,
}

impl Runtime {
    /// A runtime of its own. Its GPU starts with the first call that needs it.
    pub fn new(config: Config) -> Self {
        Self::build(config, None)
    }

    fn build(config: Config, broken: Option<Error>) -> Self {
        let gpu = OnceLock::new();
        if let Some(error) = broken {
            let _ = gpu.set(Err(error));
        }
        let runtime = Runtime {
            inner: Arc::new(Inner {
                gpu,
                memory: Arc::new(Manager::new(config.pool_bytes, config.memory_limit)),
                stream: Mutex::new(Stream::new(config.flush_interval)),
                staging: Mutex::default(),
                allocations: Mutex::default(),
                mirrors: mirrors::Mirrors::default(),
                libraries: kernels::Libraries::default(),
                packs: AtomicU64::new(0),
                packs_skipped: AtomicU64::new(0),
                config,
            }),
        };
        let weak = Arc::downgrade(&runtime.inner);
        let due = runtime.inner.mirrors.count.clone();
        let settle = Box::new(move |address, bytes, borrowed| {
            if let Some(inner) = weak.upgrade() {
                Runtime { inner }.settle_for_good(address, bytes, borrowed);
            }
        });
        runtime.inner.memory.set_before_return(due, settle);
        runtime
    }

    /// The process's runtime, set up by the environment. Made at the first call and never
    /// torn down: programs still call it from their static destructors.
    pub fn global() -> &'static Runtime {
        GLOBAL.get_or_init(|| match Config::from_env() {
            Ok(config) => Self::build(config, None),
            Err(error) => Self::build(Config::default(), Some(error)),
        })
    }

    /// The GPU, started if need be; `None` where `mps` tensors live in host memory.
    ///
    /// # Errors
    /// [`Error::BackendUnavailable`] where what was asked for is not there.
    pub(crate) fn gpu(&self) -> Result<Option<&Arc<Gpu>>> {
        let gpu = self.inner.gpu.get_or_init(|| {
            let config = &self.inner.config;
            let gpu = match config.backend {
                Some(Backend::Host) => None,
                _ => Gpu::open(config)?.map(Arc::new),
            };
            if gpu.is_none() && config.backend.is_none() {
                log::warn!(
                    "no GPU adapter: mps tensors live in host memory (on Debian and Ubuntu, \
                     mesa-vulkan-drivers brings a Vulkan driver for the CPU)"
                );
            }
            self.inner.memory.attach(gpu.clone());
            if gpu.is_some() && GLOBAL.get().is_some_and(|it| Arc::ptr_eq(&it.inner, &self.inner)) {
                gpu::at_exit(finish_global);
            }
            Ok(gpu)
        });
        match gpu {
            Ok(Some(gpu)) => gpu.check().map(|()| Some(gpu)),
            Ok(None) => Ok(None),
            Err(error) => Err(error.clone()),
        }
    }

    /// The GPU, where it was started.
    fn started_gpu(&self) -> Option<&Arc<Gpu>> {
        self.inner.gpu.get()?.as_ref().ok()?.as_ref()
    }

    /// A tensor with memory of its own for the layout's extent; its contents are
    /// unspecified.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming the limit; what starting the GPU fails with.
    pub fn empty(&self, layout: Layout, dtype: DType, device: DeviceType) -> Result<Tensor> {
        self.empty_of(&layout.checked(), dtype, device)
    }

    /// As [`Runtime::empty`].
    pub(crate) fn empty_of(
        &self,
        layout: &Checked<'_>,
        dtype: DType,
        device: DeviceType,
    ) -> Result<Tensor> {
        if device == DeviceType::Mps {
            self.gpu()?;
        }
        let bytes = layout.end_bytes(dtype.size())?;
        log::trace!("empty {:?} {:?} {dtype} {device:?}", layout.sizes(), layout.strides());
        let storage = self.inner.memory.allocate(bytes, device)?;
        Tensor::with_dense(storage, layout, dtype, None)
    }

    /// A contiguous tensor of these sizes with `bytes` as its elements, row-major.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there are not as many bytes as elements need.
    pub fn from_bytes(
        &self,
        bytes: &[u8],
        sizes: &[i64],
        dtype: DType,
        device: DeviceType,
    ) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let needed = layout.packed_bytes(dtype.size())?;
        if needed != bytes.len() as u64 {
            return Err(Error::invalid(
                "bytes",
                format_args!("{} bytes", bytes.len()),
                format!("sizes {sizes:?} of {dtype} are {needed}"),
            ));
        }
        let tensor = self.empty(layout.clone(), dtype, device)?;
        self.write_bytes(&tensor, bytes)?;
        Ok(tensor)
    }

    /// A contiguous tensor of these sizes with `values` as its elements, row-major.
    ///
    /// # Errors
    /// As [`Runtime::from_bytes`]; also where `T` is not as large as an element.
    pub fn from_slice<T: bytemuck::NoUninit>(
        &self,
        values: &[T],
        sizes: &[i64],
        dtype: DType,
        device: DeviceType,
    ) -> Result<Tensor> {
        if size_of::<T>() != dtype.size() {
            return Err(Error::invalid("dtype", dtype, "its elements are of another size"));
        }
        self.from_bytes(bytemuck::cast_slice(values), sizes, dtype, device)
    }

    /// An allocation of device memory that is known by its address alone, until
    /// [`Runtime::free`]. 0 for 0 bytes.
    ///
    /// # Errors
    /// As [`Runtime::empty`].
    pub fn malloc(&self, bytes: u64) -> Result<usize> {
        self.gpu()?;
        log::trace!("malloc {bytes}");
        let storage = self.inner.memory.allocate(bytes, DeviceType::Mps)?;
        let address = storage.address();
        if address != 0 {
            self.inner.allocations.lock().insert(address, storage);
        }
        Ok(address)
    }

    /// Gives an allocation back. Its memory goes with the last tensor over it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address that [`Runtime::malloc`] did not return.
    pub fn free(&self, address: usize) -> Result<()> {
        if address == 0 {
            return Ok(());
        }
        let storage = self.inner.allocations.lock().remove(&address);
        storage.map(drop).ok_or_else(|| {
            Error::invalid(
                "ptr",
                format_args!("{address:#x}"),
                "no allocation starts there, or it was freed",
            )
        })
    }

    /// Submits what is recorded and waits for all of it.
    ///
    /// # Errors
    /// The first failure of queued work since the last call.
    pub fn synchronize(&self) -> Result<()> {
        let Some(gpu) = self.started_gpu() else { return Ok(()) };
        log::trace!("synchronize");
        gpu.check()?;
        gpu::outlive(|| self.finish(gpu))
    }

    fn finish(&self, gpu: &Gpu) -> Result<()> {
        let last = {
            let mut stream = self.inner.stream.lock();
            // What fails here is reported below, once.
            let _ = stream.flush(gpu);
            stream.current() - 1
        };
        self.wait_for(last)?;
        match self.inner.stream.lock().take_failure() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Seconds that the GPU spends on what `work` queues, by its own clock, and waits for it;
    /// `None` where the adapter has no timestamps.
    ///
    /// # Errors
    /// What `work` returns; the first failure of queued work.
    pub fn gpu_seconds(&self, work: impl FnOnce() -> Result<()>) -> Result<Option<f64>> {
        let timer = match self.gpu()? {
            Some(gpu) => Timer::new(gpu)?.map(|timer| (gpu, timer)),
            None => None,
        };
        let Some((gpu, timer)) = timer else {
            work()?;
            self.synchronize()?;
            return Ok(None);
        };
        self.synchronize()?;
        timer.start(gpu, &mut self.inner.stream.lock());
        let result = work();
        timer.stop(gpu, &mut self.inner.stream.lock());
        self.synchronize()?;
        result?;
        timer.seconds(gpu).map(Some)
    }

    /// Waits until a submission is complete; at once where it is, or for 0. One that failed
    /// is over as well: what it should have written says so.
    fn wait_for(&self, submission: u64) -> Result<()> {
        let Some(gpu) = self.started_gpu() else { return Ok(()) };
        if submission > gpu.completed() {
            gpu.check()?;
            let index = self.inner.stream.lock().reach(gpu, submission);
            match index {
                Ok(Some(index)) => gpu.wait(index)?,
                Ok(None) => {}
                Err(_) => gpu.check()?,
            }
        }
        self.settle_all()
    }

    /// Gives all memory in the pool back to the system.
    ///
    /// # Errors
    /// Those of the submission that this makes.
    pub fn trim(&self) -> Result<()> {
        self.inner.memory.empty_pool();
        self.inner.staging.lock().clear();
        match self.started_gpu() {
            Some(gpu) => gpu::outlive(|| self.inner.stream.lock().flush(gpu)),
            None => Ok(()),
        }
    }

    /// Dispatches a submission from now on; 0 or less for no limit.
    pub fn set_flush_interval(&self, dispatches: i32) {
        self.inner.stream.lock().set_interval(u32::try_from(dispatches).unwrap_or(0));
    }

    /// What the runtime holds and has done.
    pub fn stats(&self) -> Stats {
        let memory = self.inner.memory.stats();
        let counters = self.inner.stream.lock().counters().clone();
        Stats {
            live_storages: memory.live_storages,
            live_device_bytes: memory.live_device_bytes,
            live_host_bytes: memory.live_host_bytes,
            pooled_bytes: memory.pooled_bytes,
            pool_hits: memory.pool_hits,
            pool_misses: memory.pool_misses,
            dispatches: counters.dispatches.load(Relaxed),
            submits: counters.submits.load(Relaxed),
            packs: self.inner.packs.load(Relaxed),
            packs_skipped: self.inner.packs_skipped.load(Relaxed),
        }
    }

    /// The adapter in use; starts it.
    ///
    /// # Errors
    /// What starting the GPU fails with.
    pub fn adapter_info(&self) -> Result<AdapterInfo> {
        Ok(match self.gpu()? {
            Some(gpu) => {
                let info = gpu.info();
                AdapterInfo {
                    name: info.name.clone(),
                    backend: info.backend.into(),
                    device_type: info.device_type.into(),
                    driver: info.driver.clone(),
                    memory_mode: info.memory.name().into(),
                }
            }
            None => AdapterInfo {
                name: "host memory".into(),
                backend: Backend::Host.name().into(),
                device_type: "CPU".into(),
                driver: concat!("aoti-wgpu ", env!("CARGO_PKG_VERSION")).into(),
                memory_mode: "host".into(),
            },
        })
    }
}

/// Every adapter that `AOTI_WGPU_ADAPTER` may name, most preferred first.
pub fn list_adapters() -> Vec<AdapterInfo> {
    gpu::list_adapters()
        .into_iter()
        .map(|info| AdapterInfo {
            name: info.name,
            backend: info.backend.into(),
            device_type: info.device_type.into(),
            driver: info.driver,
            memory_mode: info.memory.name().into(),
        })
        .collect()
}
