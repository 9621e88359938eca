// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/plugins/cpu/cpu_backend.h"

namespace mge::testing {
namespace {

TEST(CpuElementwise, ReluOfEveryType) {
  ForEachIsa([](Backend& cpu) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI8, DType::kI64}) {
      for (int64_t n : {0, 1, 3, 16, 17, 1000, 40000}) cpu.Check(OneNode("Relu", {Random(t, {n})}), Exactly);
    }
  });
}

TEST(CpuElementwise, AddBroadcasts) {
  ForEachIsa([](Backend& cpu) {
    const std::pair<Shape, Shape> kShapes[] = {
        {{}, {}}, {{5}, {}}, {{}, {7}}, {{3, 1}, {1, 5}}, {{2, 3, 4, 5}, {3, 1, 1}}, {{2, 3, 4, 5}, {1, 3, 1, 1}},
        {{2, 64, 8, 8}, {1, 64, 1, 1}}, {{2, 3, 300}, {300}}, {{2, 3, 300}, {2, 3, 1}}, {{4, 1, 6}, {5, 1}},
        {{0, 3}, {1, 3}}, {{1000, 30}, {30}}, {{50, 7, 40}, {50, 1, 40}}, {{2, 3, 4, 5}, {2, 3, 4, 5}}};
    for (const auto& [a, b] : kShapes) {
      for (DType t : {DType::kF32, DType::kF16, DType::kI32}) {
        for (std::vector<int> constants : {std::vector<int>{}, {1}}) {
          cpu.Check(OneNode("Add", {Random(t, a), Random(t, b, -3, 3, 2)}, {}, constants), Closely);
        }
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
