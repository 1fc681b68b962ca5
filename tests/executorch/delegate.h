// A delegate that treats programs as ExecuTorch's Metal one does.
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <map>
#include <string>
#include <vector>

#include "common.h"

constexpr const char* kBackend = "AotiWgpuTestBackend";

// The data that the delegate asks for: `<method>_so_blob` and `<method>_weights_blob`.
class Blobs final : public executorch::runtime::NamedDataMap {
 public:
  std::map<std::string, std::vector<char>> blobs;

  executorch::runtime::Result<const executorch::runtime::TensorLayout> get_tensor_layout(
      std::string_view) const override;
  executorch::runtime::Result<executorch::runtime::FreeableBuffer> get_data(std::string_view key) const override;
  executorch::runtime::Error load_data_into(std::string_view, void*, size_t) const override;
  executorch::runtime::Result<uint32_t> get_num_keys() const override;
  executorch::runtime::Result<const char*> get_key(uint32_t) const override;
};

// A model as ExecuTorch holds it: made by the registered backend, run, destroyed.
class Model {
 public:
  Model(const std::string& method, const std::vector<char>& program, const std::vector<char>& weights);
  ~Model() { destroy(); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void run(std::vector<HostTensor*> inputs, std::vector<HostTensor*> outputs);
  void destroy();

 private:
  executorch::runtime::BackendInterface* backend_;
  executorch::runtime::DelegateHandle* handle_ = nullptr;
};

std::vector<char> read_file(const std::string& path);
