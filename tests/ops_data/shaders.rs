//! Every kernel is valid and can be written out for Metal, DX12 and Vulkan, with each
//! value of its constants, within WebGPU's 16 KiB of workgroup memory.

use aoti_wgpu::ops;
use libtest_mimic::Failed;
use naga::back::{self, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

pub fn translate() -> Result<(), Failed> {
    let families = [
        ops::delta_rule::SHADERS,
        ops::index::SHADERS,
        ops::pool::SHADERS,
        ops::quantized::SHADERS,
        ops::scan::SHADERS,
        ops::sort::SHADERS,
    ];
    for &(name, source) in families.into_iter().flatten() {
        let module = naga::front::wgsl::parse_str(source)
            .map_err(|e| format!("{name}: {}", e.emit_to_string(source)))?;
        let info = Validator::new(
            ValidationFlags::all(),
            Capabilities::IMMEDIATES
                | Capabilities::SHADER_FLOAT16_IN_FLOAT32
                | Capabilities::SUBGROUP,
        )
        .validate(&module)
        .map_err(|e| format!("{name}: {}", e.emit_to_string(source)))?;
        for i in 0..9u32 {
            let mut constants = back::PipelineConstants::default();
            for (_, constant) in module.overrides.iter() {
                // Those without a name are sizes of arrays, made of the others.
                let Some(key) = constant.name.clone() else { continue };
                let value = match key.as_str() {
                    "TYPE" => i % 3,
                    "KIND" if name == "sort_keys" => i,
                    "KIND" => i % 4,
                    "MODE" => i % 5,
                    "ROWS" => 1 << (i % 3),
                    "THREADS" => 256 << (i % 2),
                    "LANES" if name.ends_with("digits") => 32 << (i % 3),
                    "LANES" => 16 << (2 * (i % 2)),
                    "SIZE" => 1 << (i % 5),
                    "AVERAGE" | "CHANNELS_LAST" | "LONG" | "EVEN" | "DESCENDING" => i % 2,
                    _ => return Err(format!("{name}: {key} has no values here").into()),
                };
                constants.insert(key, f64::from(value));
            }
            let entry = (naga::ShaderStage::Compute, "main");
            let (module, info) = process_overrides(&module, &info, Some(entry), &constants)?;
            let shared: u32 = module
                .global_variables
                .iter()
                .filter(|(_, v)| v.space == naga::AddressSpace::WorkGroup)
                .map(|(_, v)| module.types[v.ty].inner.size(module.to_ctx()))
                .sum();
            assert!(shared <= 16384, "{name}: {shared} bytes of workgroup memory");
            back::spv::write_vec(&module, &info, &back::spv::Options::default(), None)?;
            metal(&module, &info)?;
            hlsl(&module, &info)?;
        }
    }
    Ok(())
}

fn metal(module: &naga::Module, info: &ModuleInfo) -> Result<(), Failed> {
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
    let (text, _) = msl::write_string(module, info, &options, &msl::PipelineOptions::default())?;
    assert!(text.contains("kernel void"));
    Ok(())
}

fn hlsl(module: &naga::Module, info: &ModuleInfo) -> Result<(), Failed> {
    use back::hlsl;
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_0,
        fake_missing_bindings: true,
        immediates_target: Some(hlsl::BindTarget { register: 7, ..Default::default() }),
        ..Default::default()
    };
    let mut text = String::new();
    hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default())
        .write(module, info, None)?;
    assert!(text.contains("numthreads"));
    Ok(())
}
