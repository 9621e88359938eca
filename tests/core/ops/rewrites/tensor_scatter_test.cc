// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Model(const std::string& cache, const std::string& update, const std::string& indices,
                  const std::string& attrs) {
  return "input x : float32" + cache + "\ninput u : float32" + update + "\n" +
         (indices.empty() ? "" : "const w = int64" + indices + "\n") + "y = TensorScatter(x, u" +
         (indices.empty() ? ") " : ", w) ") + attrs + "\noutput y\n";
}

TEST(TensorScatterRewrite, JoinsTheUpdateAndTheRestOfTheCache) {
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,3,7,5]", "[2,3,2,5]", "", "")), "Slice Concat");
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,7,5]", "[2,4,5]", "", "{axis=1}")), "Slice Concat");
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,7,5]", "[2,7,5]", "", "")), "Identity");
}

TEST(TensorScatterRewrite, WritesTokensToTheirCoordinates) {
  // Negative indices are moved behind the end, where ScatterND refuses them.
  const std::string linear = "Reshape Less Where Add Expand Concat ScatterND";
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,3,7,5]", "[2,3,2,5]", "[2]<5, 1>", "")), linear);
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,7]", "[2,3]", "[2]<4, 0>", "{axis=-1}")), linear);
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[2,3,7,5]", "[2,3,4,5]", "[2]<5, -9>", "{mode=\"circular\"}")),
            "Reshape Mod Add Mod Expand Concat ScatterND");
  EXPECT_EQ(
      AfterRewrite("tensor_scatter", Model("[1,2,7,5]", "[1,2,4,5]", "[1]<9223372036854775807>", "{mode=\"circular\"}")),
      "Reshape Mod Add Mod Expand Concat ScatterND");
}

TEST(TensorScatterRewrite, LeavesManyCoordinatesToTheOperator) {
  EXPECT_EQ(AfterRewrite("tensor_scatter", Model("[1,2,1050000,1]", "[1,2,1000000,1]", "[1]<3>", "")), "TensorScatter");
}

}  // namespace
}  // namespace mge
