//! Constants that programs ask for, and the gradient mode, which is always off.
//!
//! Programs call these from static initialisers while they are being loaded: none of
//! them starts the GPU or fails. The codes are c10's (`c10/core/DeviceType.h`,
//! `ScalarType.h`, `Layout.h`, `MemoryFormat.h`) and part of the ABI.

use super::boundary::{DEVICE_CPU, DEVICE_MPS};
use super::caller::noted;
use super::debug::warn;
use super::models;
use crate::dtype::DType;

/// c10's code of the strided layout.
pub(super) const LAYOUT_STRIDED: i32 = 0;

/// PyTorch's `TORCH_ABI_VERSION` that these functions were made after: 2.13.0, as major,
/// minor and patch in the upper three bytes.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_abi_version() -> u64 {
    (2 << 56) | (13 << 48)
}

/// Bytes of an element; 0 where no c10 type has this code.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_element_size(dtype: i32) -> usize {
    DType::from_code(dtype).map_or(0, DType::size)
}

/// Whether gradients are recorded: never.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_grad_mode_is_enabled() -> bool {
    false
}

/// Asks for gradients to be recorded, which is refused with a warning, or not.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_grad_mode_set_enabled(enabled: bool) {
    if enabled {
        warn("aoti_torch_grad_mode_set_enabled(true): gradients are not recorded here");
    }
}

/// c10's code of host memory.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_device_type_cpu() -> i32 {
    DEVICE_CPU
}

/// c10's code of a device that is not here.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_device_type_cuda() -> i32 {
    1
}

/// c10's code of a device that is not here.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_device_type_meta() -> i32 {
    14
}

/// c10's code of a device that is not here.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_device_type_xpu() -> i32 {
    12
}

noted! {
    /// c10's code of the GPU.
    pub extern "C" fn aoti_torch_device_type_mps() -> i32 {
        models::asked_for_device();
        DEVICE_MPS
    }
}

/// c10's code of a device that is not here.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_device_type_privateuse1() -> i32 {
    20
}

/// c10's code of `float8_e5m2`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float8_e5m2() -> i32 {
    DType::F8E5M2.code()
}

/// c10's code of `float8_e4m3fn`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float8_e4m3fn() -> i32 {
    DType::F8E4M3FN.code()
}

/// c10's code of `float8_e5m2fnuz`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float8_e5m2fnuz() -> i32 {
    DType::F8E5M2FNUZ.code()
}

/// c10's code of `float8_e4m3fnuz`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float8_e4m3fnuz() -> i32 {
    DType::F8E4M3FNUZ.code()
}

/// c10's code of `float8_e8m0fnu`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float8_e8m0fnu() -> i32 {
    DType::F8E8M0FNU.code()
}

/// c10's code of `float4_e2m1fn_x2`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float4_e2m1fn_x2() -> i32 {
    DType::F4E2M1FNx2.code()
}

/// c10's code of `bfloat16`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_bfloat16() -> i32 {
    DType::BF16.code()
}

/// c10's code of `float16`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float16() -> i32 {
    DType::F16.code()
}

/// c10's code of `float32`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float32() -> i32 {
    DType::F32.code()
}

/// c10's code of `float64`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_float64() -> i32 {
    DType::F64.code()
}

/// c10's code of `uint8`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_uint8() -> i32 {
    DType::U8.code()
}

/// c10's code of `uint16`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_uint16() -> i32 {
    DType::U16.code()
}

/// c10's code of `uint32`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_uint32() -> i32 {
    DType::U32.code()
}

/// c10's code of `uint64`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_uint64() -> i32 {
    DType::U64.code()
}

/// c10's code of `int8`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_int8() -> i32 {
    DType::I8.code()
}

/// c10's code of `int16`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_int16() -> i32 {
    DType::I16.code()
}

/// c10's code of `int32`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_int32() -> i32 {
    DType::I32.code()
}

/// c10's code of `int64`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_int64() -> i32 {
    DType::I64.code()
}

/// c10's code of `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_bool() -> i32 {
    DType::Bool.code()
}

/// c10's code of `complex32`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_complex32() -> i32 {
    DType::C32.code()
}

/// c10's code of `complex64`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_complex64() -> i32 {
    DType::C64.code()
}

/// c10's code of `complex128`.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_dtype_complex128() -> i32 {
    DType::C128.code()
}

/// c10's code of the layout.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_strided() -> i32 {
    LAYOUT_STRIDED
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_sparse_coo() -> i32 {
    1
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_sparse_csr() -> i32 {
    2
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_sparse_csc() -> i32 {
    4
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_sparse_bsr() -> i32 {
    5
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_sparse_bsc() -> i32 {
    6
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout__mkldnn() -> i32 {
    3
}

/// c10's code of the layout. No tensor here has it.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_layout_jagged() -> i32 {
    7
}

/// c10's code of the memory format.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_memory_format_contiguous_format() -> i32 {
    0
}

/// c10's code of the memory format.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_memory_format_channels_last() -> i32 {
    2
}

/// c10's code of the memory format.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_memory_format_channels_last_3d() -> i32 {
    3
}

/// c10's code of the memory format.
#[unsafe(no_mangle)]
pub extern "C" fn aoti_torch_memory_format_preserve_format() -> i32 {
    1
}
