//! What the tests of the Metal front end share.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use aoti_wgpu::msl::{Kernel, Layout, ParamKind, Program};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// A binding for each buffer argument, a group that the kernel allows.
pub fn lower(kernel: &Kernel) -> Result<Program, aoti_wgpu::msl::Error> {
    let buffers = kernel.params().iter().filter(|param| param.kind != ParamKind::Int).count();
    let slots: Vec<u32> = (0..buffers as u32).collect();
    let group = if kernel.uses_barriers() {
        [1, kernel.max_threads().unwrap_or(64), 1]
    } else {
        [64, 1, 1]
    };
    kernel.lower(&Layout { slots: &slots, group, max_immediate_bytes: 128, int64: true })
}

/// Validates a module, and writes it for all backends.
pub fn write_out(module: &naga::Module) -> Result<(), String> {
    let capabilities = Capabilities::SHADER_INT64 | Capabilities::IMMEDIATES;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(module)
        .map_err(|error| error.emit_to_string(""))?;
    let options = naga::back::spv::Options::default();
    naga::back::spv::write_vec(module, &info, &options, None)
        .map_err(|error| format!("SPIR-V: {error}"))?;
    let options = naga::back::msl::Options {
        lang_version: (2, 4),
        fake_missing_bindings: true,
        zero_initialize_workgroup_memory: true,
        ..Default::default()
    };
    let pipeline = naga::back::msl::PipelineOptions::default();
    naga::back::msl::write_string(module, &info, &options, &pipeline)
        .map_err(|error| format!("MSL: {error}"))?;
    let options = naga::back::hlsl::Options {
        shader_model: naga::back::hlsl::ShaderModel::V6_0,
        fake_missing_bindings: true,
        special_constants_binding: Some(naga::back::hlsl::BindTarget::default()),
        immediates_target: Some(naga::back::hlsl::BindTarget::default()),
        ..Default::default()
    };
    let pipeline = naga::back::hlsl::PipelineOptions::default();
    let mut text = String::new();
    naga::back::hlsl::Writer::new(&mut text, &options, &pipeline)
        .write(module, &info, None)
        .map_err(|error| format!("HLSL: {error}"))?;
    Ok(())
}

/// The module as WGSL.
pub fn wgsl(module: &naga::Module) -> Result<String, String> {
    let capabilities = Capabilities::SHADER_INT64 | Capabilities::IMMEDIATES;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(module)
        .map_err(|error| error.emit_to_string(""))?;
    naga::back::wgsl::write_string(module, &info, naga::back::wgsl::WriterFlags::empty())
        .map_err(|error| error.to_string())
}

/// The compiled programs beside the repository, where they are present.
pub fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/aoti-models/mps");
    let folder = match folder.is_dir() {
        true => folder,
        // A worktree lies one level further down.
        false => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/aoti-models/mps"),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut programs: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path().join("model.so"))).collect();
    programs.retain(|program| program.is_file());
    programs.sort();
    programs
}

/// The Metal sources that a compiled program holds.
pub fn sources(program: &Path) -> Vec<String> {
    let bytes = std::fs::read(program).unwrap();
    let text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    let runs = bytes.split(|byte| !text(byte));
    let runs = runs.map(|run| String::from_utf8_lossy(run).into_owned());
    runs.filter(|run| run.contains("kernel void ")).collect()
}
