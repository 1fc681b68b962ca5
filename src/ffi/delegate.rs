//! The C++ functions that ExecuTorch's `metal_backend.cpp` links beside the C ones
//! (`backends/apple/metal/runtime/shims/et_metal.h` of ExecuTorch 1.5), by their mangled
//! names in the Itanium ABI, which macOS and Linux share.
//!
//! Streams are opaque to the delegate. There is one, this runtime's, and what it is called
//! on carries nothing.

use super::boundary::guard_void;
use crate::runtime::Runtime;
use std::ffi::{c_int, c_void};

static STREAM: u64 = 0;

/// `ETMetalStream* executorch::backends::metal::getCurrentMetalStream()`: never null.
#[unsafe(export_name = "_ZN10executorch8backends5metal21getCurrentMetalStreamEv")]
extern "C" fn current_metal_stream() -> *mut c_void {
    (&raw const STREAM).cast_mut().cast()
}

/// `void executorch::backends::metal::ETMetalStream::setFlushInterval(int)`: 0 for no limit.
#[unsafe(export_name = "_ZN10executorch8backends5metal13ETMetalStream16setFlushIntervalEi")]
extern "C" fn set_flush_interval(_this: *mut c_void, dispatches: c_int) {
    guard_void("ETMetalStream::setFlushInterval", || {
        Runtime::global().set_flush_interval(dispatches);
        Ok(())
    });
}

#[cfg(not(aoti_wgpu_no_cpp))]
unsafe extern "C-unwind" {
    fn aoti_wgpu_cpp_synchronize_metal_stream();
}

/// `void executorch::backends::metal::synchronize_metal_stream()`: a jump to C++, which
/// throws `std::runtime_error` where the work failed.
#[cfg(all(not(aoti_wgpu_no_cpp), any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(naked)]
#[unsafe(export_name = "_ZN10executorch8backends5metal24synchronize_metal_streamEv")]
unsafe extern "C-unwind" fn synchronize_metal_stream() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym aoti_wgpu_cpp_synchronize_metal_stream);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym aoti_wgpu_cpp_synchronize_metal_stream);
}
