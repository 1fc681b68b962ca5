//! Every kernel of the matrix operators, of convolution and of attention is valid and can be
//! written out for Metal, DX12 and Vulkan, for each element type and each way of reading.

use aoti_wgpu::ops;
use naga::back::{self, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ValidationFlags, Validator};

#[test]
fn every_shader_translates_for_every_backend() {
    let families = [ops::matmul::SHADERS, ops::conv::SHADERS, ops::attention::SHADERS];
    for &(name, source) in families.into_iter().flatten() {
        let module = naga::front::wgsl::parse_str(source)
            .unwrap_or_else(|e| panic!("{name}: {}", e.emit_to_string(source)));
        let info = Validator::new(
            ValidationFlags::all(),
            Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16_IN_FLOAT32,
        )
        .validate(&module)
        .unwrap_or_else(|e| panic!("{name}: {}", e.emit_to_string(source)));
        for kind in 0..3 {
            for flag in 0..2 {
                let mut constants = back::PipelineConstants::default();
                for (_, constant) in module.overrides.iter() {
                    // Those without a name are sizes of arrays, made of the others.
                    let Some(key) = constant.name.clone() else { continue };
                    let value = match key.as_str() {
                        "A_TYPE" | "B_TYPE" | "OUT_TYPE" | "ADDEND_TYPE" | "MASK_TYPE" => kind,
                        "TYPE" => kind,
                        "TILE" => 64 << flag,
                        // These divide.
                        "KERNEL_HEIGHT" | "KERNEL_WIDTH" | "STRIDE_Y" | "STRIDE_X" => 1 + flag,
                        "ROWS" => 1 + 3 * flag,
                        "THREADS" => 256 << flag,
                        "ACROSS" => 4 << flag,
                        "STEP" => 64 >> flag,
                        "COLUMNS" | "LANES" => 64 << (flag * u32::from(key == "COLUMNS")),
                        _ => flag,
                    };
                    constants.insert(key, f64::from(value));
                }
                let entry = (naga::ShaderStage::Compute, "main");
                let (module, info) =
                    process_overrides(&module, &info, Some(entry), &constants).unwrap();
                let shared: u32 = module
                    .global_variables
                    .iter()
                    .filter(|(_, v)| v.space == naga::AddressSpace::WorkGroup)
                    .map(|(_, v)| module.types[v.ty].inner.size(module.to_ctx()))
                    .sum();
                assert!(shared <= 16384, "{name}: {shared} bytes of workgroup memory");
                spirv(name, &module, &info);
                metal(name, &module, &info);
                hlsl(name, &module, &info);
            }
        }
    }
}

fn spirv(name: &str, module: &naga::Module, info: &naga::valid::ModuleInfo) {
    let words = back::spv::write_vec(module, info, &back::spv::Options::default(), None)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(words[0], 0x0723_0203, "{name}");
}

fn metal(name: &str, module: &naga::Module, info: &naga::valid::ModuleInfo) {
    use back::msl;
    let mut resources = msl::EntryPointResources {
        immediates_buffer: Some(8),
        sizes_buffer: Some(9),
        ..Default::default()
    };
    for binding in 0..8 {
        let target =
            msl::BindTarget { buffer: Some(binding as u8), mutable: true, ..Default::default() };
        resources.resources.insert(naga::ResourceBinding { group: 0, binding }, target);
    }
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_string(), resources)].into(),
        ..Default::default()
    };
    let (text, _) = msl::write_string(module, info, &options, &msl::PipelineOptions::default())
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(text.contains("kernel void"), "{name}");
}

fn hlsl(name: &str, module: &naga::Module, info: &naga::valid::ModuleInfo) {
    use back::hlsl;
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_0,
        fake_missing_bindings: true,
        immediates_target: Some(hlsl::BindTarget { register: 7, ..Default::default() }),
        ..Default::default()
    };
    let mut text = String::new();
    hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default())
        .write(module, info, None)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(text.contains("numthreads"), "{name}");
}
