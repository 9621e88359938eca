// SPDX-License-Identifier: Apache-2.0
// Sums in buckets: which values they have, and the tokens that order them.
#include "core/kvstore/bucketed_sum.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/ops/op.h"

namespace mge {
namespace {

using testing::ElementsAre;

// Three values that are computed in the order c, a, b.
constexpr char kValues[] = R"(input x : float32[2,2]
c = Tanh(x)
a = Exp(c)
b = MatMul(a, c)
output b
)";

std::vector<std::string> InputsOf(const Graph& graph, NodeId id) {
  std::vector<std::string> out;
  for (ValueId v : graph.node(id).inputs) out.push_back(graph.value(v).name);
  return out;
}

class BucketedSum : public testing::Test {
 protected:
  // Sums b, a and c in buckets. Returns the nodes that were added.
  std::vector<NodeId> Add(int64_t min_elements, const SumParts& parts = {}) {
    auto graph = ParseGraphText(kValues);
    EXPECT_TRUE(graph.ok());
    graph_ = *std::move(graph);
    EXPECT_TRUE(InferTypes(graph_).ok());
    const NodeId first = graph_.node_count();
    const std::vector<ValueId> values = {graph_.FindValue("b"), graph_.FindValue("a"), graph_.FindValue("c")};
    auto sums = AddBucketedSum(graph_, values, min_elements, parts);
    EXPECT_TRUE(sums.ok()) << FormatError(sums.status());
    EXPECT_TRUE(InferTypes(graph_).ok());
    sums_ = *std::move(sums);
    std::vector<NodeId> out;
    for (NodeId id = first; id < graph_.node_count(); ++id) {
      if (graph_.node(id).domain == "mge") out.push_back(id);  // and not the change of shape
    }
    return out;
  }
  Graph graph_;
  std::vector<ValueId> sums_;
};

TEST_F(BucketedSum, AddsAStartAndAnEndForEachBucketInTheOrderOfTime) {
  const std::vector<NodeId> nodes = Add(8);
  ASSERT_EQ(nodes.size(), 4u);
  std::vector<std::string> ops;
  for (NodeId id : nodes) ops.push_back(graph_.node(id).op);
  EXPECT_THAT(ops, ElementsAre("StartSum", "StartSum", "EndSum", "EndSum"));
  EXPECT_THAT(InputsOf(graph_, nodes[0]), ElementsAre(testing::_, "c", "a"));
  const ValueId second = graph_.node(nodes[1]).outputs[0];
  EXPECT_EQ(graph_.node(nodes[1]).inputs[0], graph_.node(nodes[0]).outputs[0]);
  // All waits need the last token: no replica waits before it has begun all sums.
  EXPECT_EQ(graph_.node(nodes[2]).inputs[0], second);
  EXPECT_EQ(graph_.node(nodes[3]).inputs[0], second);
  for (ValueId sum : sums_) EXPECT_EQ(graph_.value(sum).type.ToString(), "float32[2,2]");
}

// The rank has two of the four elements of each part. `a` is whole.
TEST_F(BucketedSum, HasPartsInBucketsOfTheirOwnBeforeTheWholeSums) {
  const std::vector<NodeId> nodes = Add(8, {.of = {true, false, true}, .replica = 1, .replicas = 2});
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_THAT(InputsOf(graph_, nodes[0]), ElementsAre(testing::_, "c", "b"));
  EXPECT_THAT(InputsOf(graph_, nodes[1]), ElementsAre(testing::_, "a"));
  EXPECT_EQ(graph_.node(nodes[0]).attrs.Int("parts"), 1);
  EXPECT_EQ(graph_.node(nodes[1]).attrs.Int("parts"), 0);
  EXPECT_EQ(graph_.value(sums_[0]).type.ToString(), "float32[2]");
  EXPECT_EQ(graph_.value(sums_[1]).type.ToString(), "float32[2,2]");
  EXPECT_EQ(graph_.value(sums_[2]).type.ToString(), "float32[2]");
}

TEST_F(BucketedSum, HasOneBucketIfTheValuesAreFew) { EXPECT_EQ(Add(1000).size(), 2u); }

TEST_F(BucketedSum, HasABucketPerValueIfEachIsLarge) { EXPECT_EQ(Add(1).size(), 6u); }

}  // namespace
}  // namespace mge
