// SPDX-License-Identifier: Apache-2.0
// Utilities of the tests of the reader: read a model from memory, run it, check errors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/onnx/reader.h"
#include "core/ops/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace mge::onnx {

using namespace onnx_builder;  // NOLINT: the tests consist of its functions
using ::testing::HasSubstr;

inline absl::StatusOr<::mge::onnx::Model> Read(const Proto& bytes, const ReadOptions& options = {}) {
  auto owner = std::make_shared<std::string>(bytes);
  return ReadModelBytes(AsBytes(*owner), owner, options);
}

// Reads the model and runs it on float vectors. Returns the elements of the first output.
inline absl::StatusOr<std::vector<float>> RunModel(const Proto& bytes, const std::vector<std::vector<float>>& inputs) {
  MGE_ASSIGN_OR_RETURN(::mge::onnx::Model model, Read(bytes));
  MGE_RETURN_IF_ERROR(VerifyGraph(model.graph));
  MGE_RETURN_IF_ERROR(InferTypes(model.graph));
  std::vector<HostValue> values;
  for (const auto& input : inputs) {
    HostValue value;
    value.tensor = Tensor::Vector<float>(std::span<const float>(input));
    values.push_back(std::move(value));
  }
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, Interpret(model.graph, std::move(values)));
  auto data = out[0].tensor.Data<float>();
  return std::vector<float>(data.begin(), data.end());
}

// Expects the documented error with `text` in it. Expects also that this process can still read and run a good model.
inline void ExpectError(const absl::Status& status, const ErrorRow& row, const std::string& text) {
  EXPECT_EQ(ErrorId(status), row.id) << FormatError(status);
  EXPECT_THAT(FormatError(status), HasSubstr(text));
  auto good = RunModel(ReluModel(), {{-1, 2}});
  ASSERT_TRUE(good.ok()) << FormatError(good.status());
  EXPECT_THAT(*good, ::testing::ElementsAre(0, 2));
}

}  // namespace mge::onnx
