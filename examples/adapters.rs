//! Lists the adapters that `AOTI_WGPU_ADAPTER` may name, most preferred first.

fn main() {
    let adapters = aoti_wgpu::runtime::list_adapters();
    if adapters.is_empty() {
        println!(
            "no GPU adapter: mps tensors would live in host memory (on Debian and Ubuntu, \
             mesa-vulkan-drivers brings a Vulkan driver for the CPU)"
        );
    }
    for (i, a) in adapters.iter().enumerate() {
        println!(
            "{i}: {} ({}, {}, {}; {} memory unless asked otherwise)",
            a.name, a.backend, a.device_type, a.driver, a.memory_mode
        );
    }
}
