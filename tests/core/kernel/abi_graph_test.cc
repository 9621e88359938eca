// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/abi_graph.h"

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

}  // namespace
}  // namespace mge
