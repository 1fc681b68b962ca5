/*
 * aoti_wgpu.h: the C functions of aoti-wgpu.
 *
 * A portable runtime for programs that AOTInductor compiled for ExecuTorch's Metal
 * backend: tensors in wgpu buffers, on Metal, Vulkan and Direct3D 12. The functions
 * named aoti_torch_* have the signatures of PyTorch 2.13's
 * torch/csrc/inductor/aoti_torch/c/shim.h; those named aoti_wgpu_* are the library's own.
 *
 *     int64_t sizes[2] = {2, 3};
 *     AtenTensorHandle t = NULL;
 *     if (aoti_torch_empty_strided(2, sizes, NULL, aoti_torch_dtype_float32(),
 *                                  aoti_torch_device_type_mps(), 0, &t) != 0) {
 *       fprintf(stderr, "%s\n", aoti_wgpu_last_error_message());
 *     }
 *     ...
 *     aoti_torch_delete_tensor_object(t);
 *
 * Rules that hold for every function:
 *
 * - A function that can fail returns one of the AOTI_WGPU_* codes below, 0 for success.
 *   aoti_wgpu_last_error_message() then says which argument was wrong and what its value
 *   was. A failed call leaves everything as it was.
 * - An output is written on success only. A null or misaligned output, or a null array of
 *   a rank that is not 0, is AOTI_WGPU_INVALID_ARGUMENT.
 * - A handle that is null, was deleted, or points into the middle of another is
 *   AOTI_WGPU_INVALID_ARGUMENT, never a crash. (Using a handle in one thread while another
 *   deletes it is an error of the program.)
 * - Everything may be called from any thread, and from destructors of static and
 *   thread-local objects. Nothing unwinds into the caller, aoti_torch_check apart.
 * - Sizes, strides and offsets are in elements unless a name says bytes. A tensor has at
 *   most 16 dimensions. Negative values, and a product or an extent that overflows 64
 *   bits, are AOTI_WGPU_INVALID_ARGUMENT; a size or stride above 2^31 - 1 is
 *   AOTI_WGPU_NOT_SUPPORTED.
 * - dtype is c10's code of a scalar type (aoti_torch_dtype_*). device_type is cpu (0) or
 *   mps (13), device_index 0 or -1, the current one; anything else is
 *   AOTI_WGPU_INVALID_ARGUMENT.
 * - Built with the feature `executorch` (the default), an address that is no handle of this
 *   library is taken for an ETensor, ExecuTorch's own tensor over host memory, by
 *   aoti_torch_copy_, aoti_torch_clone, the getters and whatever only reads elements;
 *   a wild pointer there is the caller's error. Other functions refuse it.
 *
 * Include PyTorch's shim.h before this header where both are needed: what it declares is
 * left out here then.
 */
#ifndef AOTI_WGPU_H
#define AOTI_WGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define AOTI_WGPU_EXPORT
#else
#define AOTI_WGPU_EXPORT __attribute__((__visibility__("default")))
#endif

/* Return codes: ExecuTorch's. A caller that knows PyTorch's convention sees 0 or not 0. */
#define AOTI_WGPU_OK 0
/* A broken invariant of this library, or a failure of the GPU or the system. */
#define AOTI_WGPU_INTERNAL 1
/* The GPU device was lost. */
#define AOTI_WGPU_INVALID_STATE 2
/* Well-formed, but not possible in this library, on this device, or with this backend. */
#define AOTI_WGPU_NOT_SUPPORTED 0x10
/* A function that the ABI has and this library has not. */
#define AOTI_WGPU_NOT_IMPLEMENTED 0x11
/* An argument cannot be used as it is. */
#define AOTI_WGPU_INVALID_ARGUMENT 0x12
/* There is not enough memory, or a limit of the device is in the way. */
#define AOTI_WGPU_MEMORY_ALLOCATION_FAILED 0x21

/* Reading, copying or waiting for memory whose contents are missing because earlier work
 * failed returns the code of that failure. */

#ifndef AOTI_TORCH_SHIM /* PyTorch's shim.h declares all of this section */

/* A tensor. Every handle that a function returns is to be given back by
 * aoti_torch_delete_tensor_object. */
struct AtenTensorOpaque;
typedef struct AtenTensorOpaque* AtenTensorHandle;

/* One of the codes above. */
typedef int32_t AOTITorchError;

#endif /* AOTI_TORCH_SHIM */

/* Stand for c10::Half, c10::BFloat16, c10::complex<float> and c10::complex<double>. */
typedef struct {
  uint16_t x; /* IEEE binary16 */
} aoti_wgpu_half_t;
typedef struct {
  uint16_t x; /* the upper half of an IEEE binary32 */
} aoti_wgpu_bfloat16_t;
typedef struct {
  float re, im;
} aoti_wgpu_complex64_t;
typedef struct {
  double re, im;
} aoti_wgpu_complex128_t;

#ifndef AOTI_TORCH_SHIM

/* ---- Tensors that come and go ---------------------------------------------------- */

/* A new tensor of `ndim` dimensions that owns memory for its extent; the contents are
 * unspecified. Null `strides` mean contiguous ones; `sizes` may be null for ndim 0 only.
 * MEMORY_ALLOCATION_FAILED names the limit that was hit; a size of 0 costs no device
 * memory. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_empty_strided(
    int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
    int32_t device_type, int32_t device_index, AtenTensorHandle* out);

/* As aoti_torch_empty_strided; `device_type` must be cpu. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_empty_strided_pinned(
    int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
    int32_t device_type, int32_t device_index, AtenTensorHandle* out);

/* A tensor over memory that it does not own, its first element `storage_offset` elements
 * after `data`.
 * - Where `data` lies in a live device allocation of this library, the result is a view of
 *   that allocation and keeps it alive.
 * - Any other `data` is host memory of the caller, on device cpu and mps alike, which has
 *   to stay valid until the last handle to it, or to a view of it, is deleted. GPU work on
 *   it goes through a copy; what such work wrote is in the caller's memory when
 *   aoti_wgpu_synchronize or a copy of it returns, and when the last handle is deleted.
 * `data` may be null where the tensor has no elements. Several tensors may share an
 * address, and an address may be used again. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_create_tensor_from_blob(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides,
    int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index,
    AtenTensorHandle* out);

/* The same. `layout` must be strided (0); the opaque metadata, which only other layouts
 * have, is not read. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_create_tensor_from_blob_v2(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides,
    int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index,
    AtenTensorHandle* out, int32_t layout, const uint8_t* opaque_metadata,
    int64_t opaque_metadata_size);

/* Gives a handle back; its memory goes with the last handle into it, in any order. Null is
 * fine. A handle that is unknown or was deleted is INVALID_ARGUMENT; of two threads that
 * delete one handle, one succeeds. Never waits for the GPU, except where the GPU has yet to
 * write to host memory of the caller. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);

/* A second handle to the same tensor. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* out);

/* A handle without a tensor: aoti_torch_is_defined says false, deleting it and assigning
 * to it work, everything else is INVALID_ARGUMENT. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* out);

/* Makes `dst` a handle to the tensor of `src`. Array pointers that were had of `dst`
 * before are no longer valid. Both are still to be deleted. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst);

/* A second handle to the tensor of `src`. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle* out);

/* ---- Views ------------------------------------------------------------------------
 *
 * A view keeps the memory of what it views. Where a view of an mps tensor has holes or
 * elements that share places, it is a packed view: it reports contiguous strides, and
 * aoti_torch_get_data_ptr gives a dense buffer, filled from the base when it is needed
 * and not up to date. What is written to the view reaches the base. The environment's
 * AOTI_WGPU_VIEWS=strided gives plain views instead. */

/* A view of `self`'s storage; `offset_increment` elements, which may be negative, are
 * added to `self`'s own offset. Null `strides` mean contiguous ones. INVALID_ARGUMENT
 * where it reaches beyond the storage. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch__reinterpret_tensor(
    AtenTensorHandle self, int64_t ndim, const int64_t* sizes, const int64_t* strides,
    int64_t offset_increment, AtenTensorHandle* out);

/* A view of `self`'s storage at `self`'s offset, with as many dimensions as `self`. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_as_strided(
    AtenTensorHandle self, const int64_t* sizes, const int64_t* strides,
    AtenTensorHandle* out);

/* A plain view of another type, `offset_bytes` bytes after `self`'s first element. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch__alloc_from_pool(
    AtenTensorHandle self, int64_t offset_bytes, int32_t dtype, int64_t ndim,
    const int64_t* sizes, const int64_t* strides, AtenTensorHandle* out);

/* ---- Contents ---------------------------------------------------------------------- */

/* PyTorch's self.copy_(src): any layout to any layout, host or device on either side,
 * `src` broadcast to `self` and converted to its type. Source and destination may overlap:
 * the source is read first. INVALID_ARGUMENT where the sizes do not broadcast or elements
 * of `self` share a place; NOT_SUPPORTED for types that do not convert (complex, float8,
 * quantized and bit types convert to themselves only). A copy into host memory returns
 * when it is done; one from host memory may, with `non_blocking` not 0, return as soon as
 * the source was taken. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking);

/* dst.copy_(src). */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_tensor_copy_(AtenTensorHandle src, AtenTensorHandle dst);

/* A tensor of its own with the same values; the order of the strides is kept, gaps are
 * closed. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* out);

/* A tensor of its own with the same values and the same strides, holes included. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_clone_preserve_strides(AtenTensorHandle self, AtenTensorHandle* out);

/* Sets every element to zero. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_zero_(AtenTensorHandle self);

/* ---- Getters -----------------------------------------------------------------------
 *
 * Arrays have one entry a dimension, are never null, and live as long as the handle; an
 * ETensor's until the thread's next getter call. They are not to be written to. */

/* The address of the first element. In unified memory the host may read and write there
 * once aoti_wgpu_synchronize has returned; in device memory it is an address that may be
 * computed with and not dereferenced. Null where a tensor in device memory has no
 * elements. On a packed view, fills the dense buffer where the base was written since. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** out);
/* In elements. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** out);
/* One size, one stride; a negative `d` counts from the end. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* out);
/* Always 0. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* out);
/* Always strided (0). */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* out);
/* Elements from the start of the storage; 0 for a packed view. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* out);
/* Bytes of the storage, of its dense buffer for a packed view. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* out);
/* Whole elements that the storage has room for. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* out);
/* Whether the elements lie in row-major order without holes. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* out);

/* ---- Scalars ------------------------------------------------------------------------ */

/* The element of a tensor that has one, whatever its number of dimensions, converted;
 * waits for it. INVALID_ARGUMENT where the value does not fit: an integer out of range (a
 * negative one becomes an unsigned one modulo the range, if its magnitude fits), a finite
 * float above the largest, NaN or infinity to an integer, an imaginary part that is not 0
 * to a real type. Fractions are cut off; to bool, anything but 0 is true. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_float16(AtenTensorHandle tensor, aoti_wgpu_half_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_bfloat16(AtenTensorHandle tensor, aoti_wgpu_bfloat16_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_float32(AtenTensorHandle tensor, float* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_float64(AtenTensorHandle tensor, double* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_uint8(AtenTensorHandle tensor, uint8_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_uint16(AtenTensorHandle tensor, uint16_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_uint32(AtenTensorHandle tensor, uint32_t* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_uint64(AtenTensorHandle tensor, uint64_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_int8(AtenTensorHandle tensor, int8_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_int16(AtenTensorHandle tensor, int16_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_int32(AtenTensorHandle tensor, int32_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_int64(AtenTensorHandle tensor, int64_t* out);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_item_bool(AtenTensorHandle tensor, bool* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_item_complex64(AtenTensorHandle tensor, aoti_wgpu_complex64_t* out);

/* A new tensor on cpu, without dimensions, of the type named, that holds `value`. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_float32(float value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_float64(double value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_uint8(uint8_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_uint16(uint16_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_uint32(uint32_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_uint64(uint64_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_int8(int8_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_int16(int16_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_int32(int32_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_int64(int64_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_bool(bool value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_complex64(aoti_wgpu_complex64_t value, AtenTensorHandle* out);
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_scalar_to_tensor_complex128(aoti_wgpu_complex128_t value, AtenTensorHandle* out);

/* ---- Checks, warnings, a look inside ---------------------------------------------------- */

/* INVALID_ARGUMENT, with the numbers of them, where an element is NaN or infinite. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_check_inf_and_nan(const char* tensor_name, AtenTensorHandle tensor);

/* Prints `msg`, the tensor's type, sizes and strides, the range of its elements and the
 * first sixteen of them to standard output. */
AOTI_WGPU_EXPORT void aoti_torch_print_tensor_handle(AtenTensorHandle self, const char* msg);

/* Writes the tensor to
 *   ./tmp/aoti_torch/<launch_prefix>_<kernel_name>_<tensor_name>_<device>.npy
 * in numpy's format (where PyTorch writes a .pt file), row-major; bfloat16 as int16 bit
 * patterns, other types that numpy has not as unsigned integers of their size. A failure
 * goes to the log. */
AOTI_WGPU_EXPORT void aoti_torch_save_tensor_handle(
    AtenTensorHandle self, const char* tensor_name, const char* launch_prefix,
    const char* kernel_name);

/* A warning of the program, to the log, or to standard error where none is set up. */
AOTI_WGPU_EXPORT void
aoti_torch_warn(const char* func, const char* file, uint32_t line, const char* msg);

/* Throws std::runtime_error with `msg` and the place where `cond` is false: the entry
 * points of a compiled program, which call this, turn it into an error. */
AOTI_WGPU_EXPORT void aoti_torch_check(
    bool cond, const char* func, const char* file, uint32_t line, const char* msg);

/* ---- Constants -------------------------------------------------------------------------
 *
 * c10's codes. None of these starts the GPU. */

AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_cpu(void);  /* 0 */
AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_cuda(void); /* 1: no tensor here has it, */
AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_meta(void); /* nor this, */
AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_xpu(void);  /* nor this, */
AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_mps(void);  /* 13 */
AOTI_WGPU_EXPORT int32_t aoti_torch_device_type_privateuse1(void); /* nor this */

AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float8_e5m2(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float8_e4m3fn(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float8_e5m2fnuz(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float8_e4m3fnuz(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float8_e8m0fnu(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float4_e2m1fn_x2(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_bfloat16(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float16(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float32(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_float64(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_uint8(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_uint16(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_uint32(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_uint64(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_int8(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_int16(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_int32(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_int64(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_bool(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_complex32(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_complex64(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_dtype_complex128(void);
/* Bytes of an element; 0 for a code that no c10 type has. */
AOTI_WGPU_EXPORT size_t aoti_torch_dtype_element_size(int32_t dtype);

AOTI_WGPU_EXPORT int32_t aoti_torch_layout_strided(void); /* 0; no tensor here has another */
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_sparse_coo(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_sparse_csr(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_sparse_csc(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_sparse_bsr(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_sparse_bsc(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout__mkldnn(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_layout_jagged(void);

AOTI_WGPU_EXPORT int32_t aoti_torch_memory_format_contiguous_format(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_memory_format_channels_last(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_memory_format_channels_last_3d(void);
AOTI_WGPU_EXPORT int32_t aoti_torch_memory_format_preserve_format(void);

/* PyTorch's version as TORCH_ABI_VERSION packs it: 2.13.0. */
AOTI_WGPU_EXPORT uint64_t aoti_torch_abi_version(void);

/* Gradients are never recorded: false, and asking for them warns and does nothing. */
AOTI_WGPU_EXPORT bool aoti_torch_grad_mode_is_enabled(void);
AOTI_WGPU_EXPORT void aoti_torch_grad_mode_set_enabled(bool enabled);

#endif /* AOTI_TORCH_SHIM */

/* What PyTorch's shim.h does not declare. */

/* ExecuTorch's delegate calls these for each model that it destroys, after dlclose and the
 * removal of the program's file. The first waits for the GPU, frees what programs left behind
 * of which no model is alive (a delegate deletes no containers), and gives memory that no
 * tensor uses back to the system. It counts as one model gone: to give memory back while
 * models live, call aoti_wgpu_trim. What the host itself made stays. The second has nothing
 * to do. */
AOTI_WGPU_EXPORT void cleanup_memory(void);
AOTI_WGPU_EXPORT void cleanup_tensor_metadata(void);

/* ---- The library's own functions --------------------------------------------------------- */

/* Submits what is recorded and waits for it. Returns the first failure of queued work since
 * the last call. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_synchronize(void);

/* The last failure of a call on this thread: never null, empty before the first, valid until
 * the thread's next failing call. */
AOTI_WGPU_EXPORT const char* aoti_wgpu_last_error_message(void);

/* Says that the host wrote through a tensor's data pointer, which nothing else can see:
 * packed views of its storage are filled again when they are next needed. On a packed view
 * itself, all of its dense buffer is written to the base: INVALID_ARGUMENT where elements
 * of the view share places. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_mark_written(AtenTensorHandle tensor);

/* Gives memory that is kept for reuse back to the system. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_trim(void);

/* Submits work every `dispatches` dispatches from now on (otherwise as the environment's
 * ET_METAL_FLUSH_INTERVAL says); 0 or less for only when something waits. */
AOTI_WGPU_EXPORT void aoti_wgpu_set_flush_interval(int32_t dispatches);

/* The counters of the process. Later versions add fields at the end. */
typedef struct {
  uint64_t struct_size;       /* set by the caller: sizeof(aoti_wgpu_stats_t) */
  uint64_t live_handles;      /* tensor handles not yet deleted */
  uint64_t live_storages;     /* storages that a tensor holds */
  uint64_t live_device_bytes; /* their bytes on device mps */
  uint64_t live_host_bytes;   /* their bytes on device cpu that the library owns */
  uint64_t pooled_bytes;      /* bytes of freed memory kept for reuse */
  uint64_t pool_hits;         /* allocations that kept memory served */
  uint64_t pool_misses;       /* allocations that it did not */
  uint64_t dispatches;        /* compute dispatches */
  uint64_t submits;           /* submissions to the GPU */
  uint64_t packs;             /* packed views filled */
  uint64_t packs_skipped;     /* fills not needed: nothing had been written since */
} aoti_wgpu_stats_t;

/* Fills `*out`, of which `struct_size` is set: fields that this library does not know stay
 * as they are. INVALID_ARGUMENT where struct_size is less than the struct of its version. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_stats(aoti_wgpu_stats_t* out);

/* What the library runs on. The texts live as long as the process. */
typedef struct {
  uint64_t struct_size;    /* set by the caller: sizeof(aoti_wgpu_adapter_info_t) */
  const char* name;        /* the adapter's own */
  const char* backend;     /* "metal", "vulkan", "dx12" or "host" */
  const char* device_type; /* "discrete GPU", "integrated GPU", "virtual GPU", "CPU", "other" */
  const char* driver;      /* its name and version */
  const char* memory_mode; /* "unified", "device" or "host" */
} aoti_wgpu_adapter_info_t;

/* Starts the GPU where that has not happened yet, and fills `*out` as aoti_wgpu_stats does. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_adapter_info(aoti_wgpu_adapter_info_t* out);

/* Sends the library's log to standard error: warnings and errors, or what the environment's
 * RUST_LOG says. A second call, or a process with a logger of its own, changes nothing. */
AOTI_WGPU_EXPORT uint32_t aoti_wgpu_init_logging(void);

/* The library's version, "major.minor.patch". */
AOTI_WGPU_EXPORT const char* aoti_wgpu_version(void);

/* ---- Kernels ---------------------------------------------------------------------------
 *
 * As PyTorch 2.13's c/shim_mps.h declares them. Generated programs ignore these return
 * codes, so a failure also marks the memory that should have been written as lost: whoever
 * reads, copies or waits for it gets the error and its text, until it is wholly overwritten
 * or freed. What is set on a function that does not exist is all marked. */

typedef struct AOTIMetalShaderLibraryOpaque* AOTIMetalShaderLibraryHandle;
typedef struct AOTIMetalKernelFunctionOpaque* AOTIMetalKernelFunctionHandle;

/* Parses Metal source. INVALID_ARGUMENT with the construct, the kernel and the line where it
 * is not understood. The same text again costs nothing. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_create_shader_library(
    const char* metal_shader_source, AOTIMetalShaderLibraryHandle* library_handle);
/* Ends a library and its functions. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_mps_delete_shader_library(AOTIMetalShaderLibraryHandle library_handle);
/* The kernel of this name; the handle lives as long as the library. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_get_kernel_function(
    AOTIMetalShaderLibraryHandle library_handle, const char* kernel_name,
    AOTIMetalKernelFunctionHandle* function_handle);

/* Arguments are state of the function and the thread, from start_encoding on. A tensor is
 * bound where it truly lies: the base at the view's offset, packed view or not. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_start_encoding(AOTIMetalKernelFunctionHandle func);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_set_arg_tensor(
    AOTIMetalKernelFunctionHandle func, unsigned idx, AtenTensorHandle tensor);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_set_arg_int(
    AOTIMetalKernelFunctionHandle func, unsigned idx, int64_t val);

/* Dispatch exactly `length` threads, or a grid of 1 to 3 extents, in groups of the size that
 * is given or that the library chooses. */
AOTI_WGPU_EXPORT AOTITorchError
aoti_torch_mps_dispatch_single(AOTIMetalKernelFunctionHandle func, uint64_t length);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_dispatch_single_with_group_size(
    AOTIMetalKernelFunctionHandle func, uint64_t length, uint64_t group_size);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_dispatch_array(
    AOTIMetalKernelFunctionHandle func, const uint64_t* length, size_t length_size);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_dispatch_array_with_group_size(
    AOTIMetalKernelFunctionHandle func, const uint64_t* length, size_t length_size,
    const uint64_t* group_size, size_t group_size_size);

/* Calls `callback(func, user_data)` on this thread, before it returns; a C++ exception may
 * pass through it. */
typedef void (*aoti_torch_mps_command_block_callback_t)(AOTIMetalKernelFunctionHandle func,
                                                        void* user_data);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_run_command_block(
    AOTIMetalKernelFunctionHandle func, aoti_torch_mps_command_block_callback_t callback,
    void* user_data);
/* A callback for it whose user_data is a C++
 * std::function<void(AOTIMetalKernelFunctionHandle)>*. */
AOTI_WGPU_EXPORT void aoti_torch_mps_shared_callback(AOTIMetalKernelFunctionHandle func,
                                                     void* user_data);

/* Device memory that is known by its address: a tensor over it is made by
 * aoti_torch_create_tensor_from_blob, keeps it alive, and may outlive aoti_torch_mps_free. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_malloc(void** buffer, size_t num_bytes);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_free(void* ptr);
/* Copies `data_size` bytes from `constants_start + bytes_read` on the host to
 * `buffer + constant_offset` on the device. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_memcpy(void* buffer, size_t constant_offset,
                                                      size_t bytes_read, size_t data_size,
                                                      uint8_t* constants_start);
/* Copies bytes between two pieces of device memory. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_copy_buffer(void* src_buffer, void* dst_buffer,
                                                           size_t data_size, size_t src_offset,
                                                           size_t dst_offset);

/* ---- Operators ---------------------------------------------------------------------------
 *
 * The first four as PyTorch 2.13's generated/c_shim_mps.h declares them: float32, float16 and
 * bfloat16, summed in float32 and rounded once, over any strides. Outputs of any strides,
 * packed views too. NOT_SUPPORTED names the operator and the argument that it is not for. */

/* out = self mat2, of (n, k) and (k, m). */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_mm_out(AtenTensorHandle out, AtenTensorHandle self_,
                                                      AtenTensorHandle mat2);
/* The same for each of b matrices: (b, n, k) and (b, k, m). */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_bmm_out(AtenTensorHandle out, AtenTensorHandle self_,
                                                       AtenTensorHandle mat2);
/* out = beta self + alpha mat1 mat2, self broadcast; a beta of 0 ignores self, NaN and all. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_addmm_out(AtenTensorHandle out,
                                                         AtenTensorHandle self_,
                                                         AtenTensorHandle mat1,
                                                         AtenTensorHandle mat2, double beta,
                                                         double alpha);
/* The same for each of b matrices. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_baddbmm_out(AtenTensorHandle out,
                                                           AtenTensorHandle self_,
                                                           AtenTensorHandle batch1,
                                                           AtenTensorHandle batch2, double beta,
                                                           double alpha);

/* The next ones again as c_shim_mps.h declares them; dim counts from the end where it is
 * negative, optional values are pointers that may be null, lists a pointer and a length. */

/* The k greatest or least along dim with their places (int64), best first; NaN is greatest. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_topk(AtenTensorHandle self_, int64_t k, int64_t dim,
                                                    int32_t largest, int32_t sorted,
                                                    AtenTensorHandle* ret0, AtenTensorHandle* ret1);
/* All along dim, stable: equal elements keep their order. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_sort(AtenTensorHandle self_, int64_t dim,
                                                    int32_t descending, AtenTensorHandle* ret0,
                                                    AtenTensorHandle* ret1);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_sort_stable(AtenTensorHandle self_,
                                                           const int32_t* stable, int64_t dim,
                                                           int32_t descending,
                                                           AtenTensorHandle* ret0,
                                                           AtenTensorHandle* ret1);
/* Sums of all elements up to each one. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_cumsum(AtenTensorHandle self_, int64_t dim,
                                                      const int32_t* dtype, AtenTensorHandle* ret0);
/* Elements at places: an index tensor a dimension, null for all of it. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_index_Tensor(AtenTensorHandle self_,
                                                            const AtenTensorHandle* const* indices,
                                                            int64_t indices_len_,
                                                            AtenTensorHandle* ret0);
/* A copy of self with values written, or added, at places. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_index_put(AtenTensorHandle self_,
                                                         const AtenTensorHandle* const* indices,
                                                         int64_t indices_len_,
                                                         AtenTensorHandle values,
                                                         int32_t accumulate,
                                                         AtenTensorHandle* ret0);
/* reduce: "sum", "prod", "mean", "amax" or "amin". */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_scatter_reduce_two_out(
    AtenTensorHandle out, AtenTensorHandle self_, int64_t dim, AtenTensorHandle index,
    AtenTensorHandle src, const char* reduce, int32_t include_self);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_fill__Scalar(AtenTensorHandle self_, double value);

/* softmax(scale q k^T + mask) v of queries (.., h, l, e), keys (.., g, s, e) and values
 * (.., g, s, w): float32, float16 and bfloat16, over any strides; h is a multiple of g, whatever
 * enable_gqa says, and what comes before broadcasts to the queries'. attn_mask, or null, broadcasts
 * to (.., h, l, s): bool says what takes part, other types are added. With is_causal, and no mask,
 * query i sees the keys 0 to i alone. *scale, or 1 / sqrt(e) for null. dropout_p is 0 and
 * dropout_mask null, or the answer is NOT_SUPPORTED. ret0 is contiguous, (.., h, l, w); a row that
 * sees no key is 0. ret1 may be null; else it becomes the weights, (.., h, l, s), which, where they
 * are larger than what they are made from, are made when the first function is given their handle. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps__scaled_dot_product_attention_math_for_mps(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    const AtenTensorHandle* attn_mask, double dropout_p, int32_t is_causal,
    const AtenTensorHandle* dropout_mask, const double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps__scaled_dot_product_attention_math_for_mps_v2(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value,
    const AtenTensorHandle* attn_mask, double dropout_p, int32_t is_causal,
    const AtenTensorHandle* dropout_mask, const double* scale, int32_t enable_gqa,
    AtenTensorHandle* ret0, AtenTensorHandle* ret1);

/* A convolution of (n, c, l) or (n, c, h, w), n being absent in both or present, by weights of
 * (o, c / groups, kernel), or of (c, o / groups, kernel) where it is transposed, and a bias of
 * (o), or null: float32, float16 and bfloat16, over any strides. Lists of one value a spatial
 * dimension, vertical first. The result is channels-last where the input or the weights are
 * images that are so, contiguous otherwise. NOT_SUPPORTED for 3 spatial dimensions. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_convolution(
    AtenTensorHandle input, AtenTensorHandle weight, const AtenTensorHandle* bias,
    const int64_t* stride, int64_t stride_len_, const int64_t* padding, int64_t padding_len_,
    const int64_t* dilation, int64_t dilation_len_, int32_t transposed,
    const int64_t* output_padding, int64_t output_padding_len_, int64_t groups,
    AtenTensorHandle* ret0);

/* Windows over (c, h, w) or (n, c, h, w), float32, float16 and bfloat16; channels-last stays
 * so. Lists of one value for both directions or of two, vertical first; an empty stride is
 * kernel_size. The largest element of each, NaN before all, with its place in its plane
 * (int64). */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_max_pool2d_with_indices(
    AtenTensorHandle self_, const int64_t* kernel_size, int64_t kernel_size_len_,
    const int64_t* stride, int64_t stride_len_, const int64_t* padding, int64_t padding_len_,
    const int64_t* dilation, int64_t dilation_len_, int32_t ceil_mode, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1);
/* The mean of each. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_avg_pool2d(
    AtenTensorHandle self_, const int64_t* kernel_size, int64_t kernel_size_len_,
    const int64_t* stride, int64_t stride_len_, const int64_t* padding, int64_t padding_len_,
    int32_t ceil_mode, int32_t count_include_pad, const int64_t* divisor_override,
    AtenTensorHandle* ret0);

/* Views and, where a view cannot be, copies. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_narrow(AtenTensorHandle self_, int64_t dim,
                                                      int64_t start, int64_t length,
                                                      AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_slice_Tensor(AtenTensorHandle self_, int64_t dim,
                                                            const int64_t* start,
                                                            const int64_t* end, int64_t step,
                                                            AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_permute(AtenTensorHandle self_, const int64_t* dims,
                                                       int64_t dims_len_, AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_reshape(AtenTensorHandle self_, const int64_t* shape,
                                                       int64_t shape_len_, AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_squeeze_dim(AtenTensorHandle self_, int64_t dim,
                                                           AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_view_dtype(AtenTensorHandle self_, int32_t dtype,
                                                          AtenTensorHandle* ret0);
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_cat(const AtenTensorHandle* tensors,
                                                   int64_t tensors_len_, int64_t dim,
                                                   AtenTensorHandle* ret0);

/* Every other name of c_shim_mps.h is exported as well and is NOT_IMPLEMENTED, so that a
 * program that calls it fails with a sentence and not when it is loaded. */

/* ExecuTorch's own, float32 and bfloat16. Weights are unsigned nibbles, the lower first, times
 * the scale of their group of `group_size` along K, plus its offset. */

/* ret[m][n] = sum over k of A[m][k] weight[n][k]: A (M, K), B (N, K/2) uint8, S and Z (N,
 * K/group_size); group_size 32, 64, 128 or 256. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps__linear_fp_act_4bit_weight(
    AtenTensorHandle A, AtenTensorHandle B, int64_t group_size, AtenTensorHandle S,
    AtenTensorHandle Z, AtenTensorHandle* ret);
/* ret[p][n] = sum over k of x[p][k] weight[experts[p]][n][k]: x (P, K), w (E, N, K/2) uint8,
 * scales and biases (E, N, K/group_size), experts (P) int32. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_gather_qmv(
    AtenTensorHandle x, AtenTensorHandle w, AtenTensorHandle scales, AtenTensorHandle biases,
    AtenTensorHandle experts, int64_t group_size, AtenTensorHandle* ret);
/* Linear attention with a decaying state (B, Hv, Dv, Dk), read and written in place; for each
 * step S = g S, S += beta (v - S k) k^T, y = S q. q and k (B, L, Hk, Dk), v (B, L, Hv, Dv), g and
 * beta (B, L, Hv); ret like v. */
AOTI_WGPU_EXPORT AOTITorchError aoti_torch_mps_gated_delta_rule(
    AtenTensorHandle q, AtenTensorHandle k, AtenTensorHandle v, AtenTensorHandle g,
    AtenTensorHandle beta, AtenTensorHandle state, AtenTensorHandle* ret);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* AOTI_WGPU_H */
