// SPDX-License-Identifier: Apache-2.0
// OpenVINO through its C interface, whose functions are found by name.
#include <cstring>

#include "tests/bench/peer/peer.h"

namespace mge::bench {
namespace {

struct VersionInfo {
  const char* build;
  const char* description;
};
struct TensorShape {  // passed by value
  int64_t rank;
  int64_t* dims;
};

class OpenVino final : public Peer {
 public:
  explicit OpenVino(const std::string& file) : library_(file) { Call("ov_core_create", &core_); }

  std::string Version() override {
    VersionInfo info = {};
    Call("ov_get_openvino_version", &info);
    std::string text = info.build;
    return text.substr(0, text.find('-'));
  }

  // Selects float32 for all computations. By default the runtime uses shorter types if the processor has them.
  void Load(const std::string& model, int threads) override {
    Set("INFERENCE_NUM_THREADS", std::to_string(threads).c_str());
    Set("PERFORMANCE_HINT", "LATENCY");
    Set("INFERENCE_PRECISION_HINT", "f32");
    void* compiled = nullptr;
    auto* compile =
        library_.Function<int(void*, const char*, const char*, size_t, void**, ...)>("ov_core_compile_model_from_file");
    Check(compile(core_, model.c_str(), "CPU", 0, &compiled), "ov_core_compile_model_from_file");
    Call("ov_compiled_model_create_infer_request", compiled, &request_);
  }

  void Bind(std::vector<Array>& inputs) override {
    for (Array& input : inputs) {
      void *tensor = nullptr, *data = nullptr;
      size_t bytes = 0;
      Call("ov_infer_request_get_tensor", request_, input.name.c_str(), &tensor);
      Call("ov_tensor_set_shape", tensor, TensorShape{static_cast<int64_t>(input.dims.size()), input.dims.data()});
      Call("ov_tensor_get_byte_size", tensor, &bytes);
      if (bytes != input.storage.size()) Fail("input '" + input.name + "' has another element type than the model's");
      Call("ov_tensor_data", tensor, &data);
      std::memcpy(data, input.storage.data(), bytes);
    }
    infer_ = library_.Function<int(void*)>("ov_infer_request_infer");
  }

  void Run() override { Check(infer_(request_), "ov_infer_request_infer"); }

  // Returns nothing, because no test compares these outputs.
  std::vector<Array> Outputs() override { return {}; }

 private:
  void Set(const char* key, const char* value) {
    auto* set = library_.Function<int(void*, const char*, ...)>("ov_core_set_property");
    Check(set(core_, "CPU", key, value), key);
  }

  template <typename... Args>
  void Call(const char* function, Args... args) {
    Check(library_.Function<int(Args...)>(function)(args...), function);
  }

  void Check(int status, const char* function) {
    if (status == 0) return;
    const char* why = library_.Function<const char*()>("ov_get_last_err_msg")();
    Fail(std::string(function) + ": " + (why ? why : "unknown error"));
  }

  Library library_;
  void *core_ = nullptr, *request_ = nullptr;
  int (*infer_)(void*) = nullptr;
};

}  // namespace

std::unique_ptr<Peer> OpenOpenVino(const std::string& library) { return std::make_unique<OpenVino>(library); }

}  // namespace mge::bench
