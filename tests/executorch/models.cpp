// Models that come and go, and what they leave behind.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>

#include "delegate.h"

namespace {

constexpr int kRows = 4, kColumns = 6;

// The program of program.cpp with constants that tell its models apart.
class Small {
 public:
  Small(const std::string& method, const char* program, float constant)
      : constant_(constant), model_(method, read_file(program), weights(constant)) {}

  void run_and_check(float start) {
    for (int i = 0; i < kRows * kColumns; ++i) x_.data<float>()[i] = start + static_cast<float>(i);
    // Given with the largest sizes: the delegate resizes to what comes out.
    model_.run({&x_}, {&whole_, &right_, &turned_, &kept_});
    const float* x = x_.data<float>();
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const float a = constant_ + static_cast<float>(column);
        const float b = constant_ + static_cast<float>(kColumns + row * kColumns + column);
        CHECK(whole_.data<float>()[row * 2 * kColumns + column] == x[row * kColumns + column]);
        CHECK(whole_.data<float>()[row * 2 * kColumns + kColumns + column] == a);
        CHECK(right_.data<float>()[row * kColumns + column] == a);
        CHECK(turned_.data<float>()[column * kRows + row] == x[row * kColumns + column]);
        CHECK(kept_.data<float>()[row * kColumns + column] == b);
      }
    }
  }

  void destroy() { model_.destroy(); }

 private:
  static std::vector<char> weights(float constant) {
    std::vector<float> values(kColumns + kRows * kColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = constant + static_cast<float>(i);
    std::vector<char> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  float constant_;
  Model model_;
  HostTensor x_{ScalarType::Float, {kRows, kColumns}, 4};
  HostTensor whole_{ScalarType::Float, {kRows, 2 * kColumns}, 4};
  HostTensor right_{ScalarType::Float, {kRows, kColumns}, 4};
  HostTensor turned_{ScalarType::Float, {kColumns, kRows}, 4};
  HostTensor kept_{ScalarType::Float, {kRows, kColumns}, 4};
};

void check_nothing_left(const aoti_wgpu_stats_t& before) {
  const aoti_wgpu_stats_t now = stats();
  CHECK(now.live_handles == before.live_handles);
  CHECK(now.live_storages == before.live_storages);
  CHECK(now.live_device_bytes == before.live_device_bytes);
}

}  // namespace

void test_models(const char* program) {
  // Made by the host: no model takes it away.
  const int64_t size = 5;
  AtenTensorHandle own = nullptr;
  CHECK(aoti_torch_empty_strided(1, &size, nullptr, aoti_torch_dtype_float32(), aoti_torch_device_type_mps(), 0,
                                 &own) == 0);
  void* memory = nullptr;
  CHECK(aoti_torch_mps_malloc(&memory, 64) == 0);
  const aoti_wgpu_stats_t before = stats();

  // Two programs' models alive, one destroyed.
  Small first("first", program, 100), second("second", program, 200);
  first.run_and_check(1);
  second.run_and_check(2);
  second.destroy();
  first.run_and_check(3);

  // Others come and go beside it: what they leave does not add up.
  uint64_t held = 0;
  for (int load = 0; load < 12; ++load) {
    Small other("second", program, 300 + static_cast<float>(load));
    other.run_and_check(4);
    other.destroy();
    first.run_and_check(5);
    if (load == 0) held = stats().live_handles;
    CHECK(stats().live_handles <= held);
  }

  // Two models of one program, so of one loaded object.
  {
    Small one("shared", program, 400), two("shared", program, 500);
    one.run_and_check(6);
    two.run_and_check(7);
    one.destroy();
    two.run_and_check(8);
    first.run_and_check(9);
  }
  first.run_and_check(10);
  first.destroy();
  check_nothing_left(before);

  // Loaded and destroyed alone, again and again, the same path each time.
  for (int load = 0; load < 12; ++load) {
    Small model("alone", program, static_cast<float>(load));
    model.run_and_check(11);
    model.destroy();
    check_nothing_left(before);
  }
  CHECK(aoti_torch_mps_free(memory) == 0);
  CHECK(aoti_torch_delete_tensor_object(own) == 0);
}

void test_many_runs(const char* program, int runs) {
  const aoti_wgpu_stats_t before = stats();
  Small model("many", program, 7);
  model.run_and_check(0);
  const aoti_wgpu_stats_t loaded = stats();
  // Time of the process's own on all cores, and the fastest of many batches: other processes
  // only ever make one slower.
  constexpr int kBatch = 50;
  std::vector<double> batches;
  for (int run = 0; run < runs; run += kBatch) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < kBatch; ++i) model.run_and_check(static_cast<float>(run + i));
    batches.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    const aoti_wgpu_stats_t now = stats();
    CHECK(now.live_handles == loaded.live_handles && now.live_storages == loaded.live_storages);
    CHECK(now.live_device_bytes == loaded.live_device_bytes);
  }
  const auto third = static_cast<std::ptrdiff_t>(batches.size() / 3);
  const double early = *std::min_element(batches.begin(), batches.begin() + third);
  const double late = *std::min_element(batches.end() - third, batches.end());
  std::printf("%d runs: %.1f us each at first, %.1f us at the end\n", runs, early / kBatch * 1e6,
              late / kBatch * 1e6);
  CHECK(late < 1.5 * early);
  model.destroy();
  check_nothing_left(before);
}

namespace {

struct Port {
  std::unique_ptr<HostTensor> tensor;
  std::vector<char> contents;
  double atol = 0, rtol = 0;
};

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double element(const char* bytes, std::size_t i, ScalarType type) {
  uint16_t half = 0;
  uint32_t word = 0;
  float single = 0;
  double wide = 0;
  switch (type) {
    case ScalarType::Float:
      std::memcpy(&single, bytes + 4 * i, 4);
      return single;
    case ScalarType::Double:
      std::memcpy(&wide, bytes + 8 * i, 8);
      return wide;
    case ScalarType::Half:
      std::memcpy(&half, bytes + 2 * i, 2);
      return half_to_double(half);
    default:  // BFloat16
      std::memcpy(&half, bytes + 2 * i, 2);
      word = static_cast<uint32_t>(half) << 16;
      std::memcpy(&single, &word, 4);
      return single;
  }
}

// As numpy.allclose with equal_nan; other than floating types bit for bit.
bool close(Port& port, const std::string& name) {
  const char* found = port.tensor->data<char>();
  const ScalarType type = (*port.tensor)->scalar_type();
  const bool floating = type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::Half ||
                        type == ScalarType::BFloat16;
  const auto count = static_cast<std::size_t>((*port.tensor)->numel());
  if (!floating) {
    const bool same = std::equal(port.contents.begin(), port.contents.end(), found);
    if (!same) std::fprintf(stderr, "%s: an output differs\n", name.c_str());
    return same;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double is = element(found, i, type), should = element(port.contents.data(), i, type);
    const bool same = is == should || (std::isnan(is) && std::isnan(should)) ||
                      std::fabs(is - should) <= port.atol + port.rtol * std::fabs(should);
    if (!same) {
      std::fprintf(stderr, "%s: element %zu is %.9g, should be %.9g\n", name.c_str(), i, is, should);
      return false;
    }
  }
  return true;
}

}  // namespace

// A manifest: `program PATH`, `weights PATH`, then for each tensor
// `in|out DTYPE ELEMENT_BYTES ATOL RTOL PATH RANK SIZE...`, where PATH has the elements alone.
void test_program(const std::string& manifest) {
  std::ifstream file(manifest);
  CHECK(file);
  std::string line, program, weights;
  std::vector<Port> inputs, outputs;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, path;
    words >> kind;
    if (kind == "program") {
      words >> program;
      continue;
    }
    if (kind == "weights") {
      words >> weights;
      continue;
    }
    Port port;
    int dtype = 0;
    std::size_t bytes = 0, rank = 0;
    words >> dtype >> bytes >> port.atol >> port.rtol >> path >> rank;
    std::vector<int32_t> sizes(rank);
    for (int32_t& size : sizes) words >> size;
    CHECK(words);
    port.tensor = std::make_unique<HostTensor>(static_cast<ScalarType>(dtype), sizes, bytes);
    port.contents = read_file(path);
    CHECK(port.contents.size() == port.tensor->bytes().size());
    if (kind == "in") std::copy(port.contents.begin(), port.contents.end(), port.tensor->data<char>());
    (kind == "in" ? inputs : outputs).push_back(std::move(port));
  }
  const aoti_wgpu_stats_t before = stats();
  const std::vector<char> code = read_file(program), constants = read_file(weights);
  // The name is in the path: the loader takes a path that it knows for the object it has.
  static int count = 0;
  const std::string method = "program" + std::to_string(count++);
  for (int load = 0; load < 3; ++load) {
    Model model(method, code, constants);
    for (int run = 0; run < 2; ++run) {
      std::vector<HostTensor*> in, out;
      for (Port& port : inputs) in.push_back(port.tensor.get());
      for (Port& port : outputs) {
        std::fill(port.tensor->bytes().begin(), port.tensor->bytes().end(), uint8_t{0xcd});
        out.push_back(port.tensor.get());
      }
      model.run(in, out);
      for (Port& port : outputs) CHECK(close(port, manifest));
    }
    model.destroy();
    check_nothing_left(before);
  }
}
