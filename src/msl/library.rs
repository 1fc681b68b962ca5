//! The functions that kernels call, as one naga module parsed once from WGSL.

use std::collections::HashMap;
use std::sync::LazyLock;

use naga::{Function, Handle, Module};

use super::error::{Fault, FaultKind};

/// The sources, which stand on each other.
const SOURCES: &[&str] = &[
    include_str!("../../shaders/msl/core.wgsl"),
    include_str!("../../shaders/msl/exponential.wgsl"),
    include_str!("../../shaders/msl/trigonometric.wgsl"),
    include_str!("../../shaders/msl/error.wgsl"),
    include_str!("../../shaders/msl/gamma.wgsl"),
    include_str!("../../shaders/msl/incomplete_gamma.wgsl"),
    include_str!("../../shaders/msl/bessel.wgsl"),
    include_str!("../../shaders/msl/polynomial.wgsl"),
    include_str!("../../shaders/msl/random.wgsl"),
    include_str!("../../shaders/msl/support.wgsl"),
    include_str!("../../shaders/msl/reduce.wgsl"),
];

pub(super) struct Functions {
    pub module: Module,
    pub by_name: HashMap<String, Handle<Function>>,
}

static FUNCTIONS: LazyLock<Result<Functions, String>> = LazyLock::new(|| {
    let module = naga::front::wgsl::parse_str(&SOURCES.concat())
        .map_err(|error| error.emit_to_string(&SOURCES.concat()))?;
    let named = module.functions.iter();
    let by_name = named.filter_map(|(handle, function)| Some((function.name.clone()?, handle)));
    let by_name = by_name.collect();
    Ok(Functions { module, by_name })
});

pub(super) fn functions() -> Result<&'static Functions, Fault> {
    FUNCTIONS.as_ref().map_err(|error| Fault { at: 0, kind: FaultKind::Library(error.clone()) })
}
