//! The project's own functions.

use super::boundary::{check_output, guard, guard_void, last_message};
use super::{AtenTensorHandle, handle};
use crate::error::{Error, Result};
use crate::runtime::{AdapterInfo, Runtime};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// Counters of the runtime; later fields come at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_stats_t {
    /// Bytes of the caller's struct, set by the caller.
    pub struct_size: u64,
    /// Tensor handles not yet deleted.
    pub live_handles: u64,
    /// Storages that a handle, or work on the GPU, still needs.
    pub live_storages: u64,
    /// Bytes of those in GPU buffers.
    pub live_device_bytes: u64,
    /// Bytes of those in host memory that the library owns.
    pub live_host_bytes: u64,
    /// Bytes of freed buffers that are kept.
    pub pooled_bytes: u64,
    /// Allocations that took a kept buffer.
    pub pool_hits: u64,
    /// Allocations that made a buffer.
    pub pool_misses: u64,
    /// Compute dispatches.
    pub dispatches: u64,
    /// Submissions to the queue.
    pub submits: u64,
    /// Packed views filled.
    pub packs: u64,
    /// Packed views asked for and not filled, because nothing had changed.
    pub packs_skipped: u64,
}

/// What the runtime runs on. The texts live as long as the process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_adapter_info_t {
    /// Bytes of the caller's struct, set by the caller.
    pub struct_size: u64,
    /// The adapter's name.
    pub name: *const c_char,
    /// `metal`, `vulkan`, `dx12` or `host`.
    pub backend: *const c_char,
    /// Discrete, integrated, virtual or CPU.
    pub device_type: *const c_char,
    /// The driver's name and version.
    pub driver: *const c_char,
    /// `unified` or `device`.
    pub memory_mode: *const c_char,
}

/// Writes a struct whose first field is the size that the caller knows of it.
///
/// # Safety
/// A non-null `out` points to a `u64` that says how many bytes are there, itself included.
unsafe fn write_sized<T>(out: *mut T, fill: impl FnOnce(u64) -> Result<T>) -> Result<()> {
    check_output("out", out)?;
    // SAFETY: non-null, aligned as `T` is, and a readable size by this function's contract.
    let size = unsafe { out.cast::<u64>().read() };
    if size < size_of::<T>() as u64 {
        return Err(Error::invalid(
            "struct_size",
            size,
            format!("set it to sizeof the struct, which is at least {}", size_of::<T>()),
        ));
    }
    let value = fill(size)?;
    // SAFETY: there is room for a `T`, as the caller says.
    unsafe { out.write(value) };
    Ok(())
}

/// Submits what is encoded and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_synchronize() -> u32 {
    guard(|| Runtime::global().synchronize()).cast_unsigned()
}

/// The counters of now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_wgpu_stats(out: *mut aoti_wgpu_stats_t) -> u32 {
    // SAFETY: the header's contract.
    guard(|| unsafe {
        write_sized(out, |struct_size| {
            let stats = Runtime::global().stats();
            Ok(aoti_wgpu_stats_t {
                struct_size,
                live_handles: handle::live(),
                live_storages: stats.live_storages,
                live_device_bytes: stats.live_device_bytes,
                live_host_bytes: stats.live_host_bytes,
                pooled_bytes: stats.pooled_bytes,
                pool_hits: stats.pool_hits,
                pool_misses: stats.pool_misses,
                dispatches: stats.dispatches,
                submits: stats.submits,
                packs: stats.packs,
                packs_skipped: stats.packs_skipped,
            })
        })
    })
    .cast_unsigned()
}

/// What the runtime runs on; starts it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_wgpu_adapter_info(out: *mut aoti_wgpu_adapter_info_t) -> u32 {
    // SAFETY: the header's contract.
    guard(|| unsafe {
        write_sized(out, |struct_size| {
            let [name, backend, device_type, driver, memory_mode] = adapter_texts()?;
            Ok(aoti_wgpu_adapter_info_t {
                struct_size,
                name: name.as_ptr(),
                backend: backend.as_ptr(),
                device_type: device_type.as_ptr(),
                driver: driver.as_ptr(),
                memory_mode: memory_mode.as_ptr(),
            })
        })
    })
    .cast_unsigned()
}

/// The adapter's texts, which do not change in a process.
fn adapter_texts() -> Result<&'static [CString; 5]> {
    static TEXTS: OnceLock<[CString; 5]> = OnceLock::new();
    if let Some(texts) = TEXTS.get() {
        return Ok(texts);
    }
    let AdapterInfo { name, backend, device_type, driver, memory_mode } =
        Runtime::global().adapter_info()?;
    Ok(TEXTS.get_or_init(|| {
        [name, backend, device_type, driver, memory_mode].map(|text| {
            // Drivers write these; a NUL within would end the C string.
            CString::new(text.replace('\0', " ")).unwrap_or_default()
        })
    }))
}

/// This thread's last failure as a C string.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_last_error_message() -> *const c_char {
    last_message()
}

/// The host wrote through a tensor's data pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_wgpu_mark_written(tensor: AtenTensorHandle) -> u32 {
    guard(|| Runtime::global().mark_written(handle::own("tensor", tensor)?.tensor()))
        .cast_unsigned()
}

/// Gives the kept buffers back to the driver.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_trim() -> u32 {
    guard(|| Runtime::global().trim()).cast_unsigned()
}

/// After how many dispatches work is submitted.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_set_flush_interval(dispatches: i32) {
    guard_void("aoti_wgpu_set_flush_interval", || {
        Runtime::global().set_flush_interval(dispatches);
        Ok(())
    });
}

/// Sends the library's log to standard error, as `RUST_LOG` says; warnings and errors
/// where it is not set. A logger that the process has already stays.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_init_logging() -> u32 {
    guard(|| {
        let from = env_logger::Env::default().default_filter_or("warn");
        if env_logger::Builder::from_env(from).try_init().is_err() {
            log::debug!("the process has a logger already");
        }
        Ok(())
    })
    .cast_unsigned()
}

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_wgpu_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
