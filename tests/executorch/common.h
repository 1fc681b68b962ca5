// What the sources of this test share.
#pragma once

#include <aoti_wgpu.h>
#include <executorch/runtime/core/portable_type/tensor.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,  \
                   aoti_wgpu_last_error_message());                                        \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

using executorch::runtime::etensor::ScalarType;
using executorch::runtime::etensor::Tensor;
using executorch::runtime::etensor::TensorImpl;

inline Tensor* inline_view(AtenTensorHandle handle) { return reinterpret_cast<Tensor*>(handle); }
inline AtenTensorHandle as_handle(Tensor* tensor) { return reinterpret_cast<AtenTensorHandle>(tensor); }

// An ETensor over host memory, as ExecuTorch makes its inputs and outputs.
class HostTensor {
 public:
  // `order` lists the dimensions from the outermost in memory; empty for row-major.
  HostTensor(ScalarType type, std::vector<int32_t> sizes, std::size_t element_bytes,
             std::vector<uint8_t> order = {},
             executorch::runtime::TensorShapeDynamism dynamism =
                 executorch::runtime::TensorShapeDynamism::DYNAMIC_BOUND);
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;

  Tensor* operator->() { return &tensor_; }
  Tensor& operator*() { return tensor_; }
  AtenTensorHandle handle() { return as_handle(&tensor_); }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<int32_t> sizes_, strides_;
  std::vector<uint8_t> order_, bytes_;
  TensorImpl impl_;
  Tensor tensor_;
};

inline aoti_wgpu_stats_t stats() {
  aoti_wgpu_stats_t stats = {};
  stats.struct_size = sizeof stats;
  CHECK(aoti_wgpu_stats(&stats) == 0);
  return stats;
}

void test_tensors();
void test_stream();
void test_models(const char* program);
void test_many_runs(const char* program, int runs);
void test_program(const std::string& manifest);
