//! A small program over the C functions, as a compiled one is: tensors, views, copies, a
//! kernel over device memory and one over memory of the caller's.

use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::attributes::*;
use aoti_wgpu::ffi::extension::*;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::ffi::mps::*;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// A return code that is not 0, with its message.
#[derive(Debug, PartialEq)]
pub struct Failure(pub i32, pub String);

pub fn checked(code: i32) -> Result<(), Failure> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: a C string of this thread.
    let text = unsafe { CStr::from_ptr(aoti_wgpu_last_error_message()) };
    Err(Failure(code, text.to_string_lossy().into_owned()))
}

/// A handle that is deleted on every path; deleting never fails.
pub struct Owned(pub Handle);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: a live handle, once.
        assert_eq!(checked(unsafe { aoti_torch_delete_tensor_object(self.0) }), Ok(()));
    }
}

pub fn empty(count: i64) -> Result<Owned, Failure> {
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    checked(unsafe { aoti_torch_empty_strided(1, &count, null(), 3, 13, 0, &mut out) })?;
    Ok(Owned(out))
}

/// A tensor over the caller's values, on device cpu or mps.
pub fn over(values: &mut [i32], device: i32) -> Result<Owned, Failure> {
    let (mut out, count) = (null_mut(), values.len() as i64);
    // SAFETY: the callers keep `values` until the handle is gone.
    checked(unsafe {
        let data = values.as_mut_ptr().cast();
        aoti_torch_create_tensor_from_blob(data, 1, &count, null(), 0, 3, device, 0, &mut out)
    })?;
    Ok(Owned(out))
}

fn copy(to: &Owned, from: &Owned) -> Result<(), Failure> {
    // SAFETY: live handles.
    checked(unsafe { aoti_torch_copy_(to.0, from.0, 0) })
}

pub fn filled(mut values: Vec<i32>) -> Result<Owned, Failure> {
    let tensor = empty(values.len() as i64)?;
    let source = over(&mut values, 0)?;
    copy(&tensor, &source)?;
    Ok(tensor)
}

pub fn read(tensor: &Owned) -> Result<Vec<i32>, Failure> {
    let mut count = 0;
    // SAFETY: a live handle and an output.
    checked(unsafe { aoti_torch_get_numel(tensor.0, &mut count) })?;
    let mut values = vec![i32::MIN; count as usize];
    let blob = over(&mut values, 0)?;
    copy(&blob, tensor)?;
    drop(blob);
    Ok(values)
}

pub fn view(of: &Owned, size: i64, stride: i64) -> Result<Owned, Failure> {
    let mut out = null_mut();
    // SAFETY: arrays of the rank.
    checked(unsafe { aoti_torch__reinterpret_tensor(of.0, 1, &size, &stride, 0, &mut out) })?;
    Ok(Owned(out))
}

const SOURCE: &CStr = c"
#include <metal_stdlib>
kernel void add(
    device int* out [[buffer(0)]],
    constant int* in [[buffer(1)]],
    constant long& step [[buffer(2)]],
    uint i [[thread_position_in_grid]])
{
    out[i] = in[i] + static_cast<int>(step);
}
";

struct Library(AOTIMetalShaderLibraryHandle);

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: a live library, once.
        assert_eq!(checked(unsafe { aoti_torch_mps_delete_shader_library(self.0) }), Ok(()));
    }
}

pub const COUNT: i64 = 64;

/// What [`run`] gives where nothing fails.
pub fn wanted() -> Vec<i32> {
    let first = (0..COUNT as i32).step_by(2).map(|i| i + 10);
    first.chain((0..COUNT as i32).map(|i| i + 20)).collect()
}

/// Runs the program. What a kernel returns is not looked at: compiled programs do not
/// either, so that a failure has to show in what is read.
pub fn run(with_kernels: bool) -> Result<Vec<i32>, Failure> {
    let input = filled((0..COUNT as i32).collect())?;
    let every_second = view(&input, COUNT / 2, 2)?;
    let mut pointer = null_mut();
    // SAFETY: a live handle and an output.
    checked(unsafe { aoti_torch_get_data_ptr(every_second.0, &mut pointer) })?;
    let dense = empty(COUNT / 2)?;
    copy(&dense, &every_second)?;
    if !with_kernels {
        let mut out: Vec<i32> = read(&dense)?.into_iter().map(|i| i + 10).collect();
        out.extend(read(&input)?.into_iter().map(|i| i + 20));
        return Ok(out);
    }
    let (mut library, mut function) = (null_mut(), null_mut());
    // SAFETY: C strings and outputs.
    checked(unsafe { aoti_torch_mps_create_shader_library(SOURCE.as_ptr(), &mut library) })?;
    let library = Library(library);
    // SAFETY: as above.
    checked(unsafe {
        aoti_torch_mps_get_kernel_function(library.0, c"add".as_ptr(), &mut function)
    })?;
    let sum = empty(COUNT / 2)?;
    let add = |out: &Owned, input: &Owned, step: i64, count: i64| {
        // SAFETY: live handles.
        unsafe {
            aoti_torch_mps_start_encoding(function);
            aoti_torch_mps_set_arg_tensor(function, 0, out.0);
            aoti_torch_mps_set_arg_tensor(function, 1, input.0);
            aoti_torch_mps_set_arg_int(function, 2, step);
            aoti_torch_mps_dispatch_single(function, count as u64)
        }
    };
    add(&sum, &dense, 10, COUNT / 2);
    let mut host = vec![i32::MIN; COUNT as usize];
    let host_tensor = over(&mut host, 13)?;
    add(&host_tensor, &input, 20, COUNT);
    let mut out = read(&sum)?;
    out.extend(read(&host_tensor)?);
    let copied = {
        let mut copied = null_mut();
        // SAFETY: a live handle and an output.
        checked(unsafe { aoti_torch_clone(host_tensor.0, &mut copied) })?;
        Owned(copied)
    };
    if read(&copied)? != out[COUNT as usize / 2..] {
        return Err(Failure(-1, "the clone differs".into()));
    }
    drop(host_tensor);
    if host != out[COUNT as usize / 2..] {
        return Err(Failure(-1, "the caller's memory differs".into()));
    }
    Ok(out)
}
