// A program of the kind that AOTInductor generates, without kernels, so that it runs
// wherever tensors can be copied.
//
// From x (4, 6) and the constants a (6) and b (4, 6), which lie in one device allocation:
//   output 0: (4, 12), x beside a in each row: a tensor of the program's own;
//   output 1: (4, 6), the right half of output 0: a view with holes;
//   output 2: (6, 4), x transposed: a view with another order of strides;
//   output 3: (4, 6), b: a second handle to a constant.
// Each replaces the handle that the caller passed.

#include <aoti_wgpu.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace {

constexpr int64_t kRows = 4, kColumns = 6;

#ifdef STAYS_MAPPED
// A variable that is unique in a process, as real programs have some: dlclose leaves the
// object mapped, and a later dlopen of the same path finds it.
}  // namespace
template <typename T>
struct Unique {
  static inline int containers = 0;
};
namespace {
#endif

// Programs keep the constants that they need in every call, from when they are loaded.
const int32_t cached_float32 = aoti_torch_dtype_float32();
const int32_t cached_mps = aoti_torch_device_type_mps();

thread_local std::string last_error;

void check(AOTITorchError code) {
  if (code != 0) throw std::runtime_error(aoti_wgpu_last_error_message());
}

int32_t device_of(const char* name) {
  if (std::strcmp(name, "mps") != 0) throw std::runtime_error("compiled for mps");
  return aoti_torch_device_type_mps();
}

AtenTensorHandle view(AtenTensorHandle of, int64_t rows, int64_t columns, int64_t row, int64_t column,
                      int64_t offset) {
  const int64_t sizes[] = {rows, columns}, strides[] = {row, column};
  AtenTensorHandle out = nullptr;
  check(aoti_torch__reinterpret_tensor(of, 2, sizes, strides, offset, &out));
  return out;
}

AtenTensorHandle empty(int64_t rows, int64_t columns) {
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
  AtenTensorHandle out = nullptr;
  check(aoti_torch_empty_strided(2, sizes, strides, cached_float32, cached_mps, 0, &out));
  return out;
}

struct Container {
  explicit Container(const char* device) : device(device_of(device)) {
#ifdef STAYS_MAPPED
    ++Unique<int>::containers;
#endif
  }

  void load_constants(const uint8_t* blob) {
    const size_t elements = kColumns + kRows * kColumns;
    check(aoti_torch_mps_malloc(&memory, elements * sizeof(float)));
    check(aoti_torch_mps_memcpy(memory, 0, 0, elements * sizeof(float), const_cast<uint8_t*>(blob)));
    const int64_t sizes[] = {kRows, kColumns}, strides[] = {kColumns, 1};
    check(aoti_torch_create_tensor_from_blob_v2(memory, 1, sizes + 1, strides + 1, 0, cached_float32, device, 0,
                                                &a, aoti_torch_layout_strided(), nullptr, 0));
    check(aoti_torch_create_tensor_from_blob_v2(memory, 2, sizes, strides, kColumns, cached_float32, device, 0,
                                                &b, aoti_torch_layout_strided(), nullptr, 0));
  }

  void run(AtenTensorHandle x, AtenTensorHandle* outputs) {
    AtenTensorHandle whole = empty(kRows, 2 * kColumns), plain = empty(kRows, kColumns);
    AtenTensorHandle left = view(whole, kRows, kColumns, 2 * kColumns, 1, 0);
    AtenTensorHandle right = view(whole, kRows, kColumns, 2 * kColumns, 1, kColumns);
    check(aoti_torch_copy_(left, x, 1));
    check(aoti_torch_copy_(right, a, 1));
    check(aoti_torch_copy_(plain, x, 1));
    AtenTensorHandle second = nullptr;
    check(aoti_torch_new_tensor_handle(b, &second));
    outputs[0] = whole;
    outputs[1] = right;
    outputs[2] = view(plain, kColumns, kRows, 1, kColumns, 0);
    outputs[3] = second;
    check(aoti_torch_delete_tensor_object(left));
    check(aoti_torch_delete_tensor_object(plain));
    check(aoti_torch_delete_tensor_object(x));
  }

  int32_t device;
  void* memory = nullptr;
  AtenTensorHandle a = nullptr, b = nullptr;
};

template <typename F>
AOTITorchError guarded(F&& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return 1;
  }
}

}  // namespace

extern "C" {

AOTITorchError AOTInductorModelContainerCreateWithDevice(Container** out, size_t, const char* device,
                                                         const char*) {
  return guarded([&] { *out = new Container(device); });
}

AOTITorchError AOTInductorModelUpdateConstantsFromBlob(Container* container, const uint8_t* blob) {
  return guarded([&] { container->load_constants(blob); });
}

AOTITorchError AOTInductorModelContainerGetNumInputs(Container*, size_t* out) {
  *out = 1;
  return 0;
}

AOTITorchError AOTInductorModelContainerGetNumOutputs(Container*, size_t* out) {
  *out = 4;
  return 0;
}

AOTITorchError AOTInductorModelContainerRun(Container* container, AtenTensorHandle* inputs, size_t,
                                            AtenTensorHandle* outputs, size_t, void*, void*) {
  return guarded([&] { container->run(inputs[0], outputs); });
}

AOTITorchError AOTInductorGetLastError(const char** text) {
  *text = last_error.c_str();
  return 0;
}

}  // extern "C"
