#![no_main]

#[path = "../../tests/hostile_text/bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::npy(bytes));
