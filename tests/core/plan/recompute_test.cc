// SPDX-License-Identifier: Apache-2.0
// Results that are computed again so that a training step keeps within a budget of memory.
#include "core/plan/recompute.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/ops/reports/live_results.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kBytes = 1024;  // of each result

Graph Parsed(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  EXPECT_TRUE(InferTypes(*graph).ok());
  return *std::move(graph);
}

// A chain of layers, and its gradient: each step back reads a result of the chain. `layer(i)` is the operator of layer i with its
// other inputs.
template <typename F>
Graph Chain(int layers, F layer) {
  std::string text = "input x : float32[16,16]\nconst w = float32[16,16]<1>\n", last = "x";
  for (int i = 0; i < layers; ++i) {
    const auto [op, more] = layer(i);
    text += fmt::format("y{} = {}({}{})\n", i, op, last, more);
    last = fmt::format("y{}", i);
  }
  for (int i = layers; i-- > 0;) {
    text += fmt::format("g{} = Mul({}, y{})\n", i, last, i);
    last = fmt::format("g{}", i);
  }
  return Parsed(text + "output " + last + "\n");
}
Graph Uniform(int layers) {
  return Chain(layers, [](int) { return std::pair("Tanh", ""); });
}

int CountOf(const Graph& graph, std::string_view op) {
  int count = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) count += graph.node(id).op == op;
  return count;
}

TEST(Recompute, ABudgetThatIsLargeEnoughChangesNothing) {
  Graph graph = Uniform(20);
  const int64_t peak = FindLiveResults(graph)->peak;
  const Recomputed done = *RecomputeWithin(graph, peak);
  EXPECT_TRUE(done.fits);
  EXPECT_EQ(done.nodes, 0);
  EXPECT_EQ(done.after, peak);
  EXPECT_EQ(graph.node_count(), 40);
}

TEST(Recompute, ResultsThatAreCheapToComputeAreComputedAgainFirst) {
  Graph graph = Chain(40, [](int i) { return i % 2 ? std::pair("MatMul", ", w") : std::pair("Tanh", ""); });
  const int64_t peak = FindLiveResults(graph)->peak;
  const Recomputed done = *RecomputeWithin(graph, peak * 6 / 10);
  EXPECT_LE(FindLiveResults(graph)->peak, peak * 6 / 10);
  EXPECT_EQ(CountOf(graph, "MatMul"), 20);
  EXPECT_LE(CountOf(graph, "Tanh"), 40);
  EXPECT_LT(done.work, 0.2);
}

// The fewest steps of a chain that are computed again if `slots` of its results can be kept: Griewank and Walther, "Algorithm 799:
// Revolve", 2000.
int64_t FewestSteps(int64_t steps, int64_t slots) {
  int64_t repeats = 0, reach = 1;  // reach = binomial(slots + repeats, slots)
  while (reach < steps) {
    ++repeats;
    reach = reach * (slots + repeats) / repeats;
  }
  return repeats * steps - reach * repeats / (slots + 1) - (steps - 1);
}

TEST(Recompute, AChainTakesFewMoreStepsThanTheOptimum) {
  for (const int layers : {32, 64, 128}) {
    for (const int slots : {6, 10, 16}) {
      Graph graph = Uniform(layers);
      const Recomputed done = *RecomputeWithin(graph, (slots + 2) * kBytes);  // and a gradient, and the result that it reads
      EXPECT_LE(FindLiveResults(graph)->peak, (slots + 2) * kBytes);
      EXPECT_LE(done.nodes, FewestSteps(layers, slots) * 7 / 4) << layers << " layers, " << slots << " results";
    }
  }
}

TEST(Recompute, ABudgetThatCannotHoldGivesTheLeastBytes) {
  Graph graph = Uniform(20);
  const int64_t peak = FindLiveResults(graph)->peak;
  const Recomputed done = *RecomputeWithin(graph, kBytes);
  EXPECT_FALSE(done.fits);
  EXPECT_EQ(done.before, peak);
  EXPECT_LT(done.after, peak / 3);
  EXPECT_GT(done.after, kBytes);
}

TEST(Recompute, RandomNumbersAreNotDrawnAgain) {
  Graph graph = Chain(20, [](int i) { return i % 2 ? std::pair("RandomNormalLike", "") : std::pair("Tanh", ""); });
  const int64_t peak = FindLiveResults(graph)->peak;
  EXPECT_GT(RecomputeWithin(graph, peak * 7 / 10)->nodes, 0);
  EXPECT_EQ(CountOf(graph, "RandomNormalLike"), 10);
}

TEST(Recompute, AViewOfAResultIsMadeAgainWithIt) {
  std::string text = "input x : float32[16,16]\nconst s = int64[1]<256>\n", last = "x";
  for (int i = 0; i < 16; ++i) {
    text += fmt::format("y{0} = Tanh({1})\nv{0} = Reshape(y{0}, s)\n", i, last);
    last = fmt::format("y{}", i);
  }
  last = "v15";
  for (int i = 16; i-- > 0; last = fmt::format("g{}", i)) text += fmt::format("g{0} = Mul({1}, v{0})\n", i, last);
  Graph graph = Parsed(text + "output " + last + "\n");
  const int64_t peak = FindLiveResults(graph)->peak;
  ASSERT_TRUE(RecomputeWithin(graph, peak / 2)->fits);
  EXPECT_LE(FindLiveResults(graph)->peak, peak / 2);
  EXPECT_TRUE(VerifyGraph(graph).ok());
}

}  // namespace
}  // namespace mge
