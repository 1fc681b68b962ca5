//! Metal kernels on an adapter, against the CPU. Without an adapter these tests are ignored.

#[path = "msl_device/device.rs"]
mod device;
mod msl_common;
#[path = "msl_device/operators.rs"]
mod operators;
#[path = "msl_device/programs.rs"]
mod programs;
#[path = "msl_device/structure.rs"]
mod structure;
#[path = "msl_device/values.rs"]
mod values;

use std::sync::Arc;

use aoti_wgpu::msl::Scalar;
use device::Device;
use libtest_mimic::{Arguments, Failed, Trial};

type Check = Box<dyn Fn(&Device) -> Result<(), String> + Send>;

fn main() {
    let arguments = Arguments::from_args();
    let device = Device::open().map(Arc::new);
    match &device {
        Some(device) => eprintln!("adapter: {}", device.name),
        None => eprintln!("no adapter: all tests are ignored"),
    }
    let mut checks: Vec<(String, Check, bool)> = Vec::new();
    let wide = |scalar: Scalar| scalar.size() == 8;
    for left in values::ALL {
        checks.push((
            format!("conversions::{}", left.name()),
            Box::new(move |device| operators::conversions(device, left)),
            true,
        ));
        for right in values::ALL {
            checks.push((
                format!("operators::{}_{}", left.name(), right.name()),
                Box::new(move |device| operators::binary_operators(device, left, right)),
                wide(left) || wide(right),
            ));
        }
    }
    for (name, check, int64) in structure::all() {
        checks.push((format!("structure::{name}"), Box::new(check), int64));
    }
    for (name, check) in programs::all() {
        checks.push((format!("programs::{name}"), check, true));
    }
    let trials = checks.into_iter().map(|(name, check, int64)| {
        let runs = device.as_ref().is_some_and(|device| device.int64 || !int64);
        let device = device.clone();
        let trial = Trial::test(name, move || match &device {
            Some(device) => check(device).map_err(Failed::from),
            None => Err(Failed::from("no adapter")),
        });
        trial.with_ignored_flag(!runs)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
