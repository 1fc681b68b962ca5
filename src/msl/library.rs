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

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that the lowering writes out are functions of the library.
    #[test]
    fn names_called_exist() {
        let functions = functions().unwrap();
        let sources = [
            include_str!("lower/arithmetic.rs"),
            include_str!("lower/build.rs"),
            include_str!("lower/call.rs"),
            include_str!("lower/convert.rs"),
            include_str!("lower/entry.rs"),
            include_str!("lower/expr.rs"),
            include_str!("lower/reduce.rs"),
        ];
        let mut called: Vec<String> = Vec::new();
        for source in sources {
            let literals = source.split('"').skip(1).step_by(2);
            let names = literals.filter(|text| {
                ["msl_", "metal_", "c10_metal_", "math_"]
                    .iter()
                    .any(|prefix| text.starts_with(prefix))
                    && !text.ends_with('_')
                    && !text.contains('{')
            });
            called.extend(names.map(str::to_owned));
        }
        for suffix in ["i32", "u32", "i64", "u64"] {
            called.extend(["div", "rem", "pow"].map(|name| format!("msl_{name}_{suffix}")));
        }
        for suffix in ["i32", "i64"] {
            called.extend(["div", "rem"].map(|name| format!("msl_floor_{name}_{suffix}")));
        }
        for suffix in ["f32", "i32", "u32", "i64"] {
            let kinds = ["sum", "prod", "max", "min", "argmax", "argmin"];
            called.extend(kinds.map(|kind| format!("msl_{kind}_{suffix}")));
        }
        assert!(called.len() > 60);
        let bases = ["msl_floor_div", "msl_floor_rem", "msl_div", "msl_rem", "msl_scratch_pair"];
        for name in called {
            let known = functions.by_name.contains_key(&name) || bases.contains(&name.as_str());
            assert!(known, "no function {name}");
        }
    }
}
