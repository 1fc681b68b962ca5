//! The mathematics of compiled kernels (`shaders/msl`) against f64 on the CPU.
//!
//! The text is validated and written out for every backend; then each function runs on an adapter, over edge
//! values and random values of the whole exponent range, and its largest error is held to a stated bound.
//! Without an adapter the device tests are ignored.

#[path = "math/agreement.rs"]
mod agreement;
#[path = "math/cases.rs"]
mod cases;
#[path = "math/device.rs"]
mod device;
#[path = "math/inputs.rs"]
mod inputs;
#[path = "math/measure.rs"]
mod measure;
#[path = "math/random.rs"]
mod random;
#[path = "math/special.rs"]
mod special;
#[path = "math/tables.rs"]
mod tables;
#[path = "math/text.rs"]
mod text;

use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::Arc;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        Trial::test("text::every_backend_takes_it", || {
            text::every_backend_takes_it().map_err(Failed::from)
        }),
        Trial::test("text::names_are_unique", || text::names_are_unique().map_err(Failed::from)),
    ];
    trials.push(Trial::test("reference::agrees_with_tables", || {
        agreement::references_agree_with_tables().map_err(Failed::from)
    }));
    let cases = cases::all();
    let tried = text::every_function_is_tried(&cases);
    trials.push(Trial::test("text::every_function_is_tried", || tried.map_err(Failed::from)));
    let device = device::Device::open(&cases).map(Arc::new);
    for case in cases {
        let held = device.clone();
        let name = format!("device::{}", case.name);
        let trial = Trial::test(name, move || match &held {
            Some(device) => measure::check(&case, device).map_err(Failed::from),
            None => Err(Failed::from("no adapter")),
        });
        trials.push(trial.with_ignored_flag(device.is_none()));
    }
    if device.is_none() {
        eprintln!("no adapter: the device tests are ignored");
    }
    libtest_mimic::run(&arguments, trials).exit();
}
