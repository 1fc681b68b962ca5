//! Single elements to C scalars and back.

use super::boundary::produce;
use super::caller::noted;
use super::described::with_tensor;
use super::handle::insert;
use super::number::{Integer, Number};
use super::{AOTITorchError, AtenTensorHandle};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::Runtime;
use crate::tensor::DeviceType;
use half::{bf16, f16};

/// c10's `Half`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_half_t {
    /// IEEE binary16.
    pub x: u16,
}

/// c10's `BFloat16`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_bfloat16_t {
    /// The upper half of a binary32.
    pub x: u16,
}

/// c10's `complex<float>`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_complex64_t {
    /// The real part.
    pub re: f32,
    /// The imaginary part.
    pub im: f32,
}

/// c10's `complex<double>`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct aoti_wgpu_complex128_t {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

/// The one element of a tensor, converted.
///
/// # Safety
/// As [`with_tensor`].
unsafe fn item<T>(
    tensor: AtenTensorHandle,
    out: *mut T,
    convert: impl FnOnce(Number) -> Result<T>,
) -> AOTITorchError {
    // SAFETY: by this function's contract; the element is copied out.
    produce("out", out, || unsafe {
        with_tensor("tensor", tensor, |tensor| {
            if tensor.layout().numel() != 1 {
                return Err(Error::invalid(
                    "tensor",
                    format_args!("of sizes {:?}", tensor.layout().sizes()),
                    "an item is the element of a tensor that has one",
                ));
            }
            convert(Number::read(&Runtime::global().item(tensor)?, tensor.dtype())?)
        })
    })
}

/// # Safety
/// As [`item`].
unsafe fn integer<T: Integer>(tensor: AtenTensorHandle, out: *mut T) -> AOTITorchError {
    // SAFETY: by this function's contract.
    unsafe { item(tensor, out, Number::to_integer::<T>) }
}

/// A tensor without dimensions in host memory.
fn scalar<const N: usize>(
    bytes: [u8; N],
    dtype: DType,
    out: *mut AtenTensorHandle,
) -> AOTITorchError {
    produce("out", out, || {
        let runtime = Runtime::global();
        let tensor = runtime.empty(Layout::contiguous(&[])?, dtype, DeviceType::Cpu)?;
        let data = runtime.data_ptr(&tensor)?;
        if dtype.size() != N || data.is_null() {
            return Err(Error::Internal(format!("a scalar of {dtype} has no {N} bytes")));
        }
        // SAFETY: new host memory of one element, which has `N` bytes; nobody else
        // knows of it.
        unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), N) };
        insert(tensor)
    })
}

/// The element as a `float16`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_float16(
    tensor: AtenTensorHandle,
    out: *mut aoti_wgpu_half_t,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe {
        item(tensor, out, |number| {
            let value = number.to_float(f16::MAX.to_f64(), "float16")?;
            Ok(aoti_wgpu_half_t { x: f16::from_f64(value).to_bits() })
        })
    }
}

/// The element as a `bfloat16`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_bfloat16(
    tensor: AtenTensorHandle,
    out: *mut aoti_wgpu_bfloat16_t,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe {
        item(tensor, out, |number| {
            let value = number.to_float(bf16::MAX.to_f64(), "bfloat16")?;
            Ok(aoti_wgpu_bfloat16_t { x: bf16::from_f64(value).to_bits() })
        })
    }
}

/// The element as a `float`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_float32(
    tensor: AtenTensorHandle,
    out: *mut f32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { item(tensor, out, |number| Ok(number.to_float(f32::MAX.into(), "float32")? as f32)) }
}

/// The element as a `double`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_float64(
    tensor: AtenTensorHandle,
    out: *mut f64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { item(tensor, out, |number| number.to_float(f64::MAX, "float64")) }
}

/// The element as an `uint8_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_uint8(
    tensor: AtenTensorHandle,
    out: *mut u8,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `uint16_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_uint16(
    tensor: AtenTensorHandle,
    out: *mut u16,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `uint32_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_uint32(
    tensor: AtenTensorHandle,
    out: *mut u32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_uint64(
    tensor: AtenTensorHandle,
    out: *mut u64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `int8_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_int8(
    tensor: AtenTensorHandle,
    out: *mut i8,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `int16_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_int16(
    tensor: AtenTensorHandle,
    out: *mut i16,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `int32_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_int32(
    tensor: AtenTensorHandle,
    out: *mut i32,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as an `int64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_int64(
    tensor: AtenTensorHandle,
    out: *mut i64,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { integer(tensor, out) }
}

/// The element as whether it is not zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_bool(
    tensor: AtenTensorHandle,
    out: *mut bool,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe { item(tensor, out, |number| Ok(number.to_bool())) }
}

/// The element as a `complex64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_item_complex64(
    tensor: AtenTensorHandle,
    out: *mut aoti_wgpu_complex64_t,
) -> AOTITorchError {
    // SAFETY: the header's contract.
    unsafe {
        item(tensor, out, |number| {
            let (re, im) = number.to_complex(f32::MAX.into(), "complex64")?;
            Ok(aoti_wgpu_complex64_t { re: re as f32, im: im as f32 })
        })
    }
}

noted! {
    /// A `float32` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_float32(
        value: f32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::F32, out)
    }
}

noted! {
    /// A `float64` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_float64(
        value: f64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::F64, out)
    }
}

noted! {
    /// A `uint8` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_uint8(
        value: u8,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::U8, out)
    }
}

noted! {
    /// A `uint16` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_uint16(
        value: u16,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::U16, out)
    }
}

noted! {
    /// A `uint32` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_uint32(
        value: u32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::U32, out)
    }
}

noted! {
    /// A `uint64` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_uint64(
        value: u64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::U64, out)
    }
}

noted! {
    /// A `int8` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_int8(
        value: i8,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::I8, out)
    }
}

noted! {
    /// A `int16` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_int16(
        value: i16,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::I16, out)
    }
}

noted! {
    /// A `int32` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_int32(
        value: i32,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::I32, out)
    }
}

noted! {
    /// A `int64` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_int64(
        value: i64,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(value.to_ne_bytes(), DType::I64, out)
    }
}

noted! {
    /// A `bool` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_bool(
        value: bool,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar([u8::from(value)], DType::Bool, out)
    }
}

noted! {
    /// A `complex64` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_complex64(
        value: aoti_wgpu_complex64_t,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(bytemuck::cast::<[f32; 2], [u8; 8]>([value.re, value.im]), DType::C64, out)
    }
}

noted! {
    /// A `complex128` scalar as a tensor.
    pub unsafe extern "C" fn aoti_torch_scalar_to_tensor_complex128(
        value: aoti_wgpu_complex128_t,
        out: *mut AtenTensorHandle,
    ) -> AOTITorchError {
        scalar(bytemuck::cast::<[f64; 2], [u8; 16]>([value.re, value.im]), DType::C128, out)
    }
}
