// executorch::backends::metal::synchronize_metal_stream(): ExecuTorch's delegate catches
// what it throws. Reached by a jump from the function of that name.

#include <cstdint>
#include <stdexcept>

extern "C" std::uint32_t aoti_wgpu_synchronize();
extern "C" const char* aoti_wgpu_last_error_message();

extern "C" void aoti_wgpu_cpp_synchronize_metal_stream() {
  if (aoti_wgpu_synchronize() != 0) {
    throw std::runtime_error(aoti_wgpu_last_error_message());
  }
}
