// A program of the kind that AOTInductor generates, whose constants can fail half way.
//
// Its blob begins with four integers: the constant at which it fails (or none: -1), how,
// whether it may run kernels, and whether its container stays after it was deleted, as
// ExecuTorch's delegate leaves it. Four constants of kCount floats follow. Of an input x it
// makes {x * c0 + c1, c3} (without kernels {c0, c3}) and a view of every second element.
#include <aoti_wgpu.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

namespace {

constexpr int64_t kCount = 64, kConstants = 4;

const char* const kSource = R"(
#include <metal_stdlib>
kernel void scale(
    device float* out [[buffer(0)]],
    constant float* in [[buffer(1)]],
    constant float* factor [[buffer(2)]],
    constant float* more [[buffer(3)]],
    uint i [[thread_position_in_grid]])
{
    out[i] = in[i] * factor[i] + more[i];
}
)";

enum How : int64_t { kMemory, kCopy, kTensor, kThrow };

struct Head {
  int64_t fails_at, how, kernels, kept;
};

thread_local std::string last_error;

void check(AOTITorchError code) {
  if (code != 0) throw std::runtime_error(aoti_wgpu_last_error_message());
}

// Generated programs ask while they are loaded.
const int32_t kDevice = aoti_torch_device_type_mps();

// And keep what they compiled for as long as they are loaded.
struct Kernels {
  AOTIMetalShaderLibraryHandle library = nullptr;
  AOTIMetalKernelFunctionHandle scale = nullptr;
  Kernels() {
    check(aoti_torch_mps_create_shader_library(kSource, &library));
    check(aoti_torch_mps_get_kernel_function(library, "scale", &scale));
  }
  ~Kernels() { aoti_torch_mps_delete_shader_library(library); }
};

AtenTensorHandle view(AtenTensorHandle of, int64_t size, int64_t stride, int64_t offset) {
  AtenTensorHandle out = nullptr;
  check(aoti_torch__reinterpret_tensor(of, 1, &size, &stride, offset, &out));
  return out;
}

struct Container {
  const int32_t device = aoti_torch_device_type_mps();
  Head head{};
  void* memory = nullptr;
  AtenTensorHandle constants[kConstants] = {};

  ~Container() {
    aoti_torch_mps_free(memory);
    for (AtenTensorHandle constant : constants) aoti_torch_delete_tensor_object(constant);
  }

  void load_constants(const uint8_t* blob) {
    std::memcpy(&head, blob, sizeof head);
    const int64_t bytes = kCount * static_cast<int64_t>(sizeof(float));
    const auto fails = [&](int64_t constant, How how) {
      return head.fails_at == constant && head.how == how;
    };
    // More than there is anywhere.
    const bool too_much = head.fails_at >= 0 && head.how == kMemory;
    check(aoti_torch_mps_malloc(&memory, static_cast<size_t>(too_much ? INT64_MAX / 2 : kConstants * bytes)));
    for (int64_t i = 0; i < kConstants; ++i) {
      const size_t at = static_cast<size_t>(i * bytes);
      if (fails(i, kThrow)) throw std::runtime_error("a constant is missing");
      const int64_t end = fails(i, kCopy) ? kConstants * bytes + 1 : bytes;
      check(aoti_torch_mps_memcpy(memory, at, sizeof head + at, static_cast<size_t>(end),
                                  const_cast<uint8_t*>(blob)));
      const int64_t offset = fails(i, kTensor) ? kConstants * kCount : i * kCount;
      check(aoti_torch_create_tensor_from_blob_v2(
          memory, 1, &kCount, nullptr, offset, aoti_torch_dtype_float32(), kDevice, 0,
          &constants[i], aoti_torch_layout_strided(), nullptr, 0));
    }
  }

  void run(AtenTensorHandle input, AtenTensorHandle* outputs) {
    const int64_t size = 2 * kCount;
    AtenTensorHandle whole = nullptr;
    check(aoti_torch_empty_strided(1, &size, nullptr, aoti_torch_dtype_float32(), kDevice, 0,
                                   &whole));
    AtenTensorHandle first = view(whole, kCount, 1, 0), second = view(whole, kCount, 1, kCount);
    if (head.kernels) {
      static const Kernels kernels;
      std::function<void(AOTIMetalKernelFunctionHandle)> encode =
          [&](AOTIMetalKernelFunctionHandle function) {
            aoti_torch_mps_start_encoding(function);
            aoti_torch_mps_set_arg_tensor(function, 0, first);
            aoti_torch_mps_set_arg_tensor(function, 1, input);
            aoti_torch_mps_set_arg_tensor(function, 2, constants[0]);
            aoti_torch_mps_set_arg_tensor(function, 3, constants[1]);
            aoti_torch_mps_dispatch_single(function, kCount);
          };
      check(aoti_torch_mps_run_command_block(kernels.scale, aoti_torch_mps_shared_callback, &encode));
    } else {
      check(aoti_torch_copy_(first, constants[0], 0));
    }
    check(aoti_torch_copy_(second, constants[3], 0));
    aoti_torch_delete_tensor_object(first);
    aoti_torch_delete_tensor_object(second);
    aoti_torch_delete_tensor_object(input);
    outputs[0] = whole;
    outputs[1] = view(whole, kCount, 2, 0);
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

AOTITorchError AOTInductorModelContainerCreateWithDevice(Container** out, size_t, const char*,
                                                         const char*) {
  return guarded([&] { *out = new Container; });
}

AOTITorchError AOTInductorModelUpdateConstantsFromBlob(Container* container, const uint8_t* blob) {
  return guarded([&] { container->load_constants(blob); });
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
  if (!container->head.kept) delete container;
  return 0;
}

AOTITorchError AOTInductorGetLastError(const char** text) {
  *text = last_error.c_str();
  return 0;
}

}  // extern "C"
