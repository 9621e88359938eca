// SPDX-License-Identifier: Apache-2.0
// Sessions keep no pages of the model's file whose constants they have packed or uploaded, and read weights once.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mge/mge.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using namespace onnx_builder;  // NOLINT: its functions build models

constexpr int64_t kSize = 1024;

// Returns a model with weights of 4 MiB, which begin at a multiple of 4 bytes, so that they are not copied.
std::string Model() {
  std::vector<float> weights(kSize * kSize);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 17);
  std::string model;
  for (size_t padding = 1; padding <= 8; ++padding) {
    model = ModelProto(
        {.graph = GraphProto({.nodes = {NodeProto("MatMul", {"x", "weights"}, {"y"}, {.name = std::string(padding, 'n')})},
                              .inputs = {ValueInfo("x", DType::kF32, {"N", kSize})},
                              .outputs = {ValueInfo("y", DType::kF32, {"N", kSize})},
                              .initializers = {FloatTensor("weights", {kSize, kSize}, weights)}})});
    const std::string_view begin(reinterpret_cast<const char*>(weights.data()), 256);
    if (model.find(begin) % 4 == 0) break;
  }
  return model;
}

// Returns the resident KiB of the mapping of a file, or 0 if it is not mapped.
int64_t ResidentKib(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t kib = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) {
      inside = true;
    } else if (inside && line.starts_with("Rss:")) {
      kib += std::stoll(line.substr(4));
      inside = false;
    }
  }
  return kib;
}

class GivenBack : public testing::TestWithParam<const char*> {
 protected:
  // Writes the model to a file, and loads it.
  void Load(const std::string& model) {
    path_ = testing::TempDir() + "mge_given_back_" + GetParam() + ".onnx";
    std::ofstream(path_, std::ios::binary) << model;
    std::filesystem::permissions(path_, std::filesystem::perms(0644));
    static const char* const kSettings[] = {"virtual.devices=1"};
    static const char* const kDirectories[] = {MGE_BINARY_DIR "/lib/mge/plugins"};
    mge_runtime_options options;
    mge_runtime_options_init(&options);
    options.settings = kSettings;
    options.setting_count = 1;
    options.plugin_directories = kDirectories;
    options.plugin_directory_count = 1;
    options.no_built_in_plugins = 1;
    ASSERT_EQ(mge_runtime_create(&options, &runtime_), nullptr);
    mge_session_options wanted;
    mge_session_options_init(&wanted);
    wanted.device = GetParam();
    mge_status* const status = mge_session_load(runtime_, path_.c_str(), &wanted, &session_);
    ASSERT_EQ(status, nullptr) << mge_status_text(status);
  }
  void TearDown() override {
    mge_session_release(session_);
    mge_runtime_release(runtime_);
    std::filesystem::remove(path_);
  }
  // Runs the model on ones. Returns element 5 of the result.
  float Run(int64_t rows) {
    const int64_t dims[] = {rows, kSize};
    mge_tensor *x = nullptr, *y = nullptr;
    EXPECT_EQ(mge_tensor_create(MGE_DTYPE_F32, dims, 2, &x), nullptr);
    for (int64_t i = 0; i < rows * kSize; ++i) static_cast<float*>(mge_tensor_data(x))[i] = 1;
    mge_status* const status = mge_session_run(session_, &x, 1, &y, 1, nullptr, nullptr);
    EXPECT_EQ(status, nullptr) << mge_status_text(status);
    const float out = y ? static_cast<float*>(mge_tensor_data(y))[5] : 0;
    mge_tensor_release(x);
    mge_tensor_release(y);
    mge_status_release(status);
    return out;
  }

  std::string path_;
  mge_runtime* runtime_ = nullptr;
  mge_session* session_ = nullptr;
};

TEST_P(GivenBack, ThePagesOfWeightsAfterTheFirstPlan) {
  ASSERT_NO_FATAL_FAILURE(Load(Model()));
  float expected = 0;
  for (int64_t k = 0; k < kSize; ++k) expected += static_cast<float>((k * kSize + 5) % 17);
  for (int64_t rows : {1, 3}) {
    EXPECT_EQ(Run(rows), expected);
    EXPECT_LT(ResidentKib(path_), 512) << rows << " rows";
  }
}

// Returns the number of bytes that this process has read.
int64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = -1;
  return io >> name >> bytes ? bytes : -1;
}

// Quantized weights of a language model: 512 KiB of 4-bit numbers, and 128 KiB of scales.
std::string QuantizedModel() {
  constexpr int64_t kBlocks = kSize / 32;
  return ModelProto(
      {.graph = GraphProto(
           {.nodes = {NodeProto("MatMulNBits", {"x", "q", "scales"}, {"y"},
                                {.attributes = {IntAttr("K", kSize), IntAttr("N", kSize), IntAttr("block_size", 32)},
                                 .domain = "com.microsoft"})},
            .inputs = {ValueInfo("x", DType::kF32, {"N", kSize})},
            .outputs = {ValueInfo("y", DType::kF32, {"N", kSize})},
            .initializers = {RawTensor("q", DType::kU8, {kSize, kBlocks, 16}, std::string(kSize * kBlocks * 16, '\x99')),
                             FloatTensor("scales", {kSize * kBlocks}, std::vector<float>(kSize * kBlocks, 0.5F))}}),
       .opsets = {{"", 21}, {"com.microsoft", 1}}});
}

TEST_P(GivenBack, WeightsAreReadOnceForAnyNumberOfShapes) {
  std::vector<std::string> models = {Model()};
  if (GetParam() == std::string("cpu0"))
    models.push_back(QuantizedModel());  // virtual0 has no kernel for it, and unpacks it
  for (const std::string& model : models) {
    ASSERT_NO_FATAL_FAILURE(Load(model));
    const float expected = Run(1);
    EXPECT_EQ(Run(8), expected);  // many rows may need another form of the weights
    const int64_t before = BytesRead();
    if (before < 0) GTEST_SKIP() << "no /proc/self/io";
    for (int64_t rows : {2, 9, 10, 11}) EXPECT_EQ(Run(rows), expected);
    EXPECT_LT(BytesRead() - before, 64 << 10);
    TearDown();
    session_ = nullptr;
    runtime_ = nullptr;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GivenBack, testing::Values("cpu0", "virtual0"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mge
