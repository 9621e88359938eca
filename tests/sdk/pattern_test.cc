// SPDX-License-Identifier: Apache-2.0
// The pattern matcher of plugin.hpp, with which backends write claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "mge/plugin.hpp"
#include "tests/sdk/test_graph.h"

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::vector<int32_t>> Find(const TestGraph& graph, const mge::PatternNode& pattern) {
  std::vector<std::vector<int32_t>> out;
  for (const mge::Match& m : mge::Pattern(&graph.graph).FindAll(pattern)) out.push_back(m.nodes);
  return out;
}

TEST(PatternNode, FindsATreeAndListsItsNodesProducersFirst) {
  TestGraph graph({{"MatMul", {0, 1}, 2}, {"Add", {2, 3}, 4}, {"Relu", {4}, 5}, {"Relu", {5}, 6}}, 7, {6});
  EXPECT_THAT(Find(graph, mge::Op("Relu", {mge::Op("Add", {mge::Op("MatMul")})})), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(Find(graph, mge::Op("Relu")), ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(Find(graph, mge::Op("Relu", {mge::Op("Relu", {mge::Op("MatMul")})})), IsEmpty());
}

TEST(PatternNode, DoesNotMatchIfOtherNodesReadAnInnerValue) {
  TestGraph twice({{"Add", {0, 1}, 2}, {"Relu", {2}, 3}, {"Neg", {2}, 4}}, 5, {3, 4});
  EXPECT_THAT(Find(twice, mge::Op("Relu", {mge::Op("Add")})), IsEmpty());
  TestGraph output({{"Add", {0, 1}, 2}, {"Relu", {2}, 3}}, 4, {2, 3});
  EXPECT_THAT(Find(output, mge::Op("Relu", {mge::Op("Add")})), IsEmpty());
}

TEST(PatternNode, MatchesSwappedInputsIfItIsCommutative) {
  TestGraph graph({{"MatMul", {0, 1}, 2}, {"Add", {3, 2}, 4}}, 5, {4});  // the product is the second input
  EXPECT_THAT(Find(graph, mge::Op("Add", {mge::Op("MatMul"), mge::Any()})), IsEmpty());
  EXPECT_THAT(Find(graph, mge::Op("Add", {mge::Any(), mge::Op("MatMul")})), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(Find(graph, mge::Op("Add", {mge::Op("MatMul"), mge::Any()}).Commutes()), ElementsAre(ElementsAre(0, 1)));
}

TEST(PatternNode, ChecksThePredicateAndTheDomain) {
  TestGraph graph({{"Relu", {0}, 1}, {"Relu", {1}, 2}}, 3, {2});
  auto last = [](const mge::Node& n) { return n.output_id(0) == 2; };
  EXPECT_THAT(Find(graph, mge::Op("Relu").Where(last)), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Find(graph, mge::Op("Relu").In("com.example")), IsEmpty());
}

}  // namespace
