// SPDX-License-Identifier: Apache-2.0
#include "core/plan/abi_graph.h"

#include "core/ops/op.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(AbiGraph, NodesWhoseAttributesBackendsCannotSeeAreNotOffered) {
  auto graph = ParseGraphText("input x : float32[2]\ny = Relu(x)\noutput y\n");
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(BindNode(*graph, 0).ok());
  ASSERT_TRUE(InferTypes(*graph).ok());
  Node& node = graph->node(0);
  node.attrs.Set("alpha", 0.5f);
  EXPECT_TRUE(VisibleToBackends(*graph, node));
  node.attrs.Set("activations", std::vector<std::string>{"Tanh"});
  EXPECT_FALSE(VisibleToBackends(*graph, node));
  node.attrs.Remove("activations");
  node.attrs.Set("_axis", int64_t{1});
  EXPECT_FALSE(VisibleToBackends(*graph, node));
}

}  // namespace
}  // namespace mge
