/*
 * aoti_wgpu_executorch.h: holds ExecuTorch's tensor against the layout of a handle.
 *
 * ExecuTorch's delegate reads a handle of aoti-wgpu inline, as an `etensor::Tensor`. Include
 * this file in one source of a build that links both (the CMake target
 * `aoti_wgpu::aoti_wgpu` has it on its include path), with ExecuTorch's headers on the
 * include path: an ExecuTorch whose tensor looks different is then an error of the compiler.
 * It declares nothing. C++17; the layout is that of ExecuTorch 0.4 to 1.5 on 64-bit machines.
 */
#ifndef AOTI_WGPU_EXECUTORCH_H
#define AOTI_WGPU_EXECUTORCH_H

#include <executorch/runtime/core/portable_type/tensor.h>
#include <executorch/runtime/core/portable_type/tensor_impl.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace aoti_wgpu {
namespace executorch_layout {

using ::executorch::runtime::etensor::Tensor;
using ::executorch::runtime::etensor::TensorImpl;

/* The members are private; names in an explicit instantiation may be so. */
template <std::size_t Found, std::size_t Expected>
struct Offset {
  static_assert(Found == Expected, "ExecuTorch's TensorImpl has another layout than aoti-wgpu's handles");
};
template <typename Found, typename Expected, std::size_t At>
struct Type {
  static_assert(std::is_same<Found, Expected>::value || std::is_enum<Found>::value,
                "a field of ExecuTorch's TensorImpl has another type than in aoti-wgpu's handles");
  static_assert(sizeof(Found) == sizeof(Expected),
                "a field of ExecuTorch's TensorImpl has another size than in aoti-wgpu's handles");
};

#define AOTI_WGPU_FIELD(field, offset, type)                  \
  template struct Offset<offsetof(TensorImpl, field), offset>; \
  template struct Type<decltype(TensorImpl::field), type, offset>;

AOTI_WGPU_FIELD(sizes_, 0, std::int32_t*)
AOTI_WGPU_FIELD(dim_order_, 8, std::uint8_t*)
AOTI_WGPU_FIELD(strides_, 16, std::int32_t*)
AOTI_WGPU_FIELD(data_, 24, void*)
AOTI_WGPU_FIELD(dim_, 32, const ::ssize_t)
AOTI_WGPU_FIELD(numel_, 40, ::ssize_t)
AOTI_WGPU_FIELD(numel_bound_, 48, std::size_t)
AOTI_WGPU_FIELD(type_, 56, const std::int8_t)
AOTI_WGPU_FIELD(shape_dynamism_, 57, const std::uint8_t)

#undef AOTI_WGPU_FIELD

static_assert(sizeof(TensorImpl) == 64, "ExecuTorch's TensorImpl has another size");
static_assert(sizeof(Tensor) == sizeof(void*) && std::is_standard_layout<Tensor>::value,
              "ExecuTorch's Tensor is not one pointer");

} /* namespace executorch_layout */
} /* namespace aoti_wgpu */

#endif /* AOTI_WGPU_EXECUTORCH_H */
