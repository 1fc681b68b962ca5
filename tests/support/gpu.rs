//! A small bench for launches: two buffers, a staging buffer, pipelines by kernel.

use aoti_wgpu::copy::device::kernels::Kernel;
use aoti_wgpu::copy::device::{DeviceLimits, Launch};
use std::collections::HashMap;
use std::sync::Mutex;

pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    layout: wgpu::BindGroupLayout,
    pipelines: Mutex<HashMap<Kernel, wgpu::ComputePipeline>>,
}

impl Gpu {
    /// None where there is no adapter that runs compute shaders with immediates.
    pub fn new() -> Option<Gpu> {
        let instance =
            wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = pollster::block_on(instance.request_adapter(&options)).ok()?;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: adapter.limits(),
            ..Default::default()
        }))
        .ok()?;
        let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[entry(0, false), entry(1, true)],
        });
        Some(Gpu { device, queue, layout, pipelines: Mutex::default() })
    }

    pub fn limits(&self) -> DeviceLimits {
        let limits = self.device.limits();
        DeviceLimits {
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            offset_alignment: limits.min_storage_buffer_offset_alignment.into(),
            max_groups: limits.max_compute_workgroups_per_dimension,
        }
    }

    fn pipeline(&self, kernel: &Kernel) -> wgpu::ComputePipeline {
        let mut pipelines = self.pipelines.lock().unwrap();
        pipelines.entry(kernel.clone()).or_insert_with(|| self.compile(kernel)).clone()
    }

    fn compile(&self, kernel: &Kernel) -> wgpu::ComputePipeline {
        let source = wgpu::ShaderModuleDescriptor {
            label: Some(kernel.name),
            source: wgpu::ShaderSource::Wgsl(kernel.wgsl.into()),
        };
        let module = if std::env::var_os("COPY_UNCHECKED").is_some() {
            let checks = wgpu::ShaderRuntimeChecks::unchecked();
            // SAFETY: the kernels stay inside their bindings, and their loops end.
            unsafe { self.device.create_shader_module_trusted(source, checks) }
        } else {
            self.device.create_shader_module(source)
        };
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&self.layout)],
            immediate_size: 112,
        });
        let constants: Vec<_> =
            kernel.constants.iter().map(|&(name, value)| (name, f64::from(value))).collect();
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(kernel.name),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        })
    }

    pub fn buffer(&self, bytes: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes.next_multiple_of(16).max(16),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    pub fn upload(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        self.queue.write_buffer(buffer, 0, &padded);
    }

    pub fn download(&self, buffer: &wgpu::Buffer, offset: u64, bytes: usize) -> Vec<u8> {
        let size = (bytes as u64).next_multiple_of(4);
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., Result::unwrap);
        self.wait();
        staging.get_mapped_range(..).unwrap()[..bytes].to_vec()
    }

    pub fn wait(&self) {
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }

    /// Runs the launches `times` over in one submission, without waiting.
    pub fn run(&self, launches: &[Launch], dst: &wgpu::Buffer, src: &wgpu::Buffer, times: usize) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let binding = |buffer, range: &std::ops::Range<u64>| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset: range.start,
                size: Some((range.end - range.start).try_into().unwrap()),
            })
        };
        let prepared: Vec<_> = launches
            .iter()
            .map(|launch| {
                let bind = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &self.layout,
                    entries: &[
                        wgpu::BindGroupEntry { binding: 0, resource: binding(dst, &launch.dst) },
                        wgpu::BindGroupEntry { binding: 1, resource: binding(src, &launch.src) },
                    ],
                });
                (self.pipeline(&launch.kernel), bind)
            })
            .collect();
        for _ in 0..times {
            for (launch, (pipeline, bind)) in launches.iter().zip(&prepared) {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, bind, &[]);
                pass.set_immediates(0, bytemuck::cast_slice(&launch.params));
                let [x, y, z] = launch.groups;
                pass.dispatch_workgroups(x, y, z);
            }
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }
}
