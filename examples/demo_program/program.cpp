// A program of the kind that AOTInductor generates, small enough to read.
//
// y = silu(x * scale + bias) over a (6, 96) input, written to the right half of a (6, 192)
// buffer whose left half is x itself; the result is the buffer and, as a view with holes,
// its right half. Scale and bias are constants in one device allocation. `run_program`
// drives it: make demo.

#include <aoti_wgpu.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

namespace {

constexpr int64_t kRows = 6, kColumns = 96;

const char* const kSource = R"(
#include <metal_stdlib>
using namespace metal;
kernel void scale_bias_silu(
    device float* out_ptr0,
    constant float* in_ptr0,
    constant float* in_ptr1,
    constant float* in_ptr2,
    uint xindex [[thread_position_in_grid]]
) {
    int x0 = (xindex) % (96);
    int x1 = xindex / 96;
    auto tmp0 = in_ptr0[xindex];
    auto tmp1 = in_ptr1[x0];
    auto tmp2 = in_ptr2[x0];
    auto tmp3 = tmp0 * tmp1 + tmp2;
    auto tmp4 = tmp3 / (1.0f + metal::precise::exp(-tmp3));
    out_ptr0[x0 + 192 * x1] = static_cast<float>(tmp4);
}
)";

thread_local std::string last_error;

void check(AOTITorchError code) {
  if (code != 0) throw std::runtime_error(aoti_wgpu_last_error_message());
}

AtenTensorHandle view(AtenTensorHandle of, int64_t offset, int64_t columns) {
  const int64_t sizes[] = {kRows, columns}, strides[] = {2 * kColumns, 1};
  AtenTensorHandle out = nullptr;
  check(aoti_torch__reinterpret_tensor(of, 2, sizes, strides, offset, &out));
  return out;
}

struct Container {
  void* memory = nullptr;
  AtenTensorHandle scale = nullptr, bias = nullptr;
  AOTIMetalShaderLibraryHandle library = nullptr;
  AOTIMetalKernelFunctionHandle kernel = nullptr;

  Container() {
    check(aoti_torch_mps_create_shader_library(kSource, &library));
    check(aoti_torch_mps_get_kernel_function(library, "scale_bias_silu", &kernel));
  }

  ~Container() {
    drop_constants();
    aoti_torch_mps_delete_shader_library(library);
  }

  void drop_constants() {
    // As generated programs do: the allocation first, then the tensors over it.
    aoti_torch_mps_free(memory);
    aoti_torch_delete_tensor_object(scale);
    aoti_torch_delete_tensor_object(bias);
    memory = scale = bias = nullptr;
  }

  void load_constants(const uint8_t* blob) {
    drop_constants();
    const size_t bytes = kColumns * sizeof(float);
    check(aoti_torch_mps_malloc(&memory, 2 * bytes));
    AtenTensorHandle* constants[] = {&scale, &bias};
    for (int64_t i = 0; i < 2; ++i) {
      const size_t at = static_cast<size_t>(i) * bytes;
      check(aoti_torch_mps_memcpy(memory, at, at, bytes, const_cast<uint8_t*>(blob)));
      check(aoti_torch_create_tensor_from_blob_v2(
          memory, 1, &kColumns, nullptr, i * kColumns, aoti_torch_dtype_float32(),
          aoti_torch_device_type_mps(), 0, constants[i], aoti_torch_layout_strided(), nullptr, 0));
    }
  }

  void run(AtenTensorHandle input, AtenTensorHandle* outputs) {
    const int64_t sizes[] = {kRows, 2 * kColumns};
    AtenTensorHandle whole = nullptr;
    check(aoti_torch_empty_strided(2, sizes, nullptr, aoti_torch_dtype_float32(),
                                   aoti_torch_device_type_mps(), 0, &whole));
    AtenTensorHandle left = view(whole, 0, kColumns), right = view(whole, kColumns, kColumns);
    check(aoti_torch_copy_(left, input, 1));
    std::function<void(AOTIMetalKernelFunctionHandle)> encode =
        [&](AOTIMetalKernelFunctionHandle function) {
          aoti_torch_mps_start_encoding(function);
          aoti_torch_mps_set_arg_tensor(function, 0, right);
          aoti_torch_mps_set_arg_tensor(function, 1, input);
          aoti_torch_mps_set_arg_tensor(function, 2, scale);
          aoti_torch_mps_set_arg_tensor(function, 3, bias);
          aoti_torch_mps_dispatch_single(function, kRows * kColumns);
        };
    aoti_torch_mps_run_command_block(kernel, aoti_torch_mps_shared_callback, &encode);
    aoti_torch_delete_tensor_object(left);
    aoti_torch_delete_tensor_object(input);
    outputs[0] = whole;
    outputs[1] = right;
  }
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
  return guarded([&] {
    if (std::strcmp(device, "mps") != 0) throw std::runtime_error("compiled for mps");
    *out = new Container;
  });
}

AOTITorchError AOTInductorModelUpdateConstantsFromBlob(Container* container, const uint8_t* blob) {
  return guarded([&] { container->load_constants(blob); });
}

AOTITorchError AOTInductorModelContainerGetNumInputs(Container*, size_t* out) {
  *out = 1;
  return 0;
}

AOTITorchError AOTInductorModelContainerGetNumOutputs(Container*, size_t* out) {
  *out = 2;
  return 0;
}

AOTITorchError AOTInductorModelContainerRun(Container* container, AtenTensorHandle* inputs, size_t,
                                            AtenTensorHandle* outputs, size_t, void*, void*) {
  return guarded([&] { container->run(inputs[0], outputs); });
}

AOTITorchError AOTInductorModelContainerDelete(Container* container) {
  delete container;
  return 0;
}

AOTITorchError AOTInductorGetLastError(const char** text) {
  *text = last_error.c_str();
  return 0;
}

}  // extern "C"
