//! Kernels: libraries of Metal source, functions, their arguments, dispatches, and the
//! memory functions of PyTorch's `shim_mps.h`.
//!
//! Generated programs ignore every return code here, so a failure marks the memory that
//! should have been written as lost: see [`crate::runtime::Runtime::dispatch`]. What is
//! set on a function that does not exist is all marked.

use super::boundary::{self, guard, produce};
use super::caller::noted;
use super::described::with_tensor;
use super::kernel_handle::{self, KernelObject};
use super::{AOTITorchError, AtenTensorHandle, models};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{Arguments, Grid, KernelFunction, Runtime, poison_tensor};
use crate::tensor::{DeviceType, Tensor};
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

pub use kernel_handle::{AOTIMetalKernelFunctionHandle, AOTIMetalShaderLibraryHandle};

thread_local! {
    /// What this thread has set on functions, by handle.
    static ENCODINGS: RefCell<Vec<(usize, Arguments)>> =
        const { RefCell::new(Vec::new()) };
}

/// Runs `body` on this thread's arguments of a function.
fn with_arguments<R>(
    function: AOTIMetalKernelFunctionHandle,
    body: impl FnOnce(&mut Arguments) -> Result<R>,
) -> Result<R> {
    let gone = |_| Error::Internal("this thread is ending".into());
    ENCODINGS
        .try_with(|encodings| {
            let mut encodings = encodings
                .try_borrow_mut()
                .map_err(|_| Error::Internal("arguments are set from within a dispatch".into()))?;
            let address = function.addr();
            let at = match encodings.iter().position(|(key, _)| *key == address) {
                Some(at) => at,
                None => {
                    // Functions end with their libraries, on whichever thread.
                    encodings.retain(|(key, _)| kernel_handle::is_function(*key));
                    encodings.push((address, Arguments::default()));
                    encodings.len() - 1
                }
            };
            match encodings.get_mut(at) {
                Some((_, arguments)) => body(arguments),
                None => Err(Error::Internal("an encoding vanished".into())),
            }
        })
        .map_err(gone)?
}

/// Compiles the kernels of a Metal source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_create_shader_library(
    metal_shader_source: *const c_char,
    library_handle: *mut AOTIMetalShaderLibraryHandle,
) -> AOTITorchError {
    produce("library_handle", library_handle, || {
        if metal_shader_source.is_null() {
            return Err(Error::invalid("metal_shader_source", "null", "a text is needed"));
        }
        // SAFETY: not null, and a C string by the header's contract.
        let source = unsafe { std::ffi::CStr::from_ptr(metal_shader_source) };
        let source = source.to_str().map_err(|error| {
            Error::invalid("metal_shader_source", "a text", format!("it is not UTF-8: {error}"))
        })?;
        let library = Runtime::global().kernel_library(source)?;
        Ok(kernel_handle::insert(KernelObject::Library { library, functions: Vec::new() }))
    })
}

/// Ends a library and the functions that came from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_delete_shader_library(
    library_handle: AOTIMetalShaderLibraryHandle,
) -> AOTITorchError {
    guard(|| {
        kernel_handle::remove_library(library_handle)?;
        // What this thread has set on its functions is not to be used any more.
        let _ = ENCODINGS.try_with(|encodings| {
            if let Ok(mut encodings) = encodings.try_borrow_mut() {
                encodings.retain(|(key, _)| kernel_handle::is_function(*key));
            }
        });
        Ok(())
    })
}

/// The kernel of this name; the handle lives as long as the library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_get_kernel_function(
    library_handle: AOTIMetalShaderLibraryHandle,
    kernel_name: *const c_char,
    function_handle: *mut AOTIMetalKernelFunctionHandle,
) -> AOTITorchError {
    produce("function_handle", function_handle, || {
        if kernel_name.is_null() {
            return Err(Error::invalid("kernel_name", "null", "a text is needed"));
        }
        // SAFETY: not null, and a C string by the header's contract.
        let name = unsafe { boundary::text(kernel_name) };
        kernel_handle::function_of(library_handle, &name)
    })
}

/// Forgets what this thread has set on the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_start_encoding(
    func: AOTIMetalKernelFunctionHandle,
) -> AOTITorchError {
    guard(|| {
        kernel_handle::function(func)?;
        with_arguments(func, |arguments| {
            arguments.clear();
            Ok(())
        })
    })
}

/// Sets argument `idx` to a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_set_arg_tensor(
    func: AOTIMetalKernelFunctionHandle,
    idx: u32,
    tensor: AtenTensorHandle,
) -> AOTITorchError {
    guard(|| {
        // SAFETY: the header's contract for handles.
        unsafe {
            with_tensor("tensor", tensor, |tensor| match kernel_handle::function(func) {
                Ok(_) => with_arguments(func, |arguments| arguments.set_tensor(idx, tensor)),
                Err(error) => {
                    poison_tensor(tensor, &error);
                    Err(error)
                }
            })
        }
    })
}

/// Sets argument `idx` to an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_set_arg_int(
    func: AOTIMetalKernelFunctionHandle,
    idx: u32,
    val: i64,
) -> AOTITorchError {
    guard(|| {
        kernel_handle::function(func)?;
        with_arguments(func, |arguments| arguments.set_int(idx, val))
    })
}

fn dispatch(
    func: AOTIMetalKernelFunctionHandle,
    grid: impl FnOnce() -> Result<Grid>,
) -> AOTITorchError {
    guard(|| {
        let function: Arc<KernelFunction> = kernel_handle::function(func)?;
        with_arguments(func, |arguments| {
            let grid = match grid() {
                Ok(grid) => grid,
                Err(error) => {
                    arguments.poison(&error);
                    return Err(error);
                }
            };
            Runtime::global().dispatch(&function, arguments, grid)
        })
    })
}

/// Dispatches exactly `length` threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_dispatch_single(
    func: AOTIMetalKernelFunctionHandle,
    length: u64,
) -> AOTITorchError {
    dispatch(func, || Ok(Grid { threads: [length, 1, 1], group: None }))
}

/// Dispatches exactly `length` threads in groups of `group_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_dispatch_single_with_group_size(
    func: AOTIMetalKernelFunctionHandle,
    length: u64,
    group_size: u64,
) -> AOTITorchError {
    dispatch(func, || Ok(Grid { threads: [length, 1, 1], group: Some([group_size, 1, 1]) }))
}

/// Dispatches a grid of exactly these threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_dispatch_array(
    func: AOTIMetalKernelFunctionHandle,
    length: *const u64,
    length_size: usize,
) -> AOTITorchError {
    dispatch(func, || {
        // SAFETY: the header's contract: `length_size` integers.
        Ok(Grid { threads: unsafe { extents("length", length, length_size) }?, group: None })
    })
}

/// Dispatches a grid of exactly these threads in groups of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_dispatch_array_with_group_size(
    func: AOTIMetalKernelFunctionHandle,
    length: *const u64,
    length_size: usize,
    group_size: *const u64,
    group_size_size: usize,
) -> AOTITorchError {
    dispatch(func, || {
        // SAFETY: the header's contract: `length_size` integers.
        let threads = unsafe { extents("length", length, length_size) }?;
        // SAFETY: the header's contract: `group_size_size` integers.
        let group = unsafe { extents("group_size", group_size, group_size_size) }?;
        Ok(Grid { threads, group: Some(group) })
    })
}

/// One to three extents; the dimensions left out are 1.
///
/// # Safety
/// A pointer that is not null points to `count` integers.
unsafe fn extents(name: &'static str, values: *const u64, count: usize) -> Result<[u64; 3]> {
    if values.is_null() || !values.is_aligned() || !(1..=3).contains(&count) {
        return Err(Error::invalid(
            name,
            format_args!("{count} values at {values:p}"),
            "1 to 3 integers are expected",
        ));
    }
    let mut extents = [1; 3];
    for (i, extent) in extents.iter_mut().enumerate().take(count) {
        // SAFETY: below `count`, by this function's contract.
        *extent = unsafe { values.add(i).read() };
    }
    Ok(extents)
}

/// The end of a command block on this thread, called from C++.
#[unsafe(no_mangle)]
extern "C" fn aoti_wgpu_end_block(func: AOTIMetalKernelFunctionHandle) -> AOTITorchError {
    guard(|| {
        kernel_handle::function(func)?;
        with_arguments(func, |arguments| {
            arguments.clear();
            Ok(())
        })
    })
}

/// The answer to a callback that is null, called from C++.
#[unsafe(no_mangle)]
extern "C" fn aoti_wgpu_refuse_callback() -> AOTITorchError {
    guard(|| Err(Error::invalid("callback", "null", "a function to call is needed")))
}

noted! {
    /// Device memory that is known by its address alone.
    pub unsafe extern "C" fn aoti_torch_mps_malloc(
        buffer: *mut *mut c_void,
        num_bytes: usize,
    ) -> AOTITorchError {
        produce("buffer", buffer, || {
            let address = Runtime::global().malloc(num_bytes as u64)?;
            models::allocated(address);
            Ok(address as *mut c_void)
        })
    }
}

/// Gives device memory back; null is none and fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_free(ptr: *mut c_void) -> AOTITorchError {
    guard(|| {
        Runtime::global().free(ptr.addr())?;
        models::freed(ptr.addr());
        Ok(())
    })
}

/// Copies host bytes into device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_memcpy(
    buffer: *mut c_void,
    constant_offset: usize,
    bytes_read: usize,
    data_size: usize,
    constants_start: *mut u8,
) -> AOTITorchError {
    guard(|| {
        // SAFETY: the header's contract for both ranges.
        unsafe {
            copy_bytes(
                ("buffer", buffer, constant_offset, DeviceType::Mps),
                ("constants_start", constants_start.cast(), bytes_read, DeviceType::Cpu),
                data_size,
            )
        }
    })
}

/// Copies bytes between two pieces of device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_mps_copy_buffer(
    src_buffer: *mut c_void,
    dst_buffer: *mut c_void,
    data_size: usize,
    src_offset: usize,
    dst_offset: usize,
) -> AOTITorchError {
    guard(|| {
        // SAFETY: the header's contract for both ranges.
        unsafe {
            copy_bytes(
                ("dst_buffer", dst_buffer, dst_offset, DeviceType::Mps),
                ("src_buffer", src_buffer, src_offset, DeviceType::Mps),
                data_size,
            )
        }
    })
}

type Span = (&'static str, *mut c_void, usize, DeviceType);

/// # Safety
/// Each span is `bytes` long from its offset on, in device memory of this library or
/// in memory that may be read, and for the first one written.
unsafe fn copy_bytes(dst: Span, src: Span, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: by this function's contract.
    let (dst, src) = unsafe { (span(dst, bytes)?, span(src, bytes)?) };
    Runtime::global().copy(&dst, &src, true)
}

/// # Safety
/// As [`copy_bytes`].
unsafe fn span((name, start, offset, device): Span, bytes: usize) -> Result<Tensor> {
    if start.is_null() {
        return Err(Error::invalid(name, "null", format!("{bytes} bytes are to be copied")));
    }
    let layout = Layout::of_bytes(i64::try_from(bytes).unwrap_or(i64::MAX))?;
    let at = start.addr().checked_add(offset).ok_or_else(|| {
        Error::invalid(
            name,
            format_args!("{start:p}"),
            format!("with offset {offset} it overflows"),
        )
    })?;
    // SAFETY: by this function's contract; the tensor is gone when the call ends.
    unsafe { Runtime::global().blob(at as *mut u8, layout, DType::U8, device) }
}

/// The two functions that call the program back: jumps to C++, so that the program's
/// exceptions pass no frame of this language.
#[cfg(not(aoti_wgpu_no_cpp))]
mod jumps {
    use super::AOTIMetalKernelFunctionHandle as Function;
    use std::ffi::c_void;

    unsafe extern "C-unwind" {
        fn aoti_wgpu_cpp_run_command_block(
            func: Function,
            callback: Option<unsafe extern "C-unwind" fn(Function, *mut c_void)>,
            user_data: *mut c_void,
        ) -> i32;
        fn aoti_wgpu_cpp_shared_callback(func: Function, user_data: *mut c_void);
    }

    /// Calls `callback(func, user_data)` on this thread, before it returns.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[unsafe(naked)]
    #[unsafe(no_mangle)]
    pub unsafe extern "C-unwind" fn aoti_torch_mps_run_command_block(
        func: Function,
        callback: Option<unsafe extern "C-unwind" fn(Function, *mut c_void)>,
        user_data: *mut c_void,
    ) -> i32 {
        #[cfg(target_arch = "x86_64")]
        std::arch::naked_asm!("jmp {}", sym aoti_wgpu_cpp_run_command_block);
        #[cfg(target_arch = "aarch64")]
        std::arch::naked_asm!("b {}", sym aoti_wgpu_cpp_run_command_block);
    }

    /// Calls the `std::function<void(Function)>` at `user_data`.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[unsafe(naked)]
    #[unsafe(no_mangle)]
    pub unsafe extern "C-unwind" fn aoti_torch_mps_shared_callback(
        func: Function,
        user_data: *mut c_void,
    ) {
        #[cfg(target_arch = "x86_64")]
        std::arch::naked_asm!("jmp {}", sym aoti_wgpu_cpp_shared_callback);
        #[cfg(target_arch = "aarch64")]
        std::arch::naked_asm!("b {}", sym aoti_wgpu_cpp_shared_callback);
    }
}
