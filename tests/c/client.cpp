// What only C++ sees: exceptions, destructors, threads, and ExecuTorch's inline reads.
#include "check.h"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

// Deletes its handle when it goes, as the program's own wrapper does.
struct Owned {
  AtenTensorHandle handle = nullptr;
  ~Owned() {
    if (aoti_torch_delete_tensor_object(handle) != 0) {
      std::fprintf(stderr, "destructor: %s\n", aoti_wgpu_last_error_message());
      std::abort();
    }
  }
};

// The memory of an ETensor (DESIGN: ExecuTorch v0.4 to v1.5).
struct Impl {
  std::int32_t* sizes;
  std::uint8_t* dim_order;
  std::int32_t* strides;
  void* data;
  std::intptr_t dim;
  std::intptr_t numel;
  std::size_t numel_bound;
  std::int8_t type;
  std::uint8_t shape_dynamism;
  std::int8_t device_type, device_index;
};
static_assert(sizeof(Impl) == 64 && std::is_standard_layout<Impl>::value, "64 bytes");
struct ETensor {
  Impl* impl;
};

const std::int64_t two_three[] = {2, 3};

void a_failed_check_throws() {
  bool caught = false;
  try {
    Owned owned{empty(2, two_three, aoti_torch_device_type_mps())};
    aoti_torch_check(false, "function", "file.cpp", 42, "x is too large");
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    caught = text.find("x is too large") != std::string::npos &&
             text.find("file.cpp:42") != std::string::npos;
  }
  CHECK(caught);
  nothing_left();
}

void handles_are_etensors() {
  const std::int64_t strides[] = {1, 2};
  AtenTensorHandle tensor = nullptr;
  OK(aoti_torch_empty_strided(2, two_three, strides, aoti_torch_dtype_bfloat16(),
                              aoti_torch_device_type_mps(), 0, &tensor));
  const Impl& impl = *reinterpret_cast<ETensor*>(tensor)->impl;
  void* data = nullptr;
  OK(aoti_torch_get_data_ptr(tensor, &data));
  CHECK(impl.dim == 2 && impl.numel == 6 && impl.numel_bound == 6);
  CHECK(impl.sizes[0] == 2 && impl.sizes[1] == 3);
  CHECK(impl.strides[0] == 1 && impl.strides[1] == 2);
  CHECK(impl.dim_order[0] == 1 && impl.dim_order[1] == 0);
  CHECK(impl.type == 15 && impl.shape_dynamism == 0 && impl.device_type == 0);
  CHECK(impl.data == data && data != nullptr);
  drop(tensor);
  const char* views = std::getenv("AOTI_WGPU_VIEWS");
  if (views == nullptr || std::string(views) != "strided") {
    AtenTensorHandle base = empty(2, two_three, aoti_torch_device_type_mps());
    const std::int64_t column[] = {2}, step[] = {3};
    AtenTensorHandle packed = view(base, 1, column, step, 1);
    const Impl& of = *reinterpret_cast<ETensor*>(packed)->impl;
    CHECK(of.data == nullptr && of.strides[0] == 1);
    OK(aoti_torch_get_data_ptr(packed, &data));
    CHECK(of.data == data && data != nullptr);
    drop(base);
    drop(packed);
  }
  nothing_left();
}

void etensors_are_tensors() {
  std::array<float, 6> memory = {0, 1, 2, 3, 4, 5};
  std::array<std::int32_t, 2> sizes = {2, 3}, strides = {1, 2};
  std::array<std::uint8_t, 2> order = {1, 0};
  Impl impl = {sizes.data(), order.data(), strides.data(), memory.data(), 2, 6, 6, 6, 0, 0, 0};
  ETensor etensor = {&impl};
  const auto foreign = reinterpret_cast<AtenTensorHandle>(&etensor);
  std::int64_t *found = nullptr, n = -1;
  std::int32_t code = -1;
  void* data = nullptr;
  OK(aoti_torch_get_sizes(foreign, &found));
  CHECK(found[0] == 2 && found[1] == 3);
  OK(aoti_torch_get_strides(foreign, &found));
  CHECK(found[0] == 1 && found[1] == 2);
  OK(aoti_torch_get_dim(foreign, &n));
  CHECK(n == 2);
  OK(aoti_torch_get_storage_size(foreign, &n));
  CHECK(n == 24);
  OK(aoti_torch_get_dtype(foreign, &code));
  CHECK(code == 6);
  OK(aoti_torch_get_device_type(foreign, &code));
  CHECK(code == 0);
  OK(aoti_torch_get_data_ptr(foreign, &data));
  CHECK(data == memory.data());

  Owned ours{empty(2, two_three, aoti_torch_device_type_mps())};
  OK(aoti_torch_copy_(ours.handle, foreign, 0));
  HOLDS(ours.handle, 0, 2, 4, 1, 3, 5);
  Owned copy;
  OK(aoti_torch_clone(foreign, &copy.handle));
  HOLDS(copy.handle, 0, 2, 4, 1, 3, 5);
  OK(aoti_torch_zero_(ours.handle));
  OK(aoti_torch_copy_(foreign, ours.handle, 0));
  for (float value : memory) CHECK(value == 0);

  REFUSED(aoti_torch_delete_tensor_object(foreign), INVALID, "did not make");
  etensor.impl = nullptr;
  REFUSED(aoti_torch_get_dim(foreign, &n), INVALID, "impl_ is null");
  REFUSED(aoti_torch_copy_(ours.handle, foreign, 0), INVALID, "src");
}

void threads_share_the_library() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        Owned device{empty(2, two_three, aoti_torch_device_type_mps())};
        std::array<float, 6> in, out = {};
        in.fill(static_cast<float>(t * 1000 + i));
        put(device.handle, in.data());
        Owned second;
        OK(aoti_torch_new_tensor_handle(device.handle, &second.handle));
        get(second.handle, out.data());
        CHECK(in == out);
        std::int64_t n = 0;
        CHECK(aoti_torch_get_numel(nullptr, &n) == INVALID);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  nothing_left();
}

void one_of_two_deletes_wins() {
  for (int i = 0; i < 200; ++i) {
    AtenTensorHandle tensor = empty(2, two_three, aoti_torch_device_type_cpu());
    std::array<std::int32_t, 2> codes = {};
    std::thread other([&] { codes[1] = aoti_torch_delete_tensor_object(tensor); });
    codes[0] = aoti_torch_delete_tensor_object(tensor);
    other.join();
    CHECK(codes[0] + codes[1] == INVALID && codes[0] != codes[1]);
  }
  nothing_left();
}

void destructors_of_thread_locals_delete() {
  std::thread([] {
    thread_local Owned last;
    last.handle = empty(2, two_three, aoti_torch_device_type_mps());
  }).join();
  nothing_left();
}

// Destroyed at exit, perhaps after the library's own statics.
Owned until_exit;

}  // namespace

int main() {
  a_failed_check_throws();
  handles_are_etensors();
  etensors_are_tensors();
  threads_share_the_library();
  one_of_two_deletes_wins();
  destructors_of_thread_locals_delete();
  until_exit.handle = empty(2, two_three, aoti_torch_device_type_mps());
  return 0;
}
