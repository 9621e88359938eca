// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/abi_graph.h"

#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(AbiGraph, NodesWithAttributesHiddenFromBackendsAreNotOffered) {
  auto graph = ParseGraphText("input x : float32[2]\ny = Relu(x)\noutput y\n");
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(BindNode(*graph, 0).ok());
  ASSERT_TRUE(InferTypes(*graph).ok());
  Node& node = graph->node(0);
  node.attrs.Set("alpha", 0.5f);
  EXPECT_TRUE(VisibleToBackends(*graph, node));
  node.attrs.Set("value", Tensor());
  EXPECT_FALSE(VisibleToBackends(*graph, node));
  node.attrs.Remove("value");
  node.attrs.Set("_axis", int64_t{1});
  EXPECT_FALSE(VisibleToBackends(*graph, node));
}

TEST(AbiGraph, AListOfTextsIsPassedAsOneTextWithCommas) {
  auto graph = ParseGraphText("input x : float32[2]\ny = Relu(x)\noutput y\n");
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(BindNode(*graph, 0).ok());
  ASSERT_TRUE(InferTypes(*graph).ok());
  Node& node = graph->node(0);
  auto crosses = [&](Texts texts) {
    node.attrs.Set("activations", std::move(texts));
    return VisibleToBackends(*graph, node);
  };
  EXPECT_FALSE(crosses({"Sig,moid"}));
  EXPECT_FALSE(crosses({"Tanh", ""}));
  EXPECT_TRUE(crosses({}));
  EXPECT_TRUE(crosses({"Sigmoid", "Tanh"}));
  const NodeId nodes[] = {0};
  const std::vector<int32_t> uses(graph->value_count(), 1);
  AbiGraph abi(*graph, nodes, uses);
  const mge_node& crossed = *abi.graph()->nodes[0];
  ASSERT_EQ(crossed.attr_count, 1u);
  EXPECT_EQ(crossed.attrs[0]->type, MGE_ATTR_TEXT);
  EXPECT_EQ(std::string(crossed.attrs[0]->text.data, crossed.attrs[0]->text.size), "Sigmoid,Tanh");
}

TEST(AbiGraph, NumbersTheVersionsOfAState) {
  absl::StatusOr<Graph> parsed = ParseGraphText(R"(input x : float32[2]
const w = float32[2]<1>
v = mge::Assign(w, x)
u = mge::Accumulate(v, x)
y = Neg(u)
output y
)");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  MarkStates(*parsed);
  ASSERT_TRUE(InferTypes(*parsed).ok());
  const std::vector<NodeId> nodes = {1, 2};  // Accumulate, Neg
  const std::vector<int32_t> uses(static_cast<size_t>(parsed->value_count()), 1);
  AbiGraph abi(*parsed, nodes, uses);
  const mge_graph& g = *abi.graph();
  const mge_value &before = *g.values[g.nodes[0]->inputs[0]], &after = *g.values[g.nodes[0]->outputs[0]];
  EXPECT_EQ(before.role, MGE_ROLE_STATE);
  EXPECT_EQ(before.version, 1u);
  EXPECT_EQ(after.role, MGE_ROLE_STATE);
  EXPECT_EQ(after.version, 2u);
  EXPECT_EQ(g.values[g.nodes[1]->outputs[0]]->role, MGE_ROLE_TEMPORARY);
  // A backend is given the operator that computes the same elements.
  EXPECT_EQ(std::string_view(g.nodes[0]->op.data, g.nodes[0]->op.size), "Add");
  EXPECT_EQ(g.nodes[0]->domain.size, 0u);
}

}  // namespace
}  // namespace mge
