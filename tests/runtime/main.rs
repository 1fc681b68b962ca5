//! The runtime on a device: views, transfers, order and life cycle, in both memory modes
//! and on the host backend. Without an adapter the tests of a GPU show as ignored.

mod attention;
mod cases;
mod convolution;
mod copies;
mod kernels;
mod life;
mod operators;
mod selections;
mod views;

use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{Backend, Config, CopyEngine, MemoryMode, Runtime, list_adapters};
use aoti_wgpu::tensor::{DeviceType, Tensor};
use libtest_mimic::{Arguments, Failed, Trial};

/// What a test runs on: a runtime of its own.
pub struct World {
    pub rt: Runtime,
    pub memory: Option<MemoryMode>,
}

pub type Test = fn(&World);

impl World {
    fn new(memory: Option<MemoryMode>) -> Self {
        World { rt: Runtime::new(World::config(memory)), memory }
    }

    pub fn config(memory: Option<MemoryMode>) -> Config {
        match memory {
            None => Config { backend: Some(Backend::Host), ..Config::default() },
            Some(_) => Config { memory, copy: CopyEngine::Gpu, ..Config::default() },
        }
    }

    /// Whether there is a GPU, which alone runs kernels.
    pub fn has_gpu(&self) -> bool {
        self.memory.is_some()
    }

    /// An `mps` tensor of `sizes` with element i = i.
    pub fn iota(&self, sizes: &[i64]) -> Tensor {
        let count = sizes.iter().product::<i64>();
        let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
        self.rt.from_slice(&values, sizes, DType::F32, DeviceType::Mps).unwrap()
    }

    pub fn floats(&self, tensor: &Tensor) -> Vec<f32> {
        let bytes = self.rt.to_vec(tensor).unwrap();
        bytes.chunks_exact(4).map(|c| f32::from_ne_bytes(c.try_into().unwrap())).collect()
    }

    /// A plain tensor over what a tensor's data pointer names, with the reported strides:
    /// the dense buffer of a packed view.
    pub fn over_pointer(&self, tensor: &Tensor) -> Tensor {
        let pointer = self.rt.data_ptr(tensor).unwrap();
        let layout = Layout::new(tensor.sizes(), tensor.layout().strides(), 0).unwrap();
        // SAFETY: the pointer is that of a live tensor of at least these elements.
        unsafe { self.rt.blob(pointer, layout, tensor.dtype(), DeviceType::Mps) }.unwrap()
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let has_gpu = !list_adapters().is_empty();
    let modes = [Some(MemoryMode::Unified), Some(MemoryMode::Device), None];
    let mut trials = Vec::new();
    for memory in modes {
        let mode = memory.map_or("host", MemoryMode::name);
        for (name, test) in cases::TESTS
            .iter()
            .chain(copies::TESTS)
            .chain(views::TESTS)
            .chain(life::TESTS)
            .chain(kernels::TESTS)
            .chain(operators::TESTS)
            .chain(attention::TESTS)
            .chain(convolution::TESTS)
            .chain(selections::TESTS)
        {
            let (test, needs_gpu) = (*test, memory.is_some());
            if !needs_gpu && name.starts_with("kernel") {
                continue;
            }
            let trial = Trial::test(format!("{mode}::{name}"), move || {
                test(&World::new(memory));
                Ok::<(), Failed>(())
            });
            trials.push(trial.with_ignored_flag(needs_gpu && !has_gpu));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
