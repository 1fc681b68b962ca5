// Calls back into a compiled program. An exception of the program's may pass through
// both functions, so they are reached by jumps and no frame of another language lies
// between the program's callback and its caller.

#include <cstdint>
#include <functional>

using Function = struct AOTIMetalKernelFunctionOpaque*;

// Ends what the block encoded on this thread; refuses a handle that is none.
extern "C" std::int32_t aoti_wgpu_end_block(Function function) noexcept;
extern "C" std::int32_t aoti_wgpu_refuse_callback() noexcept;

namespace {

struct Block {
  explicit Block(Function function) : function(function) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (!ended) aoti_wgpu_end_block(function);
  }
  std::int32_t end() {
    ended = true;
    return aoti_wgpu_end_block(function);
  }

  Function function;
  bool ended = false;
};

}  // namespace

extern "C" std::int32_t aoti_wgpu_cpp_run_command_block(
    Function function, void (*callback)(Function, void*), void* user_data) {
  if (callback == nullptr) return aoti_wgpu_refuse_callback();
  Block block(function);
  // Also for a null function: what the callback sets on it must be marked as lost.
  callback(function, user_data);
  return block.end();
}

extern "C" void aoti_wgpu_cpp_shared_callback(Function function, void* std_function) {
  if (std_function == nullptr) {
    aoti_wgpu_refuse_callback();
    return;
  }
  auto& call = *static_cast<std::function<void(Function)>*>(std_function);
  if (call) call(function);
}
