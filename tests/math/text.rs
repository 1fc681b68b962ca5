//! The text itself: it parses, validates, and every backend's writer takes it.

use crate::cases::Case;
use std::collections::HashSet;

/// The files of `shaders/msl` in any order: a WGSL module does not care.
pub const FILES: &[(&str, &str)] = &[
    ("core", include_str!("../../shaders/msl/core.wgsl")),
    ("exponential", include_str!("../../shaders/msl/exponential.wgsl")),
    ("trigonometric", include_str!("../../shaders/msl/trigonometric.wgsl")),
    ("error", include_str!("../../shaders/msl/error.wgsl")),
    ("gamma", include_str!("../../shaders/msl/gamma.wgsl")),
    ("incomplete_gamma", include_str!("../../shaders/msl/incomplete_gamma.wgsl")),
    ("bessel", include_str!("../../shaders/msl/bessel.wgsl")),
    ("polynomial", include_str!("../../shaders/msl/polynomial.wgsl")),
    ("random", include_str!("../../shaders/msl/random.wgsl")),
];

pub fn whole() -> String {
    FILES.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n")
}

/// A module with no entry point would be compacted to nothing by some writers, so one calls them all.
pub fn every_backend_takes_it() -> Result<(), String> {
    let text = whole();
    let module = naga::front::wgsl::parse_str(&text).map_err(|e| e.emit_to_string(&text))?;
    let flags = naga::valid::ValidationFlags::all();
    let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::empty());
    let info = validator.validate(&module).map_err(|e| e.emit_to_string(&text))?;

    let options = naga::back::msl::Options::default();
    let pipeline = naga::back::msl::PipelineOptions::default();
    naga::back::msl::write_string(&module, &info, &options, &pipeline)
        .map_err(|e| format!("MSL: {e}"))?;

    let mut hlsl = String::new();
    let options = naga::back::hlsl::Options::default();
    let pipeline = naga::back::hlsl::PipelineOptions::default();
    naga::back::hlsl::Writer::new(&mut hlsl, &options, &pipeline)
        .write(&module, &info, None)
        .map_err(|e| format!("HLSL: {e}"))?;

    let options = naga::back::spv::Options::default();
    naga::back::spv::write_vec(&module, &info, &options, None)
        .map_err(|e| format!("SPIR-V: {e}"))?;
    Ok(())
}

/// The user concatenates the files with text of its own.
pub fn names_are_unique() -> Result<(), String> {
    let mut seen = HashSet::new();
    for (file, text) in FILES {
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("struct "))
            else {
                continue;
            };
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let prefixes = ["math_", "Math", "metal_", "c10_metal_"];
            if !prefixes.iter().any(|p| name.starts_with(p)) {
                return Err(format!("{file}.wgsl: {name} has none of the prefixes {prefixes:?}"));
            }
            if !seen.insert(name.clone()) {
                return Err(format!("{file}.wgsl: {name} is defined twice"));
            }
        }
    }
    Ok(())
}

/// Each function is tried, or is another name for one that is.
pub fn every_function_is_tried(cases: &[Case]) -> Result<(), String> {
    for (file, text) in FILES {
        for definition in text.split("\nfn ").skip(1) {
            let name = definition.split('(').next().unwrap_or_default();
            if name.starts_with("math_") || cases.iter().any(|case| case.name == name) {
                continue;
            }
            let body = definition.split('{').nth(1).unwrap_or_default();
            let statement = body.split('}').next().unwrap_or_default().trim();
            if !statement.starts_with("return ") || statement.contains('\n') {
                return Err(format!("{file}.wgsl: {name} is not tried"));
            }
        }
    }
    Ok(())
}
