//! Choosing an adapter and opening its device.

use super::buffer::{self, Buffer, BufferKind};
use super::disk_cache::DiskCache;
use super::errors::{Faults, scoped};
use super::fork;
use super::pipeline::PipelineCache;
use crate::config::{Backend, Config, MemoryMode};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What a user wants to know of the adapter in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterInfo {
    /// The adapter's own name.
    pub name: String,
    /// `vulkan`, `metal`, `dx12` or `host`.
    pub backend: &'static str,
    /// `discrete GPU`, `integrated GPU`, `virtual GPU`, `CPU` or `other`.
    pub device_type: &'static str,
    /// The driver's name and version.
    pub driver: String,
    /// Where `mps` tensors live.
    pub memory: MemoryMode,
}

/// An open device.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) backend: Backend,
    pub(super) features: wgpu::Features,
    pub(super) limits: wgpu::Limits,
    pub(super) faults: Arc<Faults>,
    pub(super) pipelines: PipelineCache,
    pub(super) disk_cache: Option<DiskCache>,
    /// Buffers that the pool gave up; destroyed once no recorded work names them.
    pub(super) graveyard: Mutex<Vec<Arc<Buffer>>>,
    /// The last submission that is known to be complete.
    pub(super) completed: Arc<AtomicU64>,
    next_id: AtomicU64,
    empty: OnceLock<Arc<Buffer>>,
    info: AdapterInfo,
    cpu: bool,
    /// The least and the most invocations of a subgroup.
    subgroup_sizes: [u32; 2],
}

/// The least that kernels need: their parameters are immediates of this many bytes.
const IMMEDIATE_BYTES: u32 = 128;

impl Gpu {
    /// Opens the adapter that `config` asks for; `None` where there is none and none
    /// was asked for by name.
    ///
    /// # Errors
    /// [`Error::BackendUnavailable`] where what was asked for is not there, with the
    /// way to get it.
    pub fn open(config: &Config) -> Result<Option<Self>> {
        let adapters = candidates(config.backend);
        let chosen = match &config.adapter {
            Some(wanted) => Some(pick(&adapters, wanted)?),
            None => adapters.iter().min_by_key(|a| preference(a.get_info().device_type)),
        };
        let Some(adapter) = chosen else {
            return match config.backend {
                None => Ok(None),
                Some(backend) => Err(missing(backend)),
            };
        };
        Self::from_adapter(adapter, config).map(Some)
    }

    fn from_adapter(adapter: &wgpu::Adapter, config: &Config) -> Result<Self> {
        let info = adapter.get_info();
        let available = adapter.features();
        let limits = adapter.limits();
        if !available.contains(wgpu::Features::IMMEDIATES)
            || limits.max_immediate_size < IMMEDIATE_BYTES
        {
            return Err(Error::NotSupported(format!(
                "adapter {}: {} bytes of immediates, {IMMEDIATE_BYTES} are needed",
                info.name, limits.max_immediate_size
            )));
        }
        let features = available
            & (wgpu::Features::IMMEDIATES
                | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS
                | wgpu::Features::SHADER_INT64
                | wgpu::Features::SUBGROUP
                | wgpu::Features::TIMESTAMP_QUERY
                | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
                | wgpu::Features::PIPELINE_CACHE);
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("aoti-wgpu"),
            required_features: features,
            required_limits: limits.clone(),
            ..Default::default()
        }))
        .map_err(|error| Error::BackendUnavailable(format!("adapter {}: {error}", info.name)))?;
        let faults = Faults::install(&device);
        fork::watch();
        let backend = backend_of(info.backend)?;
        let mut gpu = Gpu {
            pipelines: PipelineCache::default(),
            disk_cache: config
                .cache_dir
                .as_deref()
                .and_then(|folder| DiskCache::open(&device, &info, folder)),
            graveyard: Mutex::default(),
            completed: Arc::default(),
            next_id: AtomicU64::new(1),
            empty: OnceLock::new(),
            cpu: info.device_type == wgpu::DeviceType::Cpu,
            subgroup_sizes: [info.subgroup_min_size, info.subgroup_max_size],
            info: AdapterInfo {
                name: info.name.clone(),
                backend: backend.name(),
                device_type: type_name(info.device_type),
                driver: join(&info.driver, &info.driver_info),
                memory: MemoryMode::Device,
            },
            device,
            queue,
            backend,
            features,
            limits,
            faults,
        };
        gpu.info.memory = gpu.memory_mode(config.memory, info.device_type)?;
        log::info!(
            "{} ({}, {}, {} memory)",
            gpu.info.name,
            gpu.info.backend,
            gpu.info.device_type,
            gpu.info.memory.name()
        );
        Ok(gpu)
    }

    /// Unified where the hardware is and a host-visible storage buffer can be made.
    fn memory_mode(
        &self,
        asked: Option<MemoryMode>,
        device_type: wgpu::DeviceType,
    ) -> Result<MemoryMode> {
        let native = match device_type {
            wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu => MemoryMode::Unified,
            _ => MemoryMode::Device,
        };
        if asked.unwrap_or(native) == MemoryMode::Device {
            return Ok(MemoryMode::Device);
        }
        match buffer::probe_unified(self) {
            Ok(()) => Ok(MemoryMode::Unified),
            Err(error) if asked.is_some() => Err(Error::NotSupported(format!(
                "AOTI_WGPU_MEMORY=unified on {}: {error}",
                self.info.name
            ))),
            Err(error) => {
                log::warn!("{}: no host-visible storage buffers ({error})", self.info.name);
                Ok(MemoryMode::Device)
            }
        }
    }

    /// Whether work can be given to the device.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], also in the child of a `fork`, which has no device.
    pub fn check(&self) -> Result<()> {
        fork::check()?;
        self.faults.check()
    }

    /// What the adapter is.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// Whether the adapter computes on the CPU, where a host copy beats a dispatch.
    pub fn is_cpu(&self) -> bool {
        self.cpu
    }

    /// Whether kernels may use 64-bit integers.
    pub fn has_int64(&self) -> bool {
        self.features.contains(wgpu::Features::SHADER_INT64)
    }

    /// The least and the most invocations of a subgroup, where kernels may use those.
    pub fn subgroup_sizes(&self) -> Option<[u32; 2]> {
        self.features.contains(wgpu::Features::SUBGROUP).then_some(self.subgroup_sizes)
    }

    /// Whether a product of four bytes with four may be taken for one instruction. It is
    /// several in Metal's language.
    pub fn multiplies_bytes(&self) -> bool {
        matches!(self.backend, Backend::Vulkan | Backend::Dx12)
    }

    /// The most invocations of a workgroup that has one dimension.
    pub fn max_invocations(&self) -> u32 {
        let all = self.limits.max_compute_invocations_per_workgroup;
        all.min(self.limits.max_compute_workgroup_size_x)
    }

    /// The device's limits.
    pub fn limits(&self) -> &wgpu::Limits {
        &self.limits
    }

    /// The last submission that is known to be complete.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// A number that no other buffer, layout or pipeline of this device has.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A buffer that stands for memory without bytes: bindings cannot be empty.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn empty_buffer(&self) -> Result<&Arc<Buffer>> {
        match self.empty.get() {
            Some(buffer) => Ok(buffer),
            None => {
                let buffer = Buffer::new(self, 256, BufferKind::Device)?;
                Ok(self.empty.get_or_init(|| Arc::new(buffer)))
            }
        }
    }

    /// Writes `bytes` (a multiple of 4) to the start of a buffer that no GPU work uses,
    /// before anything that is submitted later.
    ///
    /// # Errors
    /// What wgpu has against it.
    pub fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        scoped(&self.device, "writing a buffer", || {
            self.queue.write_buffer(buffer.raw(), 0, bytes);
        })
    }

    /// Frees at once what is left to be destroyed and no work uses, where memory is short.
    pub fn reclaim(&self) {
        let _ = self.device.poll(wgpu::PollType::Poll);
        let completed = self.completed();
        // They stay listed: bind groups that name them go with the next submission.
        for buffer in self.graveyard.lock().iter() {
            if buffer.usage().last_use() <= completed {
                buffer.raw().destroy();
            }
        }
    }

    /// Leaves a buffer to be destroyed once no recorded work names it.
    pub fn bury(&self, buffer: Arc<Buffer>) {
        self.graveyard.lock().push(buffer);
    }
}

/// Every adapter that could be used, most preferred first, as `AOTI_WGPU_ADAPTER`
/// counts them.
pub fn list_adapters() -> Vec<AdapterInfo> {
    candidates(None)
        .iter()
        .filter_map(|adapter| {
            let info = adapter.get_info();
            let device_type = info.device_type;
            Some(AdapterInfo {
                backend: backend_of(info.backend).ok()?.name(),
                device_type: type_name(device_type),
                driver: join(&info.driver, &info.driver_info),
                memory: match device_type {
                    wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu => MemoryMode::Unified,
                    _ => MemoryMode::Device,
                },
                name: info.name,
            })
        })
        .collect()
}

fn candidates(backend: Option<Backend>) -> Vec<wgpu::Adapter> {
    let backends = match backend {
        Some(Backend::Host) => return Vec::new(),
        Some(Backend::Vulkan) => wgpu::Backends::VULKAN,
        Some(Backend::Metal) => wgpu::Backends::METAL,
        Some(Backend::Dx12) => wgpu::Backends::DX12,
        None => wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
    };
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = backends;
    // Validation layers cost time and print to the terminal; a user turns them on
    // with WGPU_DEBUG and WGPU_VALIDATION.
    desc.flags = wgpu::InstanceFlags::empty().with_env();
    let instance = wgpu::Instance::new(desc);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(backends));
    adapters.sort_by_key(|a| preference(a.get_info().device_type));
    adapters
}

fn pick<'a>(adapters: &'a [wgpu::Adapter], wanted: &str) -> Result<&'a wgpu::Adapter> {
    let by_index = wanted.parse::<usize>().ok().and_then(|i| adapters.get(i));
    let lower = wanted.to_lowercase();
    by_index
        .or_else(|| adapters.iter().find(|a| a.get_info().name.to_lowercase().contains(&lower)))
        .ok_or_else(|| {
            let names: Vec<_> = adapters.iter().map(|a| a.get_info().name).collect();
            Error::BackendUnavailable(format!(
                "AOTI_WGPU_ADAPTER is {wanted}: no adapter has this index or name among {names:?}"
            ))
        })
}

fn preference(device_type: wgpu::DeviceType) -> u32 {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn missing(backend: Backend) -> Error {
    let how = match backend {
        Backend::Vulkan => {
            "install a Vulkan driver; on Debian and Ubuntu the package mesa-vulkan-drivers \
             holds those of most GPUs and one for the CPU"
        }
        Backend::Metal => "Metal is part of macOS and iOS alone",
        Backend::Dx12 => "Direct3D 12 is part of Windows alone",
        Backend::Host => "the host backend needs no driver",
    };
    Error::BackendUnavailable(format!(
        "AOTI_WGPU_BACKEND is {}: this machine has no such adapter ({how}); \
         AOTI_WGPU_BACKEND=host runs without a GPU",
        backend.name()
    ))
}

fn backend_of(backend: wgpu::Backend) -> Result<Backend> {
    match backend {
        wgpu::Backend::Vulkan => Ok(Backend::Vulkan),
        wgpu::Backend::Metal => Ok(Backend::Metal),
        wgpu::Backend::Dx12 => Ok(Backend::Dx12),
        other => Err(Error::NotSupported(format!("the {other} backend of wgpu"))),
    }
}

fn type_name(device_type: wgpu::DeviceType) -> &'static str {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Cpu => "CPU",
        wgpu::DeviceType::Other => "other",
    }
}

fn join(driver: &str, version: &str) -> String {
    [driver, version].iter().filter(|s| !s.is_empty()).copied().collect::<Vec<_>>().join(" ")
}
