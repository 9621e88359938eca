// SPDX-License-Identifier: Apache-2.0
// The settings that allow and forbid kernels on matrix units, observed on the kernels of a plan.
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::Contains;
using testing::Not;

constexpr char kFloats[] = R"(
input x : float32[2,32,16,16]
const w = float32[64,32,3,3]<0.01>
const v = float32[256,64]<0.02>
const s = int64[3]<2, 64, 256>
c = Conv(x, w) {pads=[1,1,1,1], kernel_shape=[3,3]}
r = Reshape(c, s)
y = MatMul(r, v)
output y
)";

constexpr char kHalfs[] = R"(
input x : float16[64,128]
input w : float16[128,64]
y = MatMul(x, w)
output y
)";

const Assignment kNoTensorCores = {"MXNET_CUDA_ALLOW_TENSOR_CORE", "0"};
const Assignment kConversion = {"MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1"};

// Returns the kernels that compute the graph on virtual0.
std::vector<std::string> KernelsOf(std::vector<Assignment> settings, std::string_view text,
                                   const std::vector<InputType>& types) {
  settings.push_back({"virtual.devices", "1"});
  auto session = Load(NewRuntime(std::move(settings)), text, "virtual0");
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  const auto plan = (*session)->PlanFor(types);
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
  std::vector<std::string> kernels;
  for (const Unit& unit : (*plan)->units) {
    if (unit.kind == Unit::Kind::kKernel) kernels.push_back(unit.kernel);
  }
  return kernels;
}

std::vector<std::string> FloatKernels(std::vector<Assignment> settings) {
  return KernelsOf(std::move(settings), kFloats, {{ValueKind::kTensor, DType::kF32, {2, 32, 16, 16}}});
}

std::vector<std::string> HalfKernels(std::vector<Assignment> settings) {
  return KernelsOf(std::move(settings), kHalfs,
                   {{ValueKind::kTensor, DType::kF16, {64, 128}}, {ValueKind::kTensor, DType::kF16, {128, 64}}});
}

TEST(MatrixUnits, ComputeFloatsOnlyIfConversionIsAllowed) {
  EXPECT_THAT(FloatKernels({}), Not(Contains("gpu.matmul.tf32")));
  EXPECT_THAT(FloatKernels({}), Not(Contains("gpu.conv.tf32")));
  EXPECT_THAT(FloatKernels({kConversion}), Contains("gpu.matmul.tf32"));
  EXPECT_THAT(FloatKernels({kConversion}), Contains("gpu.conv.tf32"));
}

TEST(MatrixUnits, ComputeFloatsNotIfTensorCoresAreForbidden) {
  EXPECT_THAT(FloatKernels({kConversion, kNoTensorCores}), Not(Contains("gpu.matmul.tf32")));
  EXPECT_THAT(FloatKernels({kConversion, kNoTensorCores}), Not(Contains("gpu.conv.tf32")));
}

TEST(MatrixUnits, Compute16BitFloatsUnlessTensorCoresAreForbidden) {
  EXPECT_THAT(HalfKernels({}), Contains("gpu.matmul.mma"));
  EXPECT_THAT(HalfKernels({kNoTensorCores}), Not(Contains("gpu.matmul.mma")));
}

}  // namespace
}  // namespace mge
