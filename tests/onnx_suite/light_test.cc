// SPDX-License-Identifier: Apache-2.0
// Nine well-known architectures with constant weights, run as whole models on the reference evaluators.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "core/onnx/tensor_file.h"
#include "core/ops/interpreter.h"
#include "gtest/gtest.h"
#include "tests/support/compare_values.h"

namespace mge {
namespace {

namespace fs = std::filesystem;

// Returns a tensor whose element i of n is i/n. Unknown dimensions are 1.
absl::StatusOr<HostValue> Ramp(const TensorType& type) {
  Shape shape = type.dims;
  for (int64_t& d : shape) d = d < 0 ? 1 : d;
  HostValue out;
  MGE_ASSIGN_OR_RETURN(out.tensor, Tensor::Create(DType::kF32, shape));
  auto data = out.tensor.MutableData<float>();
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(static_cast<double>(i) / static_cast<double>(data.size()));
  }
  return out;
}

absl::Status RunLight(const fs::path& path) {
  MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel(path));
  MGE_RETURN_IF_ERROR(InferTypes(model.graph));
  std::vector<HostValue> inputs;
  for (ValueId id : model.graph.inputs()) {
    MGE_ASSIGN_OR_RETURN(HostValue input, Ramp(model.graph.value(id).type));
    inputs.push_back(std::move(input));
  }
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> outputs, Interpret(model.graph, std::move(inputs)));
  MGE_ASSIGN_OR_RETURN(onnx::NamedValue want,
                       onnx::ReadValueFile(path.parent_path() / (path.stem().string() + "_output_0.pb")));
  return CompareValues(outputs[0], want.value);
}

TEST(OnnxLight, WholeArchitecturesGiveTheExpectedOutput) {
  const char* data = std::getenv("MGE_TEST_DATA");
  if (!data) GTEST_SKIP() << "MGE_TEST_DATA is not set";
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(data) / "onnx_light")) {
    if (entry.path().extension() != ".onnx") continue;
    absl::Status status = RunLight(entry.path());
    EXPECT_TRUE(status.ok()) << entry.path() << "\n" << FormatError(status);
    ++models;
  }
  EXPECT_EQ(models, 9);
}

}  // namespace
}  // namespace mge
