// Handles read inline as ETensors, and ETensors of ExecuTorch's passed as handles.

#include <aoti_wgpu_executorch.h>

#include <stdexcept>

#include "common.h"

namespace executorch::backends::metal {
// As et_metal.h declares them.
class ETMetalStream {
 public:
  void setFlushInterval(int interval);
};
ETMetalStream* getCurrentMetalStream();
void synchronize_metal_stream();
}  // namespace executorch::backends::metal

namespace {

std::vector<int32_t> default_order(std::size_t rank, std::vector<uint8_t>& order) {
  if (order.empty()) {
    for (std::size_t d = 0; d < rank; ++d) order.push_back(static_cast<uint8_t>(d));
  }
  return std::vector<int32_t>(rank, 1);
}

std::vector<int32_t> strides_of(const std::vector<int32_t>& sizes, std::vector<uint8_t>& order) {
  std::vector<int32_t> strides = default_order(sizes.size(), order);
  int32_t next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[order[i]] = next;
    next *= sizes[order[i]] > 1 ? sizes[order[i]] : 1;
  }
  return strides;
}

std::size_t elements(const std::vector<int32_t>& sizes) {
  std::size_t count = 1;
  for (int32_t size : sizes) count *= static_cast<std::size_t>(size);
  return count;
}

AtenTensorHandle empty(std::vector<int64_t> sizes, std::vector<int64_t> strides, int32_t device) {
  AtenTensorHandle out = nullptr;
  CHECK(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(),
                                 strides.empty() ? nullptr : strides.data(), aoti_torch_dtype_float32(), device, 0,
                                 &out) == 0);
  return out;
}

// The inline members against the getters.
void compare(AtenTensorHandle handle) {
  Tensor* tensor = inline_view(handle);
  int64_t rank = -1, numel = -1, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = -1;
  CHECK(aoti_torch_get_dim(handle, &rank) == 0 && tensor->dim() == rank);
  CHECK(aoti_torch_get_numel(handle, &numel) == 0 && tensor->numel() == numel);
  CHECK(aoti_torch_get_dtype(handle, &dtype) == 0 && static_cast<int32_t>(tensor->scalar_type()) == dtype);
  CHECK(aoti_torch_get_sizes(handle, &sizes) == 0 && aoti_torch_get_strides(handle, &strides) == 0);
  CHECK(tensor->nbytes() == static_cast<std::size_t>(numel) * aoti_torch_dtype_element_size(dtype));
  CHECK(tensor->element_size() == static_cast<ssize_t>(aoti_torch_dtype_element_size(dtype)));
  for (int64_t d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    CHECK(tensor->sizes()[i] == sizes[d] && tensor->size(d) == sizes[d]);
    CHECK(tensor->strides()[i] == strides[d]);
    // Outermost first, equal strides in order.
    if (d > 0) CHECK(strides[tensor->dim_order()[i - 1]] >= strides[tensor->dim_order()[i]]);
  }
  CHECK(tensor->sizes().size() == static_cast<std::size_t>(rank));
  CHECK(tensor->shape_dynamism() == executorch::runtime::TensorShapeDynamism::STATIC);
}

void test_inline_use() {
  const int32_t mps = aoti_torch_device_type_mps(), cpu = aoti_torch_device_type_cpu();
  for (int32_t device : {mps, cpu}) {
    for (AtenTensorHandle handle : {empty({2, 3, 4}, {}, device), empty({2, 3, 4, 5}, {60, 1, 15, 3}, device),
                                    empty({}, {}, device), empty({0, 7}, {}, device)}) {
      compare(handle);
      void* data = nullptr;
      CHECK(aoti_torch_get_data_ptr(handle, &data) == 0 && inline_view(handle)->mutable_data_ptr() == data);
      CHECK(aoti_torch_delete_tensor_object(handle) == 0);
    }
  }
  // A packed view: contiguous, and without an address until the dense buffer is there.
  AtenTensorHandle base = empty({4, 6}, {}, mps), view = nullptr;
  const int64_t sizes[] = {4, 3}, strides[] = {6, 1};
  CHECK(aoti_torch__reinterpret_tensor(base, 2, sizes, strides, 2, &view) == 0);
  compare(view);
  const char* views = std::getenv("AOTI_WGPU_VIEWS");
  if (views == nullptr || std::string(views) != "strided") {
    CHECK(inline_view(view)->strides()[0] == 3);
    CHECK(inline_view(view)->const_data_ptr() == nullptr);
  }
  void* data = nullptr;
  CHECK(aoti_torch_get_data_ptr(view, &data) == 0 && data != nullptr);
  CHECK(inline_view(view)->const_data_ptr() == data);
  CHECK(aoti_torch_delete_tensor_object(base) == 0 && aoti_torch_delete_tensor_object(view) == 0);
}

void test_foreign() {
  // Channels last, where the handle is row-major: elements keep their places by index.
  HostTensor from(ScalarType::Float, {2, 3, 4, 5}, 4, {0, 2, 3, 1});
  HostTensor to(ScalarType::Float, {2, 3, 4, 5}, 4);
  for (int i = 0; i < 120; ++i) from.data<float>()[i] = static_cast<float>(i);
  AtenTensorHandle device = empty({2, 3, 4, 5}, {}, aoti_torch_device_type_mps()), clone = nullptr;
  CHECK(aoti_torch_copy_(device, from.handle(), 0) == 0);
  CHECK(aoti_torch_copy_(to.handle(), device, 0) == 0);
  for (int n = 0; n < 2; ++n) {
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 20; ++p) {
        CHECK(to.data<float>()[(n * 3 + c) * 20 + p] == static_cast<float>((n * 20 + p) * 3 + c));
      }
    }
  }
  // From one foreign tensor to another, and a clone of one.
  HostTensor again(ScalarType::Float, {2, 3, 4, 5}, 4, {0, 2, 3, 1});
  CHECK(aoti_torch_copy_(again.handle(), to.handle(), 0) == 0);
  CHECK(again.bytes() == from.bytes());
  CHECK(aoti_torch_clone(from.handle(), &clone) == 0);
  compare(clone);
  CHECK(inline_view(clone)->strides()[1] == 1);
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  void* data = nullptr;
  int32_t kind = -1, dtype = -1;
  CHECK(aoti_torch_get_dim(from.handle(), &rank) == 0 && rank == 4);
  CHECK(aoti_torch_get_sizes(from.handle(), &sizes) == 0 && sizes[3] == 5);
  CHECK(aoti_torch_get_strides(from.handle(), &strides) == 0 && strides[1] == 1 && strides[2] == 15);
  CHECK(aoti_torch_get_data_ptr(from.handle(), &data) == 0 && data == from.bytes().data());
  CHECK(aoti_torch_get_device_type(from.handle(), &kind) == 0 && kind == aoti_torch_device_type_cpu());
  CHECK(aoti_torch_get_dtype(from.handle(), &dtype) == 0 && dtype == aoti_torch_dtype_float32());
  CHECK(aoti_torch_delete_tensor_object(from.handle()) == AOTI_WGPU_INVALID_ARGUMENT);
  CHECK(aoti_torch_delete_tensor_object(device) == 0 && aoti_torch_delete_tensor_object(clone) == 0);
}

}  // namespace

HostTensor::HostTensor(ScalarType type, std::vector<int32_t> sizes, std::size_t element_bytes,
                       std::vector<uint8_t> order, executorch::runtime::TensorShapeDynamism dynamism)
    : sizes_(std::move(sizes)),
      strides_(strides_of(sizes_, order)),
      order_(std::move(order)),
      bytes_(elements(sizes_) * element_bytes),
      impl_(type, static_cast<ssize_t>(sizes_.size()), sizes_.data(), bytes_.data(), order_.data(), strides_.data(),
            dynamism),
      tensor_(&impl_) {}

void test_tensors() {
  test_inline_use();
  test_foreign();
}

void test_stream() {
  using namespace executorch::backends::metal;
  CHECK(getCurrentMetalStream() != nullptr);
  getCurrentMetalStream()->setFlushInterval(8);
  synchronize_metal_stream();
}
