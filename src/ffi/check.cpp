// Reports a failed check of a compiled program by a C++ exception, which the program's
// own entry points turn into an error. Reached by a jump from `aoti_torch_check`, so
// that no frame of another language lies between the throw and the program.

#include <cstdint>
#include <stdexcept>
#include <string>

extern "C" void aoti_wgpu_cpp_check(
    bool cond, const char* func, const char* file, std::uint32_t line, const char* msg) {
  if (cond) {
    return;
  }
  std::string text = msg ? msg : "a check of the program failed";
  text += " (";
  text += func ? func : "?";
  text += " at ";
  text += file ? file : "?";
  text += ":" + std::to_string(line) + ")";
  throw std::runtime_error(text);
}
