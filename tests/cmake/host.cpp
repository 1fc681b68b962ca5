// host FOLDER: opens the compiled program `rope` in FOLDER, runs it, and compares its output.
// A project of its own: it knows the installed package alone.

#include <aoti_wgpu.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// float32 elements of a .npy file of version 1, whose header's length is in bytes 8 and 9.
std::vector<float> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < 10) return {};
  const std::size_t start = 10u + bytes[8] + 256u * bytes[9];
  std::vector<float> elements((bytes.size() - start) / sizeof(float));
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(start), bytes.end(),
            reinterpret_cast<unsigned char*>(elements.data()));
  return elements;
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, aoti_wgpu_last_error_message());
  std::exit(1);
}

AtenTensorHandle tensor(std::vector<float>& elements, const std::vector<int64_t>& sizes, int32_t device) {
  AtenTensorHandle host = nullptr, out = nullptr;
  const auto rank = static_cast<int64_t>(sizes.size());
  check(aoti_torch_create_tensor_from_blob(elements.data(), rank, sizes.data(), nullptr, 0,
                                           aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0, &host) == 0,
        "blob");
  if (device == aoti_torch_device_type_cpu()) return host;
  check(aoti_torch_empty_strided(rank, sizes.data(), nullptr, aoti_torch_dtype_float32(), device, 0, &out) == 0,
        "empty");
  check(aoti_torch_copy_(out, host, 0) == 0, "copy in");
  check(aoti_torch_delete_tensor_object(host) == 0, "delete");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  void* program = dlopen((folder + "/model.so").c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (program == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  using Create = int32_t (*)(void**, std::size_t, const char*, const char*);
  using Run = int32_t (*)(void*, AtenTensorHandle*, std::size_t, AtenTensorHandle*, std::size_t, void*, void*);
  using Delete = int32_t (*)(void*);
  const auto create = reinterpret_cast<Create>(dlsym(program, "AOTInductorModelContainerCreateWithDevice"));
  const auto run = reinterpret_cast<Run>(dlsym(program, "AOTInductorModelContainerRun"));
  const auto destroy = reinterpret_cast<Delete>(dlsym(program, "AOTInductorModelContainerDelete"));
  void* container = nullptr;
  check(create(&container, 1, "mps", nullptr) == 0, "create");

  const std::vector<int64_t> rows = {1, 4, 6, 8}, angles = {6, 8};
  std::vector<float> x = read(folder + "/in0.npy"), cosines = read(folder + "/in1.npy"),
                     sines = read(folder + "/in2.npy"), expected = read(folder + "/out0.npy");
  check(x.size() == 192 && cosines.size() == 48 && sines.size() == 48 && expected.size() == 192, "data");
  const int32_t mps = aoti_torch_device_type_mps();
  // The program takes its inputs, and its output is the caller's.
  AtenTensorHandle inputs[] = {tensor(x, rows, mps), tensor(cosines, angles, mps), tensor(sines, angles, mps)};
  AtenTensorHandle output = nullptr;
  check(run(container, inputs, 3, &output, 1, nullptr, nullptr) == 0, "run");
  std::vector<float> found(expected.size());
  const AtenTensorHandle host = tensor(found, rows, aoti_torch_device_type_cpu());
  check(aoti_torch_copy_(host, output, 0) == 0, "copy out");
  for (std::size_t i = 0; i < found.size(); ++i) {
    check(std::fabs(found[i] - expected[i]) <= 1e-5f + 1e-5f * std::fabs(expected[i]), "wrong answer");
  }
  check(aoti_torch_delete_tensor_object(host) == 0 && aoti_torch_delete_tensor_object(output) == 0, "delete");
  check(destroy(container) == 0, "destroy");
  std::printf("rope: right\n");
  return 0;
}
