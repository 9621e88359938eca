// SPDX-License-Identifier: Apache-2.0
// Kernels in a cancelled run. Each case is large enough to be split, because kernels check for cancellation between the
// parts.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

Tensor Large(Shape shape) { return Random(DType::kF32, std::move(shape), 0.1, 1); }

Case Resized(const char* mode) {
  return OneNode("Resize", {Large({1, 16, 40, 40}), Tensor(), Fill(DType::kF32, {4}, {1, 1, 2, 2})}, With({{"mode", mode}}),
                 {2});
}

std::vector<Case> LargeCases() {
  const Attributes pads = With({{"pads", Ints{1, 1, 1, 1}}});
  const Attributes depthwise = With({{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{64}}});
  const Attributes pool = With({{"kernel_shape", Ints{3, 3}}});
  return {
      OneNode("MatMul", {Large({256, 256}), Large({256, 256})}, {}, {1}),
      OneNode("MatMul", {Large({256, 256}), Large({256, 256})}),
      OneNode("MatMul", {Random(DType::kF64, {256, 256}), Random(DType::kF64, {256, 256})}),
      OneNode("Conv", {Large({1, 32, 28, 28}), Large({64, 32, 3, 3})}, pads, {1}),
      OneNode("Conv", {Large({1, 64, 56, 56}), Large({64, 1, 3, 3})}, depthwise, {1}),
      OneNode("Transpose", {Large({768, 768})}),
      OneNode("Concat", {Large({400, 768}), Large({400, 768})}, With({{"axis", int64_t{1}}})),
      OneNode("Exp", {Large({1 << 19})}),
      OneNode("Softmax", {Large({512, 512})}),
      OneNode("MaxPool", {Large({1, 64, 60, 57})}, pool),
      Resized("nearest"),
      Resized("linear"),
  };
}

TEST(Stop, EndsEveryKernelThatSplitsItsWorkWithoutAnException) {
  for (const Case& c : LargeCases()) {
    Backend::Outcome r = UnderTest().RunStopped(c);
    EXPECT_FALSE(r.candidates.empty()) << c.name;
    for (size_t i = 0; i < r.candidates.size(); ++i)
      EXPECT_EQ(r.codes[i], MGE_CANCELLED) << c.name << " " << r.candidates[i];
  }
}

}  // namespace
}  // namespace mge::testing
