#![no_main]

#[path = "../../tests/hostile_text/bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|text: &str| bodies::metal(text));
