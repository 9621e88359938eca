// SPDX-License-Identifier: Apache-2.0
// A session of the C API that computes Relu on the built-in device.
#pragma once

#include <gtest/gtest.h>

#include "mge/mge.h"
#include "tests/core/api/load_bytes.h"
#include "tests/support/onnx_builder.h"

namespace mge {

class ReluSession : public testing::Test {
 protected:
  // Creates the runtime with these options and without backends.
  explicit ReluSession(mge_runtime_options options = {}) {
    options.struct_size = sizeof(options);
    options.no_built_in_plugins = options.no_environment = 1;
    EXPECT_EQ(mge_runtime_create(&options, &runtime_), nullptr);
    const std::string model = onnx_builder::ReluModel();
    mge_session_options where = {};
    where.struct_size = sizeof(where);
    where.device = "host";
    EXPECT_EQ(LoadBytes(runtime_, model, &where, &session_), nullptr);
    const int64_t dims[] = {2};
    EXPECT_EQ(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &input_), nullptr);
  }
  ~ReluSession() override {
    mge_tensor_release(input_);
    mge_session_release(session_);
    mge_runtime_release(runtime_);
  }

  mge_runtime* runtime_ = nullptr;
  mge_session* session_ = nullptr;
  mge_tensor* input_ = nullptr;
};

}  // namespace mge
