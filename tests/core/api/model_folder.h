// SPDX-License-Identifier: Apache-2.0
// A folder of models with large weights (api_models.h), and a runtime with the backends of the build tree.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
    RuntimeOptions options;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ / name; }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  Status Load(const std::string& name, Session* out, const std::string& device = "cpu0") {
    SessionOptions options;
    options.device = device;
    return Session::Load(runtime_, Path(name), options).MoveTo(*out);
  }
  // Runs a model of LargeWeights() with `rows` rows of ones and this row of its table.
  static Status RunRows(Session& session, int64_t size, int64_t rows, int64_t row, std::vector<Tensor>* outputs) {
    Tensor x, index;
    const int64_t dims[] = {rows, size};
    const std::vector<float> ones(static_cast<size_t>(rows * size), 1);
    EXPECT_TRUE(Tensor::Of<float>(dims, ones).MoveTo(x).ok());
    EXPECT_TRUE(Tensor::Of<int64_t>({1}, {row}).MoveTo(index).ok());
    return session.Run({&x, &index}, *outputs);
  }

  std::filesystem::path root_;
  Runtime runtime_;
};

}  // namespace mge
