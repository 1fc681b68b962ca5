//! What the environment asks for, read once when a runtime is made.

use crate::error::{Error, Result};

/// The API that the GPU is reached through, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// No GPU: `mps` tensors live in host memory and host plans serve them.
    Host,
    /// Vulkan.
    Vulkan,
    /// Metal.
    Metal,
    /// Direct3D 12.
    Dx12,
}

impl Backend {
    /// The name that `AOTI_WGPU_BACKEND` uses.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Host => "host",
            Backend::Vulkan => "vulkan",
            Backend::Metal => "metal",
            Backend::Dx12 => "dx12",
        }
    }
}

/// Where `mps` tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryMode {
    /// The host reads and writes GPU buffers through their pointers.
    Unified,
    /// Pointers are reserved addresses; data moves through staging buffers.
    Device,
}

impl MemoryMode {
    /// The name that `AOTI_WGPU_MEMORY` uses.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryMode::Unified => "unified",
            MemoryMode::Device => "device",
        }
    }
}

/// Who runs a copy plan between two buffers that both host and GPU can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyEngine {
    /// The host on a CPU adapter, the GPU elsewhere.
    #[default]
    Auto,
    /// Always compute shaders.
    Gpu,
    /// Always the host, where it can reach both.
    Host,
}

/// What a view with holes becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Views {
    /// A packed view: contiguous strides, a dense buffer of its own.
    #[default]
    Packed,
    /// A plain strided view: strides as asked, pointer into the base.
    Strided,
}

/// How a runtime is set up. [`Config::from_env`] reads every field from its variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `AOTI_WGPU_BACKEND`: `host`, `vulkan`, `metal` or `dx12`.
    pub backend: Option<Backend>,
    /// `AOTI_WGPU_ADAPTER`: part of an adapter's name, or its index.
    pub adapter: Option<String>,
    /// `AOTI_WGPU_MEMORY`: `unified` or `device`.
    pub memory: Option<MemoryMode>,
    /// `AOTI_WGPU_COPY`: `auto`, `gpu` or `host`.
    pub copy: CopyEngine,
    /// `AOTI_WGPU_VIEWS`: `packed` or `strided`.
    pub views: Views,
    /// `ET_METAL_BUFFER_POOL_SIZE_MB`: bytes of freed buffers that are kept.
    pub pool_bytes: u64,
    /// `ET_METAL_FLUSH_INTERVAL`: dispatches a submission.
    pub flush_interval: u32,
    /// `AOTI_WGPU_MEMORY_LIMIT_MB`: the most bytes of device memory that may be allocated.
    pub memory_limit: Option<u64>,
    /// `AOTI_WGPU_CACHE_DIR`: where compiled pipelines are kept between processes.
    pub cache_dir: Option<std::path::PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            backend: None,
            adapter: None,
            memory: None,
            copy: CopyEngine::Auto,
            views: Views::Packed,
            pool_bytes: 256 << 20,
            flush_interval: 64,
            memory_limit: None,
            cache_dir: None,
        }
    }
}

impl Config {
    /// The configuration that the process's environment asks for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the variable whose value is not one of its choices.
    pub fn from_env() -> Result<Self> {
        Self::from_lookup(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_lookup(get: impl Fn(&'static str) -> Option<String>) -> Result<Self> {
        let mebibytes = |name| -> Result<Option<u64>> {
            let Some(text) = get(name) else { return Ok(None) };
            text.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << 20)).map(Some).ok_or_else(
                || Error::invalid(name, text, "a whole number of mebibytes is expected"),
            )
        };
        let default = Config::default();
        Ok(Config {
            backend: choose(
                &get,
                "AOTI_WGPU_BACKEND",
                &[Backend::Host, Backend::Vulkan, Backend::Metal, Backend::Dx12],
                |b| b.name(),
            )?,
            adapter: get("AOTI_WGPU_ADAPTER"),
            memory: choose(
                &get,
                "AOTI_WGPU_MEMORY",
                &[MemoryMode::Unified, MemoryMode::Device],
                |m| m.name(),
            )?,
            copy: choose(
                &get,
                "AOTI_WGPU_COPY",
                &[CopyEngine::Auto, CopyEngine::Gpu, CopyEngine::Host],
                |c| match c {
                    CopyEngine::Auto => "auto",
                    CopyEngine::Gpu => "gpu",
                    CopyEngine::Host => "host",
                },
            )?
            .unwrap_or_default(),
            views: choose(
                &get,
                "AOTI_WGPU_VIEWS",
                &[Views::Packed, Views::Strided],
                |v| match v {
                    Views::Packed => "packed",
                    Views::Strided => "strided",
                },
            )?
            .unwrap_or_default(),
            pool_bytes: mebibytes("ET_METAL_BUFFER_POOL_SIZE_MB")?.unwrap_or(default.pool_bytes),
            flush_interval: match get("ET_METAL_FLUSH_INTERVAL") {
                None => default.flush_interval,
                Some(text) => text.parse().map_err(|_| {
                    Error::invalid(
                        "ET_METAL_FLUSH_INTERVAL",
                        text,
                        "a whole number of dispatches is expected, 0 for no limit",
                    )
                })?,
            },
            memory_limit: mebibytes("AOTI_WGPU_MEMORY_LIMIT_MB")?,
            cache_dir: get("AOTI_WGPU_CACHE_DIR").map(Into::into),
        })
    }
}

fn choose<T: Copy>(
    get: impl Fn(&'static str) -> Option<String>,
    name: &'static str,
    choices: &[T],
    text_of: impl Fn(&T) -> &'static str,
) -> Result<Option<T>> {
    let Some(text) = get(name) else { return Ok(None) };
    match choices.iter().find(|&choice| text_of(choice).eq_ignore_ascii_case(&text)) {
        Some(&choice) => Ok(Some(choice)),
        None => {
            let names: Vec<_> = choices.iter().map(text_of).collect();
            Err(Error::invalid(name, text, format!("one of {} is expected", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_refused_by_name() {
        let get = |name: &'static str| match name {
            "AOTI_WGPU_BACKEND" => Some("Vulkan".into()),
            "ET_METAL_BUFFER_POOL_SIZE_MB" => Some("3".into()),
            _ => None,
        };
        let config = Config::from_lookup(get).unwrap();
        assert_eq!(config.backend, Some(Backend::Vulkan));
        assert_eq!(config.pool_bytes, 3 << 20);
        for name in [
            "AOTI_WGPU_BACKEND",
            "AOTI_WGPU_MEMORY",
            "AOTI_WGPU_COPY",
            "AOTI_WGPU_VIEWS",
            "ET_METAL_BUFFER_POOL_SIZE_MB",
            "ET_METAL_FLUSH_INTERVAL",
            "AOTI_WGPU_MEMORY_LIMIT_MB",
        ] {
            let text = Config::from_lookup(|n| (n == name).then(|| "opengl".into()))
                .unwrap_err()
                .to_string();
            assert!(text.contains(name) && text.contains("opengl"), "{text}");
        }
    }
}
