//! The operators but matrix products, against plain loops in f64 or integers, in both
//! memory modes. Without an adapter all of these show as ignored.

#[path = "../support/layouts.rs"]
#[allow(dead_code)]
mod layouts;
mod quantized;
mod rearranged;
mod reference;
mod selection;
mod shaders;

use aoti_wgpu::runtime::{Config, MemoryMode, Runtime};
use libtest_mimic::{Arguments, Failed, Trial};

type Test = fn(&Runtime) -> Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let runtime = |memory| Runtime::new(Config { memory: Some(memory), ..Config::default() });
    let absent = !arguments.list
        && !runtime(MemoryMode::Device).adapter_info().is_ok_and(|info| info.backend != "host");
    let tests: &[(&str, Test)] = &[
        ("linear_4bit", quantized::linear),
        ("gather_qmv", quantized::gather),
        ("gated_delta_rule", quantized::delta_rule),
        ("quantized_refusals", quantized::refusals),
        ("sort", selection::sort),
        ("long_sort", selection::long_sort),
        ("topk", selection::topk),
        ("cumsum", selection::cumsum),
        ("index", rearranged::index),
        ("index_put", rearranged::index_put),
        ("scatter_reduce", rearranged::scatter_reduce),
        ("cat", rearranged::cat),
        ("views", rearranged::views),
        ("pools", rearranged::pools),
    ];
    let mut trials: Vec<Trial> = Vec::new();
    for &(name, test) in tests {
        for (mode, memory) in [("unified", MemoryMode::Unified), ("device", MemoryMode::Device)] {
            let run = move || {
                let runtime = runtime(memory);
                test(&runtime)?;
                Ok(runtime.synchronize()?)
            };
            trials.push(Trial::test(format!("{name}_{mode}"), run).with_ignored_flag(absent));
        }
    }
    trials.push(Trial::test("shaders_translate_for_every_backend", shaders::translate));
    libtest_mimic::run(&arguments, trials).exit();
}
