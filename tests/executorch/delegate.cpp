#include "delegate.h"

#include <dlfcn.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace executorch::backends::metal {
void synchronize_metal_stream();
}

namespace {

using Container = void*;

struct Loaded {
  void* object = nullptr;
  std::string path;
  Container container = nullptr;
  AOTITorchError (*count_inputs)(Container, size_t*) = nullptr;
  AOTITorchError (*count_outputs)(Container, size_t*) = nullptr;
  AOTITorchError (*run)(Container, AtenTensorHandle*, size_t, AtenTensorHandle*, size_t, void*, void*) = nullptr;
};

// Containers that were left behind on purpose; here the leak checker finds them, also after
// static destructors.
std::vector<Container>& left_behind() {
  static auto* containers = new std::vector<Container>;
  return *containers;
}

template <typename F>
bool find(void* object, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(object, name));
  return function != nullptr;
}

class TestBackend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec>) const override {
    const std::string method = context.get_method_name();
    auto program = context.get_named_data_map()->get_data((method + "_so_blob").c_str());
    if (!program.ok()) return program.error();
    auto loaded = std::make_unique<Loaded>();
    loaded->path =
        std::filesystem::temp_directory_path() / (method + "_so_blob" + std::to_string(getpid()) + ".so");
    // Written to a file of its own: to cut one short that is mapped would take its pages
    // from the model that uses it.
    std::error_code ignored;
    std::filesystem::remove(loaded->path, ignored);
    std::ofstream file(loaded->path, std::ios::binary);
    file.write(static_cast<const char*>(program->data()), static_cast<std::streamsize>(program->size()));
    file.close();
    if (!file) return Error::AccessFailed;
    program->Free();
    loaded->object = dlopen(loaded->path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (loaded->object == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return Error::AccessFailed;
    }
    processed->Free();
    AOTITorchError (*create)(Container*, size_t, const char*, const char*) = nullptr;
    AOTITorchError (*update)(Container, const uint8_t*) = nullptr;
    if (!find(loaded->object, "AOTInductorModelContainerCreateWithDevice", create) ||
        !find(loaded->object, "AOTInductorModelUpdateConstantsFromBlob", update) ||
        !find(loaded->object, "AOTInductorModelContainerGetNumInputs", loaded->count_inputs) ||
        !find(loaded->object, "AOTInductorModelContainerGetNumOutputs", loaded->count_outputs) ||
        !find(loaded->object, "AOTInductorModelContainerRun", loaded->run)) {
      return Error::AccessFailed;
    }
    if (create(&loaded->container, 1, "mps", nullptr) != 0) return Error::Internal;
    auto weights = context.get_named_data_map()->get_data((method + "_weights_blob").c_str());
    if (weights.ok()) {
      if (update(loaded->container, static_cast<const uint8_t*>(weights->data())) != 0) return Error::Internal;
      weights->Free();
    }
    return reinterpret_cast<DelegateHandle*>(loaded.release());
  }

  Error execute(BackendExecutionContext&, DelegateHandle* handle, Span<EValue*> args) const override {
    auto* loaded = reinterpret_cast<Loaded*>(handle);
    size_t inputs = 0, outputs = 0;
    loaded->count_inputs(loaded->container, &inputs);
    loaded->count_outputs(loaded->container, &outputs);
    if (inputs + outputs != args.size()) return Error::InvalidArgument;
    std::vector<AtenTensorHandle> gpu(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      Tensor& host = args[i]->toTensor();
      const std::vector<int64_t> sizes(host.sizes().begin(), host.sizes().end());
      if (aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), nullptr,
                                   static_cast<int32_t>(host.scalar_type()), aoti_torch_device_type_mps(), 0,
                                   &gpu[i]) != 0) {
        return Error::Internal;
      }
      if (i < inputs && aoti_torch_copy_(gpu[i], as_handle(&host), 0) != 0) return Error::Internal;
    }
    const std::vector<AtenTensorHandle> made(gpu.begin() + static_cast<std::ptrdiff_t>(inputs), gpu.end());
    AtenTensorHandle* const results = gpu.data() + inputs;
    if (loaded->run(loaded->container, gpu.data(), inputs, results, outputs, nullptr, nullptr) != 0) {
      std::fprintf(stderr, "run: %s\n", aoti_wgpu_last_error_message());
      return Error::Internal;
    }
    try {
      executorch::backends::metal::synchronize_metal_stream();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "wait: %s\n", error.what());
      return Error::Internal;
    }
    for (size_t i = 0; i < outputs; ++i) {
      Tensor& host = args[inputs + i]->toTensor();
      Error error = executorch::runtime::resize_tensor(host, inline_view(results[i])->sizes());
      if (error != Error::Ok) return error;
      if (aoti_torch_copy_(as_handle(&host), results[i], 0) != 0) return Error::Internal;
    }
    for (size_t i = 0; i < outputs; ++i) {
      if (results[i] != made[i]) aoti_torch_delete_tensor_object(made[i]);
      aoti_torch_delete_tensor_object(results[i]);
    }
    return Error::Ok;
  }

  void destroy(DelegateHandle* handle) const override {
    if (handle == nullptr) return;
    auto* loaded = reinterpret_cast<Loaded*>(handle);
    left_behind().push_back(loaded->container);
    dlclose(loaded->object);
    std::error_code ignored;
    std::filesystem::remove(loaded->path, ignored);
    delete loaded;
    cleanup_memory();
    cleanup_tensor_metadata();
  }
};

TestBackend backend;
const Error registered = executorch::runtime::register_backend({kBackend, &backend});

}  // namespace

Result<const executorch::runtime::TensorLayout> Blobs::get_tensor_layout(std::string_view) const {
  return Error::NotImplemented;
}

Result<FreeableBuffer> Blobs::get_data(std::string_view key) const {
  const auto found = blobs.find(std::string(key));
  if (found == blobs.end()) return Error::NotFound;
  return FreeableBuffer(found->second.data(), found->second.size(), nullptr);
}

Error Blobs::load_data_into(std::string_view, void*, size_t) const { return Error::NotImplemented; }
Result<uint32_t> Blobs::get_num_keys() const { return static_cast<uint32_t>(blobs.size()); }
Result<const char*> Blobs::get_key(uint32_t) const { return Error::NotImplemented; }

Model::Model(const std::string& method, const std::vector<char>& program, const std::vector<char>& weights)
    : backend_(executorch::runtime::get_backend_class(kBackend)) {
  CHECK(registered == Error::Ok && backend_ != nullptr && backend_->is_available());
  Blobs data;
  data.blobs[method + "_so_blob"] = program;
  data.blobs[method + "_weights_blob"] = weights;
  BackendInitContext context(nullptr, nullptr, method.c_str(), &data);
  FreeableBuffer processed;
  auto handle = backend_->init(context, &processed, {});
  CHECK(handle.ok());
  handle_ = *handle;
}

void Model::run(std::vector<HostTensor*> inputs, std::vector<HostTensor*> outputs) {
  std::vector<EValue> values;
  for (HostTensor* tensor : inputs) values.emplace_back(**tensor);
  for (HostTensor* tensor : outputs) values.emplace_back(**tensor);
  std::vector<EValue*> args;
  for (EValue& value : values) args.push_back(&value);
  BackendExecutionContext context;
  CHECK(backend_->execute(context, handle_, {args.data(), args.size()}) == Error::Ok);
}

void Model::destroy() {
  if (handle_ != nullptr) backend_->destroy(handle_);
  handle_ = nullptr;
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) std::fprintf(stderr, "%s cannot be read\n", path.c_str());
  CHECK(file);
  return {std::istreambuf_iterator<char>(file), {}};
}
