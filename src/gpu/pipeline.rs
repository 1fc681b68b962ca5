//! Compute pipelines: compiled once a key, with the layout that their module asks for.

use super::Gpu;
use super::errors::scoped;
use super::faults;
use super::shader::{self, Origin};
use crate::error::{Error, Result};
use naga::{AddressSpace, StorageAccess};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// What a pipeline is compiled from.
pub enum Shader<'a> {
    /// WGSL text with one compute entry point, and values for its `override` constants.
    Wgsl {
        /// The text.
        text: &'static str,
        /// Names and values.
        constants: &'a [(&'static str, u32)],
        /// Bind every storage buffer read-write, so that several may be one buffer.
        aliased: bool,
    },
    /// A module with one compute entry point.
    Module {
        /// The module.
        module: Box<naga::Module>,
        /// As above.
        aliased: bool,
    },
}

/// What tells pipelines apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PipelineKey {
    /// A kernel of this crate: its file's stem and its constants.
    Builtin {
        /// The file's stem.
        name: &'static str,
        /// The constants.
        constants: SmallVec<[(&'static str, u32); 5]>,
        /// As in [`Shader::Wgsl`].
        aliased: bool,
    },
    /// A kernel that came from outside: a digest of its source and of how it is bound.
    Digest([u64; 4]),
}

/// A compiled kernel.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    pub(super) id: u64,
    /// A binding: whether it is read-write.
    pub(super) writable: SmallVec<[bool; 4]>,
    pub(super) immediate_bytes: u32,
}

type Slot = Arc<OnceLock<Result<Arc<Pipeline>>>>;

/// Every pipeline of a device. A failure to compile is kept too, as it would fail again,
/// unless it was for want of memory or of the device.
#[derive(Default)]
pub struct PipelineCache {
    slots: Mutex<FxHashMap<PipelineKey, Slot>>,
}

impl Gpu {
    /// The pipeline of this key, compiled from `shader()` at its first use; callers
    /// that come meanwhile wait for it.
    ///
    /// # Errors
    /// [`Error::Compile`] where the module is not valid, [`Error::Validation`] where
    /// the driver refuses it.
    pub fn pipeline<'a>(
        &self,
        key: &PipelineKey,
        shader: impl FnOnce() -> Result<Shader<'a>>,
    ) -> Result<Arc<Pipeline>> {
        let slot = {
            let mut slots = self.pipelines.slots.lock();
            match slots.get(key) {
                Some(slot) => slot.clone(),
                None => slots.entry(key.clone()).or_default().clone(),
            }
        };
        let result = slot
            .get_or_init(|| {
                let compiled = self.compile(shader()?).map(Arc::new);
                if let Some(cache) = &self.disk_cache {
                    cache.save();
                }
                compiled
            })
            .clone();
        if let Err(Error::OutOfMemory { .. } | Error::DeviceLost(_)) = &result {
            let mut slots = self.pipelines.slots.lock();
            if slots.get(key).is_some_and(|kept| Arc::ptr_eq(kept, &slot)) {
                slots.remove(key);
            }
        }
        result
    }

    fn compile(&self, shader: Shader<'_>) -> Result<Pipeline> {
        self.faults.check()?;
        let shader = match faults::compile_fails() {
            true => Shader::Wgsl { text: "no shader", constants: &[], aliased: false },
            false => shader,
        };
        let (module, constants, origin) = match shader {
            Shader::Module { mut module, aliased } => {
                if aliased {
                    bind_read_write(&mut module);
                }
                (*module, Vec::new(), Origin::Program)
            }
            Shader::Wgsl { text, constants, aliased } => {
                let mut module = naga::front::wgsl::parse_str(text)
                    .map_err(|error| Error::Compile(error.emit_to_string(text)))?;
                if aliased {
                    bind_read_write(&mut module);
                }
                let constants = constants.iter().map(|&(n, v)| (n, f64::from(v))).collect();
                (module, constants, Origin::Own)
            }
        };
        let entry = module
            .entry_points
            .first()
            .map(|e| e.name.clone())
            .ok_or_else(|| Error::Compile("the module has no entry point".into()))?;
        let writable = storage_bindings(&module)?;
        let immediate_bytes = immediate_bytes(&module);
        let entries: Vec<_> = (0u32..)
            .zip(&writable)
            .map(|(binding, &writable)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: !writable },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        scoped(&self.device, "compiling a kernel", || {
            let module = shader::create(&self.device, module, origin);
            let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            });
            let pipeline_layout =
                self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: None,
                    bind_group_layouts: &[Some(&layout)],
                    immediate_size: immediate_bytes,
                });
            let raw = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(&entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants: &constants,
                    // Every kernel writes its workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                },
                cache: self.disk_cache.as_ref().map(|cache| cache.raw()),
            });
            Pipeline { raw, layout, id: self.next_id(), writable, immediate_bytes }
        })
    }
}

/// Makes every storage buffer of the module read-write, because wgpu accepts one
/// buffer at two bindings of a dispatch only so.
fn bind_read_write(module: &mut naga::Module) {
    let handles: Vec<_> = module.global_variables.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        if let AddressSpace::Storage { access } = &mut module.global_variables.get_mut(handle).space
        {
            *access |= StorageAccess::LOAD | StorageAccess::STORE;
        }
    }
}

/// A binding of group 0, counted from 0: whether it is read-write.
fn storage_bindings(module: &naga::Module) -> Result<SmallVec<[bool; 4]>> {
    let mut bindings: Vec<(u32, bool)> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| match variable.space {
            AddressSpace::Storage { access } => Some((
                variable.binding.as_ref()?.binding,
                access.intersects(StorageAccess::STORE | StorageAccess::ATOMIC),
            )),
            _ => None,
        })
        .collect();
    bindings.sort_unstable();
    if bindings.iter().zip(0u32..).any(|(&(binding, _), i)| binding != i) {
        return Err(Error::Compile(format!("bindings {bindings:?} do not count up from 0")));
    }
    Ok(bindings.into_iter().map(|(_, writable)| writable).collect())
}

fn immediate_bytes(module: &naga::Module) -> u32 {
    module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == AddressSpace::Immediate)
        .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()))
        .max()
        .unwrap_or(0)
}
