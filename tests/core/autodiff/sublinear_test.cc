// SPDX-License-Identifier: Apache-2.0
// Plans of sublinear memory: their estimated peak, and how the options change it.
#include "core/autodiff/sublinear.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kLayers = 64;
constexpr int64_t kBytes = 1024;  // of a layer's result

// A chain of layers. Every fourth one costs more.
Graph Chain() {
  std::string text = "input x : float32[16,16]\nconst w = float32[16,16]<1>\n", last = "x";
  for (int i = 0; i < kLayers; ++i) {
    text += fmt::format("y{} = {}\n", i, i % 4 == 3 ? fmt::format("MatMul({}, w)", last) : fmt::format("Tanh({})", last));
    last = fmt::format("y{}", i);
  }
  absl::StatusOr<Graph> graph = ParseGraphText(text + "output " + last + "\n");
  EXPECT_TRUE(graph.ok() && InferTypes(*graph).ok());
  return *std::move(graph);
}

SublinearPlan PlanOf(const Graph& graph, const SublinearOptions& options = {}) {
  return PlanSublinearMemory(graph, *graph.TopologicalOrder(), options);
}

// Returns how many nodes of an operator are computed again.
int64_t CountOf(const Graph& graph, const SublinearPlan& plan, std::string_view op) {
  int64_t count = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) count += plan.again[static_cast<size_t>(id)] && graph.node(id).op == op;
  return count;
}

TEST(Sublinear, ThePeakOfAChainGrowsWithTheRootOfItsLength) {
  const Graph graph = Chain();
  const SublinearPlan plan = PlanOf(graph);
  EXPECT_LE(plan.peak, 20 * kBytes);  // 2 * sqrt(64) results in the best case
  EXPECT_GE(plan.peak, 15 * kBytes);
  EXPECT_GT(CountOf(graph, plan, "Tanh"), kLayers / 2);
}

TEST(Sublinear, TheNumberOfTriesIsThatOfTheSearch) {
  // The whole; halves of 64 KiB down to 1 KiB; the linear and the local search.
  EXPECT_EQ(PlanOf(Chain(), {.tries = 10}).evaluations, 1 + 6 + 2 * 10);
  EXPECT_EQ(PlanOf(Chain(), {.tries = 0}).evaluations, 1 + 6);
  EXPECT_EQ(PlanOf(Chain(), {.tries = 1}).evaluations, 1 + 6 + 2);
  EXPECT_EQ(PlanOf(Chain(), {.tries = 0, .generations = 3, .population = 2}).evaluations, 1 + 6 + 3 * 2 * 2);
}

TEST(Sublinear, MoreTriesNeverGiveAWorsePlan) {
  std::string text = "input x : float32[64,64]\n", last = "x";
  for (int i = 0; i < 40; ++i) {  // with connections around each third one
    text += fmt::format("y{} = Tanh({})\n", i, last);
    if (i % 3 == 2) text += fmt::format("s{0} = Add(y{0}, y{1})\n", i, i - 2);
    last = fmt::format("{}{}", i % 3 == 2 ? "s" : "y", i);
  }
  absl::StatusOr<Graph> graph = ParseGraphText(text + "output " + last + "\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(InferTypes(*graph).ok());
  int64_t before = PlanOf(*graph, {.tries = 0}).peak;
  for (int64_t tries = 1; tries < 40; ++tries) {
    const int64_t peak = PlanOf(*graph, {.tries = tries}).peak;
    EXPECT_LE(peak, before) << tries;
    before = peak;
  }
}

TEST(Sublinear, TheGeneticSearchIsNeverWorse) {
  const Graph graph = Chain();
  const int64_t without = PlanOf(graph, {.tries = 1}).peak;
  EXPECT_LE(PlanOf(graph, {.tries = 1, .generations = 30}).peak, without);
}

TEST(Sublinear, ThePlanIsTheSameForAnyNumberOfWorkers) {
  const Graph graph = Chain();
  const SublinearPlan one = PlanOf(graph, {.generations = 5, .workers = 1}),
                      four = PlanOf(graph, {.generations = 5, .workers = 4});
  EXPECT_EQ(one.again, four.again);
  EXPECT_EQ(one.peak, four.peak);
}

TEST(Sublinear, BelowTheLowerBoundExpensiveResultsAreKept) {
  const Graph graph = Chain();
  const SublinearPlan all = PlanOf(graph), bounded = PlanOf(graph, {.lower_bound = 24 * kBytes});
  EXPECT_GE(bounded.peak, 24 * kBytes);
  EXPECT_LT(CountOf(graph, bounded, "MatMul"), CountOf(graph, all, "MatMul"));
  EXPECT_EQ(CountOf(graph, bounded, "Tanh"), CountOf(graph, all, "Tanh"));
}

TEST(Sublinear, RandomNodesAreNotComputedAgain) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input x : float32[64,64]\na = Tanh(x)\nb = Dropout(a)\nc = Tanh(b)\nd = Tanh(c)\ne = Tanh(d)\nf = Tanh(e)\noutput "
      "f\n");
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  EXPECT_FALSE(PlanOf(*graph).again[1]);
}

}  // namespace
}  // namespace mge
