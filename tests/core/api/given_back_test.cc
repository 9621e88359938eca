// SPDX-License-Identifier: Apache-2.0
// A session keeps no pages of the model's file whose constants it has packed or uploaded.
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

class GivenBack : public testing::TestWithParam<const char*> {};

TEST_P(GivenBack, ThePagesOfWeightsAfterTheFirstPlan) {
  const std::string path = testing::TempDir() + "mge_given_back_" + GetParam() + ".onnx";
  std::ofstream(path, std::ios::binary) << Model();
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  static const char* const kSettings[] = {"virtual.devices=1"};
  static const char* const kDirectories[] = {MGE_BINARY_DIR "/lib/mge/plugins"};
  mge_runtime_options options = {};
  options.struct_size = sizeof(options);
  options.settings = kSettings;
  options.setting_count = 1;
  options.plugin_directories = kDirectories;
  options.plugin_directory_count = 1;
  options.no_built_in_plugins = 1;
  mge_runtime* runtime = nullptr;
  ASSERT_EQ(mge_runtime_create(&options, &runtime), nullptr);
  mge_session_options wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.device = GetParam();
  mge_session* session = nullptr;
  mge_status* status = mge_session_load(runtime, path.c_str(), &wanted, &session);
  ASSERT_EQ(status, nullptr) << mge_status_text(status);
  for (int64_t rows : {1, 3}) {
    const int64_t dims[] = {rows, kSize};
    mge_tensor *x = nullptr, *y = nullptr;
    ASSERT_EQ(mge_tensor_create(MGE_DTYPE_F32, dims, 2, &x), nullptr);
    for (int64_t i = 0; i < rows * kSize; ++i) static_cast<float*>(mge_tensor_data(x))[i] = 1;
    status = mge_session_run(session, &x, 1, &y, 1, nullptr, nullptr);
    ASSERT_EQ(status, nullptr) << mge_status_text(status);
    float expected = 0;
    for (int64_t k = 0; k < kSize; ++k) expected += static_cast<float>((k * kSize + 5) % 17);
    EXPECT_EQ(static_cast<float*>(mge_tensor_data(y))[5], expected);
    mge_tensor_release(x);
    mge_tensor_release(y);
    EXPECT_LT(ResidentKib(path), 512) << rows << " rows";
  }
  mge_session_release(session);
  mge_runtime_release(runtime);
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Devices, GivenBack, testing::Values("cpu0", "virtual0"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mge
