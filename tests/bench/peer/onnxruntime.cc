// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime through its C interface, a table of functions that only grows at its end. The wheel has no header, so this
// file names the functions by their position in the table.
#include <map>
#include <utility>

#include "tests/bench/peer/peer.h"

namespace mge::bench {
namespace {

struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*version)();
};

constexpr uint32_t kApiVersion = 11;  // an old version, which newer libraries still support

enum Position {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithDataAsOrtValue = 49,
  kIsTensor = 50,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorShapeElementCount = 64,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kGetAllocatorWithDefaultOptions = 78,
};

// Numpy's names of ONNX's element types. The interface uses the same numbers.
const std::map<int, std::string> kTypes = {{1, "<f4"}, {2, "|u1"}, {3, "|i1"},  {4, "<u2"},  {5, "<i2"},  {6, "<i4"},
                                           {7, "<i8"}, {9, "|b1"}, {10, "<f2"}, {11, "<f8"}, {12, "<u4"}, {13, "<u8"}};

class OnnxRuntime final : public Peer {
 public:
  explicit OnnxRuntime(const std::string& file) : library_(file) {
    base_ = library_.Function<const ApiBase*()>("OrtGetApiBase")();
    api_ = base_->get_api(kApiVersion);
    if (!api_) Fail("the library of ONNX Runtime does not serve version 11 of its interface");
  }

  std::string Version() override { return base_->version(); }

  void Load(const std::string& model, int threads) override {
    constexpr int kErrorsOnly = 3;
    void *env = nullptr, *options = nullptr;
    Call(kCreateEnv, kErrorsOnly, "bench", &env);
    Call(kCreateSessionOptions, &options);
    Call(kSetIntraOpNumThreads, options, threads);
    Call(kSetInterOpNumThreads, options, 1);
    Call(kCreateSession, env, model.c_str(), options, &session_);
    void* allocator = nullptr;
    Call(kGetAllocatorWithDefaultOptions, &allocator);
    size_t count = 0;
    Call(kSessionGetInputCount, session_, &count);
    for (size_t i = 0; i < count; ++i) Call(kSessionGetInputName, session_, i, allocator, &in_names_.emplace_back());
    Call(kSessionGetOutputCount, session_, &count);
    for (size_t i = 0; i < count; ++i) Call(kSessionGetOutputName, session_, i, allocator, &out_names_.emplace_back());
    outs_.assign(count, nullptr);
  }

  void Bind(std::vector<Array>& inputs) override {
    constexpr int kArena = 1, kDefaultMemory = 0;
    void* memory = nullptr;
    Call(kCreateCpuMemoryInfo, kArena, kDefaultMemory, &memory);
    for (const char* name : in_names_) {
      Array* given = nullptr;
      for (Array& array : inputs) {
        if (array.name == name) given = &array;
      }
      if (!given) Fail(std::string("input '") + name + "' is not given");
      int type = 0;
      for (const auto& [number, text] : kTypes) {
        if (text == given->type) type = number;
      }
      void* value = nullptr;
      Call(kCreateTensorWithDataAsOrtValue, memory, given->storage.data(), given->storage.size(), given->dims.data(),
           given->dims.size(), type, &value);
      ins_.push_back(value);
    }
  }

  // The first run creates the outputs. Later runs write into them, as `mge bench` does.
  void Run() override {
    Call(kRun, session_, static_cast<void*>(nullptr), in_names_.data(), ins_.data(), ins_.size(), out_names_.data(),
         out_names_.size(), outs_.data());
  }

  std::vector<Array> Outputs() override {
    std::vector<Array> all;
    for (void* value : outs_) {
      Array& out = all.emplace_back();
      int is_tensor = 0, type = 0;
      Call(kIsTensor, value, &is_tensor);
      if (!is_tensor) continue;
      void *info = nullptr, *data = nullptr;
      size_t rank = 0, elements = 0;
      Call(kGetTensorTypeAndShape, value, &info);
      Call(kGetTensorElementType, info, &type);
      auto text = kTypes.find(type);
      if (text == kTypes.end()) continue;
      Call(kGetDimensionsCount, info, &rank);
      out.dims.resize(rank);
      Call(kGetDimensions, info, out.dims.data(), rank);
      Call(kGetTensorShapeElementCount, info, &elements);
      Call(kGetTensorMutableData, value, &data);
      out.type = text->second;
      out.bytes = {static_cast<const char*>(data), elements * static_cast<size_t>(out.type[2] - '0')};
    }
    return all;
  }

 private:
  template <typename... Args>
  void Call(Position position, Args... args) {
    void* status = reinterpret_cast<void* (*)(Args...)>(api_[position])(args...);
    if (status) Fail(reinterpret_cast<const char* (*)(void*)>(api_[kGetErrorMessage])(status));
  }

  Library library_;
  const ApiBase* base_;
  void* const* api_;
  void* session_ = nullptr;
  std::vector<char*> in_names_, out_names_;
  std::vector<void*> ins_, outs_;
};

}  // namespace

std::unique_ptr<Peer> OpenOnnxRuntime(const std::string& library) { return std::make_unique<OnnxRuntime>(library); }

}  // namespace mge::bench
