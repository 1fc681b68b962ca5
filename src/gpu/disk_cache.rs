//! Compiled pipelines kept between processes, where the adapter has a pipeline cache.
#![allow(unsafe_code)]

use super::errors::scoped;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// The driver's cache and the file that it is kept in.
#[derive(Debug)]
pub struct DiskCache {
    raw: wgpu::PipelineCache,
    file: PathBuf,
    /// Bytes that were last written: a driver's cache only grows.
    saved: Mutex<usize>,
}

impl DiskCache {
    /// The cache in `folder`, with what an earlier process left there; `None` where the
    /// adapter has none, or the folder cannot be made (which is logged).
    pub fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo, folder: &Path) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            log::warn!("AOTI_WGPU_CACHE_DIR: {} has no pipeline cache", info.name);
            return None;
        }
        let file = folder.join(wgpu::util::pipeline_cache_key(info)?);
        if let Err(error) = std::fs::create_dir_all(folder) {
            log::warn!("AOTI_WGPU_CACHE_DIR: {}: {error}", folder.display());
            return None;
        }
        let data = std::fs::read(&file).ok();
        let desc = wgpu::PipelineCacheDescriptor {
            label: None,
            data: data.as_deref(),
            // What the driver does not recognise starts a cache anew.
            fallback: true,
        };
        let made = scoped(device, "opening the pipeline cache", || {
            // SAFETY: the file is written by `save` alone, under a name that holds the
            // adapter's identity, whole or not at all; wgpu checks header, adapter and
            // driver version before the driver sees the data. That nobody else writes to
            // the folder that the user named is the user's to see to.
            unsafe { device.create_pipeline_cache(&desc) }
        });
        match made {
            Ok(raw) => {
                Some(DiskCache { raw, file, saved: Mutex::new(data.map_or(0, |d| d.len())) })
            }
            Err(error) => {
                log::warn!("{}: {error}", file.display());
                None
            }
        }
    }

    /// The driver's cache, for a pipeline to be made with.
    pub fn raw(&self) -> &wgpu::PipelineCache {
        &self.raw
    }

    /// Writes what has been compiled since the last time. A failure is logged: the cache is
    /// a convenience.
    pub fn save(&self) {
        let Some(data) = self.raw.get_data() else { return };
        let mut saved = self.saved.lock();
        if data.len() == *saved {
            return;
        }
        // Renamed into place, so that another process never reads half a file.
        let part = self.file.with_extension(format!("{}.part", std::process::id()));
        let written =
            std::fs::write(&part, &data).and_then(|()| std::fs::rename(&part, &self.file));
        match written {
            Ok(()) => *saved = data.len(),
            Err(error) => log::warn!("{}: {error}", self.file.display()),
        }
    }
}
