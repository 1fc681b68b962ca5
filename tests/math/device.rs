//! One compute entry point a function: words in, words out.

use crate::cases::{Case, Shape};
use crate::{random, text};
use std::sync::Mutex;
use wgpu::util::DeviceExt;

pub struct Device {
    device: wgpu::Device,
    queue: wgpu::Queue,
    module: wgpu::ShaderModule,
    pub name: String,
    /// Whether arithmetic takes or gives zero for a denormal.
    pub flushes: bool,
    one_at_a_time: Mutex<()>,
}

fn seeded(call: &str) -> String {
    call.replace("SEED", random::SEED).replace("INDEX", random::INDEX)
}

fn entry_point(case: &Case) -> String {
    let name = case.name;
    let a = "bitcast<f32>(test_a[i])";
    let b = "bitcast<f32>(test_b[i])";
    let n = "bitcast<i32>(test_b[i])";
    let call = match case.shape {
        Shape::Unary(_) => format!("bitcast<u32>({name}({a}))"),
        Shape::Predicate(_) => format!("select(0u, 1u, {name}({a}))"),
        Shape::Binary(_) => format!("bitcast<u32>({name}({a}, {b}))"),
        Shape::Degree(_) => format!("bitcast<u32>({name}({a}, {n}))"),
        Shape::Order(_) => format!("bitcast<u32>({name}({n}, {a}))"),
        Shape::Seeded(call, _) => format!("bitcast<u32>({})", seeded(call)),
        Shape::Words(call, _) => seeded(call),
    };
    let words = match case.shape {
        Shape::Seeded(..) | Shape::Words(..) => "let a = test_a[i];\nlet b = test_b[i];\n",
        _ => "",
    };
    format!(
        "@compute @workgroup_size(64) fn test_{name}(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
         let i = id.x;\n if (i >= arrayLength(&test_out)) {{ return; }}\n{words}test_out[i] = {call};\n}}\n"
    )
}

fn entry_points(cases: &[Case]) -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read> test_a: array<u32>;\n\
         @group(0) @binding(1) var<storage, read> test_b: array<u32>;\n\
         @group(0) @binding(2) var<storage, read_write> test_out: array<u32>;\n",
    );
    text.extend(cases.iter().map(entry_point));
    text
}

impl Device {
    /// `None` where there is no adapter; a failure after that is a panic, which fails the run.
    pub fn open(cases: &[Case]) -> Option<Self> {
        let instance =
            wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = pollster::block_on(instance.request_adapter(&options)).ok()?;
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
        // Half the smallest normal number, times 1.5 in arithmetic.
        let probe = Case::words("flush_probe", "bitcast<u32>(bitcast<f32>(a) * bitcast<f32>(b))");
        let source = text::whole() + &entry_points(cases) + &entry_point(&probe);
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let name = adapter.get_info().name;
        let mut opened =
            Self { device, queue, module, name, flushes: false, one_at_a_time: Mutex::new(()) };
        opened.flushes = opened.run(&probe, &[0x0040_0000], &[1.5f32.to_bits()]) != [0x0060_0000];
        Some(opened)
    }

    /// The results of `case` at `a[i], b[i]`, as bits.
    pub fn run(&self, case: &Case, a: &[u32], b: &[u32]) -> Vec<u32> {
        let _held = self.one_at_a_time.lock().unwrap_or_else(|e| e.into_inner());
        let entry = format!("test_{}", case.name);
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &self.module,
            entry_point: Some(&entry),
            compilation_options: Default::default(),
            cache: None,
        });
        let bytes = (a.len() * 4) as u64;
        let upload = |words: &[u32]| {
            self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: None,
                contents: bytemuck::cast_slice(words),
                usage: wgpu::BufferUsages::STORAGE,
            })
        };
        let buffer = |usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        };
        let (a_buffer, b_buffer) = (upload(a), upload(b));
        let out = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let read = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let mut entries =
            vec![wgpu::BindGroupEntry { binding: 0, resource: a_buffer.as_entire_binding() }];
        if case.shape.uses_second() {
            entries
                .push(wgpu::BindGroupEntry { binding: 1, resource: b_buffer.as_entire_binding() });
        }
        entries.push(wgpu::BindGroupEntry { binding: 2, resource: out.as_entire_binding() });
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(a.len().div_ceil(64) as u32, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&out, 0, &read, 0, bytes);
        self.queue.submit([encoder.finish()]);
        read.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let mapped = read.get_mapped_range(..).unwrap();
        bytemuck::cast_slice(&mapped).to_vec()
    }
}
