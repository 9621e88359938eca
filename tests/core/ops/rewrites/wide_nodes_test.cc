// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

constexpr int kOperands = 9000;

// Returns a graph of one node of `op` with many inputs: pieces of a constant with random elements.
std::string Joined(const std::string& op, const std::string& type, const std::string& attrs) {
  std::string text = "const r = " + type + "[9000]<1>\n", inputs;
  for (int i = 0; i < kOperands; ++i) {
    text += fmt::format("const i{} = int64[1]<{}>\nv{} = Gather(r, i{})\n", i, i, i, i);
    inputs += fmt::format("{}v{}", i ? ", " : "", i);
  }
  return text + fmt::format("y = {}({}){}\noutput y\n", op, inputs, attrs);
}

int CountOf(const std::string& ops, std::string_view op) {
  int count = 0;
  for (size_t at = 0; (at = ops.find(op, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(WideNodesRewrite, DividesNodesOfManyInputs) {
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Concat", "float32", " {axis=0}"), 0), "Concat"), 4);
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Sum", "float32", ""), 0), "Sum"), 3);
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Max", "float32", ""), 0), "Max"), 3);
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Min", "float64", ""), 0), "Min"), 3);
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Mean", "float32", ""), 1e-3), "Mean"), 3);
  EXPECT_EQ(CountOf(AfterRewrite("wide_nodes", Joined("Mean", "float16", ""), 0.05), "Mean"), 3);
}

TEST(WideNodesRewrite, DividesASplitOfManyOutputs) {
  std::string outputs, named;
  for (int i = 0; i < kOperands; ++i) {
    outputs += fmt::format("{}v{}", i ? ", " : "", i);
    if (i % 1000 == 999) named += fmt::format("{}v{}", named.empty() ? "" : ", ", i);
  }
  const std::string text =
      fmt::format("input x : float32[9000,2]\n{} = Split(x) {{axis=0, num_outputs=9000}}\noutput {}\n", outputs, named);
  EXPECT_EQ(AfterRewrite("wide_nodes", text, 0), "Split Split Split Split");
}

TEST(WideNodesRewrite, LeavesOrdinaryNodesAlone) {
  EXPECT_EQ(AfterRewrite("wide_nodes", "input a : float32[2]\ninput b : float32[2]\ny = Concat(a, b) {axis=0}\noutput y\n"),
            "Concat");
}

}  // namespace
}  // namespace mge
