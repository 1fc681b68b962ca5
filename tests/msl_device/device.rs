//! Runs one kernel on an adapter.

use std::sync::Mutex;

use aoti_wgpu::msl::{Layout, Library, ParamKind, ParamsPlace};
use wgpu::util::DeviceExt;

pub struct Device {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pub int64: bool,
    immediate_bytes: u32,
    pub name: String,
    one_at_a_time: Mutex<()>,
}

/// An argument, in the order of a kernel's parameters.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// The storage and the byte offset in it.
    Buffer(usize, u32),
    Int(i64),
}

/// How a kernel is dispatched.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    pub grid: [u32; 3],
    pub group: [u32; 3],
    /// Groups in x of the folded dispatch, where it is to be folded.
    pub fold: Option<u32>,
    /// Whether parameter words come from a buffer.
    pub words_in_storage: bool,
}

impl Dispatch {
    pub fn linear(threads: usize) -> Self {
        Self {
            grid: [threads as u32, 1, 1],
            group: [64, 1, 1],
            fold: None,
            words_in_storage: false,
        }
    }

    pub fn rows(rows: u32, width: u32) -> Self {
        Self { grid: [rows, width, 1], group: [1, width, 1], fold: None, words_in_storage: false }
    }
}

impl Device {
    pub fn open() -> Option<Self> {
        let instance =
            wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = pollster::block_on(instance.request_adapter(&options)).ok()?;
        let wanted = wgpu::Features::SHADER_INT64 | wgpu::Features::IMMEDIATES;
        let features = adapter.features() & wanted;
        let descriptor = wgpu::DeviceDescriptor {
            required_features: features,
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
        Some(Self {
            device,
            queue,
            int64: features.contains(wgpu::Features::SHADER_INT64),
            immediate_bytes: match features.contains(wgpu::Features::IMMEDIATES) {
                true => adapter.limits().max_immediate_size,
                false => 0,
            },
            name: adapter.get_info().name,
            one_at_a_time: Mutex::new(()),
        })
    }

    /// Runs the source's only kernel; the storages hold the results then. Their sizes are
    /// multiples of 4.
    pub fn run(
        &self,
        source: &str,
        storages: &mut [Vec<u8>],
        args: &[Arg],
        dispatch: Dispatch,
    ) -> Result<(), String> {
        let _held = self.one_at_a_time.lock().unwrap_or_else(|error| error.into_inner());
        let library = Library::parse(source).map_err(|error| error.to_string())?;
        let kernel = library.kernels().next().ok_or("no kernel")?;
        assert_eq!(kernel.params().len(), args.len(), "arguments of {}", kernel.name());
        // A storage is a slot, in the order of first use.
        let mut order: Vec<usize> = Vec::new();
        let mut slots = Vec::new();
        let (mut offsets, mut ints) = (Vec::new(), Vec::new());
        for (param, arg) in kernel.params().iter().zip(args) {
            match (*arg, param.kind) {
                (Arg::Buffer(storage, offset), ParamKind::Buffer { .. }) => {
                    let slot = order.iter().position(|&known| known == storage);
                    let slot = slot.unwrap_or_else(|| {
                        order.push(storage);
                        order.len() - 1
                    });
                    slots.push(slot as u32);
                    offsets.push(offset);
                }
                (Arg::Int(value), ParamKind::Int) => ints.push(value),
                _ => panic!("argument {} is of another kind", param.name),
            }
        }
        let max_immediate_bytes = if dispatch.words_in_storage { 0 } else { self.immediate_bytes };
        let layout =
            Layout { slots: &slots, group: dispatch.group, max_immediate_bytes, int64: self.int64 };
        let program = kernel.lower(&layout).map_err(|error| error.to_string())?;

        let groups: [u32; 3] =
            std::array::from_fn(|d| dispatch.grid[d].div_ceil(dispatch.group[d]));
        let mut words = dispatch.grid.to_vec();
        words.extend(groups);
        words.extend(offsets);
        for value in ints {
            words.extend([value as u32, (value >> 32) as u32]);
        }
        words.resize(program.words.count() as usize, 0);

        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
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
        let mut entries: Vec<_> = program
            .writable
            .iter()
            .zip(0..)
            .map(|(&writable, slot)| entry(slot, !writable))
            .collect();
        let immediate_size = match program.params {
            ParamsPlace::Immediates => program.words.bytes(),
            ParamsPlace::Storage { binding } => {
                entries.push(entry(binding, true));
                0
            }
        };
        let bind_layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&bind_layout)],
            immediate_size,
        });
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Naga(std::borrow::Cow::Owned(program.module)),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let upload = |contents: &[u8]| {
            self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: None,
                contents,
                usage,
            })
        };
        let mut buffers: Vec<_> = order.iter().map(|&storage| upload(&storages[storage])).collect();
        if let ParamsPlace::Storage { .. } = program.params {
            buffers.push(upload(bytemuck::cast_slice(&words)));
        }
        let entries: Vec<_> = buffers
            .iter()
            .zip(0..)
            .map(|(buffer, binding)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &bind_layout,
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            if program.params == ParamsPlace::Immediates {
                pass.set_immediates(0, bytemuck::cast_slice(&words));
            }
            let [x, y, z] = match dispatch.fold {
                Some(width) => [width, (groups[0] * groups[1] * groups[2]).div_ceil(width), 1],
                None => groups,
            };
            pass.dispatch_workgroups(x, y, z);
        }
        let mut reads = Vec::new();
        for (buffer, &storage) in buffers.iter().zip(&order) {
            let size = storages[storage].len() as u64;
            let read = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            encoder.copy_buffer_to_buffer(buffer, 0, &read, 0, size);
            reads.push(read);
        }
        self.queue.submit([encoder.finish()]);
        if let Some(error) = pollster::block_on(scope.pop()) {
            return Err(error.to_string());
        }
        for (read, &storage) in reads.iter().zip(&order) {
            read.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
            self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            storages[storage].copy_from_slice(&read.get_mapped_range(..).unwrap());
        }
        Ok(())
    }
}
