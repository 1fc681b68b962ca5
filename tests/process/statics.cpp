// A program whose static objects hold tensors and a kernel library: their destructors run
// after main, when other libraries have been torn down. With an argument it does something
// nastier first.
#include "aoti_wgpu.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <sys/wait.h>
#include <unistd.h>

// Of PyTorch's shim_mps.h.
using AOTIMetalShaderLibraryHandle = struct AOTIMetalShaderLibraryOpaque*;
using AOTIMetalKernelFunctionHandle = struct AOTIMetalKernelFunctionOpaque*;

extern "C" {
AOTITorchError aoti_torch_mps_create_shader_library(const char*, AOTIMetalShaderLibraryHandle*);
AOTITorchError aoti_torch_mps_delete_shader_library(AOTIMetalShaderLibraryHandle);
AOTITorchError aoti_torch_mps_get_kernel_function(
    AOTIMetalShaderLibraryHandle, const char*, AOTIMetalKernelFunctionHandle*);
AOTITorchError aoti_torch_mps_start_encoding(AOTIMetalKernelFunctionHandle);
AOTITorchError aoti_torch_mps_set_arg_tensor(
    AOTIMetalKernelFunctionHandle, unsigned, AtenTensorHandle);
AOTITorchError aoti_torch_mps_dispatch_single(AOTIMetalKernelFunctionHandle, std::uint64_t);
}

namespace {

const char* const kSource = R"(
#include <metal_stdlib>
kernel void add(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = out[i] + 1.0;
}
)";

void check(AOTITorchError code) {
  if (code != 0) {
    std::fprintf(stderr, "%s\n", aoti_wgpu_last_error_message());
    std::_Exit(3);
  }
}

struct Holder {
  AtenTensorHandle tensor = nullptr;
  AtenTensorHandle host = nullptr;
  AOTIMetalShaderLibraryHandle library = nullptr;
  ~Holder() {
    check(aoti_torch_delete_tensor_object(tensor));
    check(aoti_torch_delete_tensor_object(host));
    if (library) check(aoti_torch_mps_delete_shader_library(library));
  }
};

float memory[64];
Holder early;
thread_local Holder of_thread;

AtenTensorHandle tensor() {
  std::int64_t sizes[] = {64};
  AtenTensorHandle out = nullptr;
  check(aoti_torch_empty_strided(1, sizes, nullptr, aoti_torch_dtype_float32(),
                                 aoti_torch_device_type_mps(), 0, &out));
  check(aoti_torch_zero_(out));
  return out;
}

// Work that is recorded and not submitted.
void queue(Holder& holder) {
  std::int64_t sizes[] = {64};
  check(aoti_torch_create_tensor_from_blob(memory, 1, sizes, nullptr, 0,
                                           aoti_torch_dtype_float32(),
                                           aoti_torch_device_type_mps(), 0, &holder.host));
  AOTIMetalKernelFunctionHandle function = nullptr;
  check(aoti_torch_mps_create_shader_library(kSource, &holder.library));
  check(aoti_torch_mps_get_kernel_function(holder.library, "add", &function));
  for (AtenTensorHandle out : {holder.tensor, holder.host}) {
    check(aoti_torch_mps_start_encoding(function));
    check(aoti_torch_mps_set_arg_tensor(function, 0, out));
    check(aoti_torch_mps_dispatch_single(function, 64));
  }
}

// The child gets errors, deletes without one, and ends.
int in_child(bool by_exit) {
  AtenTensorHandle out = nullptr;
  std::int64_t sizes[] = {64};
  if (aoti_torch_empty_strided(1, sizes, nullptr, 6, 13, 0, &out) != AOTI_WGPU_INVALID_STATE) {
    std::_Exit(4);
  }
  if (!std::strstr(aoti_wgpu_last_error_message(), "fork")) std::_Exit(5);
  if (aoti_torch_copy_(early.tensor, early.tensor, 0) != AOTI_WGPU_INVALID_STATE) std::_Exit(6);
  if (aoti_wgpu_synchronize() != AOTI_WGPU_INVALID_STATE) std::_Exit(7);
  cleanup_memory();
  AtenTensorHandle mine = early.tensor;
  early.tensor = nullptr;
  if (aoti_torch_delete_tensor_object(mine) != 0) std::_Exit(8);
  early.library = nullptr;
  if (by_exit) return 0;
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  early.tensor = tensor();
  of_thread.tensor = tensor();
  const bool kernels = std::getenv("AOTI_WGPU_BACKEND") == nullptr;
  if (kernels) queue(early);
  if (std::strcmp(what, "leak") == 0) {
    tensor();  // alive at exit
    early.tensor = tensor();
  }
  if (std::strncmp(what, "fork", 4) == 0) {
    pid_t child = fork();
    if (child == 0) return in_child(std::strcmp(what, "fork-exit") == 0);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::fprintf(stderr, "the child ended with status %d\n", status);
      return 9;
    }
  }
  if (std::strcmp(what, "quick") == 0) std::quick_exit(0);
  return 0;
}
