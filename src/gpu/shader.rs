//! Shader modules, with as many of wgpu's run-time checks as their origin asks for.
#![allow(unsafe_code)]

use std::borrow::Cow;

/// Where a module comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A kernel of this crate.
    Own,
    /// A kernel that a program brought along.
    Program,
}

/// Hands a module to wgpu. What a program brought runs with every check. Kernels of this
/// crate do without the counter that wgpu adds to each loop, which keeps drivers from
/// unrolling it; accesses stay checked as the device does it.
pub fn create(device: &wgpu::Device, module: naga::Module, origin: Origin) -> wgpu::ShaderModule {
    let desc = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Naga(Cow::Owned(module)),
    };
    match origin {
        Origin::Program => device.create_shader_module(desc),
        Origin::Own => {
            let checks =
                wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..Default::default() };
            // SAFETY: the one check that is left out asks for loops that end. Those of the
            // files in `shaders/` count in steps of at least one up to a bound that the
            // body does not change.
            unsafe { device.create_shader_module_trusted(desc, checks) }
        }
    }
}
