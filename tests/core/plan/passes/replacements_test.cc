// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/replacements.h"

#include "core/ops/op.h"
#include "core/plan/passes/pass.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

ValueId Find(const Graph& graph, std::string_view name) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (graph.value(v).name == name) return v;
  }
  return kNone;
}

TEST(Replacements, FollowChainsAndReachOutputs) {
  auto graph = ParseGraphText("input x : float32[2]\na = Relu(x)\nb = Relu(a)\nc = Relu(b)\noutput c\n");
  ASSERT_TRUE(graph.ok());
  const ValueId x = Find(*graph, "x"), a = Find(*graph, "a"), b = Find(*graph, "b"), c = Find(*graph, "c");
  Replacements replacements(*graph);
  EXPECT_TRUE(replacements.GivenOut(c));
  EXPECT_FALSE(replacements.GivenOut(a));
  replacements.Replace(b, a);
  replacements.Replace(a, x);
  EXPECT_EQ(replacements.Resolve(b), x);
  EXPECT_EQ(replacements.Resolve(c), c);
  EXPECT_EQ(replacements.Resolve(kNone), kNone);
  replacements.Replace(c, graph->AddConstant("k", Tensor::Scalar(1.0f)));
  replacements.Finish();
  EXPECT_EQ(graph->node(2).inputs[0], x);
  EXPECT_EQ(graph->value(graph->outputs()[0]).name, "k");
}

// A walk over the whole graph per merged node would take minutes for this graph.
TEST(Replacements, KeepPassesLinear) {
  constexpr int kNodes = 100'000;
  Graph graph;
  Value x;
  x.name = "x";
  x.role = Role::kInput;
  x.type = {DType::kF32, true, {2}, {}};
  graph.inputs().push_back(graph.AddValue(std::move(x)));
  for (int i = 0; i < kNodes; ++i) {
    Node node;
    node.op = i % 2 ? "Relu" : "Identity";
    node.name = std::to_string(i);
    node.inputs = {graph.inputs()[0]};
    node.outputs = {graph.AddTemporary("v" + node.name)};
    ASSERT_TRUE(BindNode(graph, graph.AddNode(std::move(node))).ok());
  }
  graph.outputs().push_back(graph.node(kNodes - 1).outputs[0]);
  ASSERT_TRUE(InferTypes(graph).ok());
  ASSERT_TRUE(RunPasses(graph, {.allocator = &UnlimitedHostAllocator()}, nullptr).ok());
  int left = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) left += !graph.node(id).dead;
  EXPECT_EQ(left, 1);
}

}  // namespace
}  // namespace mge
