// executorch_test STAYS_MAPPED UNMAPPED RUNS [MANIFEST...]: see tests/executorch.rs.

#include "common.h"

// Drivers keep memory until the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan\nleak:libLLVM\nleak:libEGL\nleak:libGL\n";
}

int main(int argc, char** argv) {
  CHECK(argc >= 4);
  test_stream();
  test_tensors();
  // Objects that dlclose leaves mapped, and objects that it does not.
  test_models(argv[1]);
  test_models(argv[2]);
  const int runs = std::atoi(argv[3]);
  if (runs > 0) test_many_runs(argv[1], runs);
  for (int i = 4; i < argc; ++i) {
    std::printf("%s\n", argv[i]);
    std::fflush(stdout);
    test_program(argv[i]);
  }
  return 0;
}
