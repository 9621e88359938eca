// SPDX-License-Identifier: Apache-2.0
// GridSample: images sampled at the points of a grid.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

Case Sampled(const char* mode, const char* padding, int64_t align, int64_t channels = 21) {
  return OneNode("GridSample",
                 {Random(DType::kF32, {2, channels, 7, 9}, -1, 1, 1), Random(DType::kF32, {2, 6, 5, 2}, -1.6, 1.6, 2)},
                 With({{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", align}}));
}

TEST(GridSample, SamplesAsTheEvaluatorDoes) {
  OnEveryMachine([](Backend& backend) {
    for (const char* mode : {"linear", "nearest", "cubic"}) {
      for (const char* padding : {"zeros", "border", "reflection"}) {
        for (int64_t align : {0, 1}) {
          EXPECT_EQ(backend.Check(Sampled(mode, padding, align), Roughly).candidates.size(), 1u);
          backend.Check(Sampled(mode, padding, align, 3), Roughly);
        }
      }
    }
  });
}

TEST(GridSample, HandlesNanAndDistantCoordinates) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    Case c = Sampled("linear", padding, 0);
    auto grid = c.inputs[1].MutableData<float>();
    const float junk[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 1.0f, -1.0f, 0.0f};
    for (size_t i = 0; i < grid.size(); ++i) grid[i] = junk[(i * 5 + i / 8) % 8];
    UnderTest().Check(c, Roughly);
  }
}

TEST(GridSample, SamplesVolumesAndSignals) {
  const std::pair<Shape, Shape> shapes[] = {{{2, 5, 11}, {2, 7, 1}}, {{2, 5, 4, 6, 7}, {2, 3, 4, 5, 3}}};
  for (const auto& [x, grid] : shapes) {
    for (const char* mode : {"linear", "nearest", "cubic"}) {
      for (const char* padding : {"zeros", "border", "reflection"}) {
        const Case c = OneNode("GridSample", {Random(DType::kF32, x, -1, 1, 1), Random(DType::kF32, grid, -1.4, 1.4, 2)},
                               With({{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}}));
        EXPECT_EQ(UnderTest().Check(c, Roughly).candidates.size(), 1u);
      }
    }
  }
}

}  // namespace
}  // namespace mge::testing
