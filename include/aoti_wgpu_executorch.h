/*
 * aoti_wgpu_executorch.h: checks, in the user's build, that ExecuTorch's tensors lie in
 * memory as aoti-wgpu lays its handles out.
 *
 * ExecuTorch's delegate takes an AtenTensorHandle for an executorch::runtime::etensor::
 * Tensor* and reads it inline. Include this header once, in any C++17 file of a build that
 * links aoti-wgpu with ExecuTorch: a change in ExecuTorch is a compile error then, and not a
 * crash. It defines nothing else. The layout is that of ExecuTorch v0.4 to v1.5.
 */
#ifndef AOTI_WGPU_EXECUTORCH_H
#define AOTI_WGPU_EXECUTORCH_H

#include <executorch/runtime/core/portable_type/tensor.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace aoti_wgpu {
namespace executorch_layout {

using ::executorch::runtime::etensor::Tensor;
using ::executorch::runtime::etensor::TensorImpl;

static_assert(sizeof(void*) == 8, "aoti-wgpu's handles are laid out for 64-bit targets");
static_assert(sizeof(Tensor) == 8, "an ETensor is no longer one pointer");
static_assert(sizeof(TensorImpl) == 64, "TensorImpl is no longer 64 bytes");
static_assert(std::is_standard_layout<Tensor>::value && std::is_standard_layout<TensorImpl>::value,
              "ETensors no longer lie in memory as C structs do");

template <int field, std::size_t found, std::size_t expected>
struct Offset {
  static_assert(found == expected, "a field of TensorImpl has moved");
};

template <int field, class found, class expected>
struct Type {
  static_assert(std::is_same<typename std::remove_const<found>::type, expected>::value,
                "a field of TensorImpl has another type");
};

template <int field, class found>
struct Byte {
  static_assert(sizeof(found) == 1, "a field of TensorImpl is no longer one byte");
};

// The fields are private; names in an explicit instantiation are not held to that. The
// numbers tell instantiations with equal arguments apart.
template struct Offset<1, offsetof(Tensor, impl_), 0>;
template struct Offset<2, offsetof(TensorImpl, sizes_), 0>;
template struct Offset<3, offsetof(TensorImpl, dim_order_), 8>;
template struct Offset<4, offsetof(TensorImpl, strides_), 16>;
template struct Offset<5, offsetof(TensorImpl, data_), 24>;
template struct Offset<6, offsetof(TensorImpl, dim_), 32>;
template struct Offset<7, offsetof(TensorImpl, numel_), 40>;
template struct Offset<8, offsetof(TensorImpl, numel_bound_), 48>;
template struct Offset<9, offsetof(TensorImpl, type_), 56>;
template struct Offset<10, offsetof(TensorImpl, shape_dynamism_), 57>;

template struct Type<11, decltype(Tensor::impl_), TensorImpl*>;
template struct Type<12, decltype(TensorImpl::sizes_), std::int32_t*>;
template struct Type<13, decltype(TensorImpl::dim_order_), std::uint8_t*>;
template struct Type<14, decltype(TensorImpl::strides_), std::int32_t*>;
template struct Type<15, decltype(TensorImpl::data_), void*>;
template struct Byte<16, decltype(TensorImpl::type_)>;
template struct Byte<17, decltype(TensorImpl::shape_dynamism_)>;

static_assert(static_cast<int>(::executorch::runtime::TensorShapeDynamism::STATIC) == 0,
              "the codes of shape dynamism have changed");
static_assert(static_cast<int>(::executorch::runtime::etensor::ScalarType::Float) == 6 &&
                  static_cast<int>(::executorch::runtime::etensor::ScalarType::BFloat16) == 15,
              "the codes of scalar types have changed");

}  // namespace executorch_layout
}  // namespace aoti_wgpu

#endif  // AOTI_WGPU_EXECUTORCH_H
