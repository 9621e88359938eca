// SPDX-License-Identifier: Apache-2.0
// Gradients through the bodies of loops with a known number of iterations agree with finite differences.
#include <gmock/gmock.h>

#include "tests/core/autodiff/finite_differences.h"

namespace mge {
namespace {

// Returns the number of elements whose gradients were compared.
int CompareGraph(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  if (!graph.ok()) return 0;
  const absl::Status typed = InferTypes(*graph);
  EXPECT_TRUE(typed.ok()) << FormatError(typed);
  conform::Case c;
  c.graph = *std::move(graph);
  c.def = c.graph.node(0).def;
  c.spec = text;
  uint64_t seed = 1;
  for (ValueId v : c.graph.inputs()) {
    c.inputs[0].push_back(conform::RandomTensor(DType::kF64, c.graph.value(v).type.dims, -1, 1, ++seed));
  }
  return Compare(std::move(c), [](const OpDef&, size_t) { return false; });
}

TEST(LoopGradient, ReachesStatesAndCapturesThroughAllIterations) {
  EXPECT_EQ(CompareGraph("input v : float64[2]\ninput w : float64[2]\nconst m = int64[]<4>\n"
                         "last, all = Loop(m, _, v) captures(w) {body=graph {\ninput i : int64[]\ninput go : bool[]\n"
                         "input a : float64[2]\ncapture k : float64[2]\np = Mul(a, k)\nt = Tanh(p)\nu = Add(t, k)\n"
                         "g = Identity(go)\noutput g\noutput u\noutput p\n}}\noutput last\noutput all\n"),
            4);
}

TEST(LoopGradient, EndsWhenTheConditionFollowsFromTheIteration) {
  EXPECT_EQ(CompareGraph("input v : float64[3]\nconst two = int64[]<2>\nconst yes = bool[]<true>\n"
                         "last = Loop(_, yes, v) captures(two) {body=graph {\ninput i : int64[]\ninput go : bool[]\n"
                         "input a : float64[3]\ncapture n : int64[]\nu = Mul(a, a)\ng = Less(i, n)\noutput g\noutput u\n}}\n"
                         "output last\n"),
            3);
}

// A parameter can only be updated if the shape of its gradient is known.
TEST(LoopGradient, AScanOutputHasAKnownSizeIfTheNumberOfIterationsIs) {
  auto type = [](const char* m, const char* condition) {
    absl::StatusOr<Graph> graph =
        ParseGraphText(std::string("input v : float32[2]\ninput n : int64[]\nconst m = int64[]<4>\nconst yes = "
                                   "bool[]<true>\ny2 = Cast(yes) {to=9}\n") +
                       "all = Loop(" + m + ", y2) captures(v, y2) {body=graph {\ninput i : int64[]\ninput go : bool[]\n" +
                       "capture k : float32[2]\ncapture c : bool[]\nt = Tanh(k)\ng = " + condition +
                       "\noutput g\noutput t\n}}\noutput all\n");
    EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
    if (!graph.ok()) return std::string();
    EXPECT_TRUE(InferTypes(*graph).ok());
    return graph->value(graph->outputs()[0]).type.ToString();
  };
  EXPECT_EQ(type("m", "Cast(c) {to=9}"), "float32[4,2]");
  EXPECT_EQ(type("m", "Identity(go)"), "float32[4,2]");
  EXPECT_EQ(type("m", "Not(go)"), "float32[?,2]");
  EXPECT_EQ(type("n", "Identity(go)"), "float32[?,2]");
}

TEST(LoopGradient, ReachesLoopsInLoops) {
  EXPECT_EQ(CompareGraph("input v : float64[2]\ninput w : float64[2]\nconst m = int64[]<2>\n"
                         "last = Loop(m, _, v) captures(w, m) {body=graph {\ninput i : int64[]\ninput go : bool[]\n"
                         "input a : float64[2]\ncapture k : float64[2]\ncapture n : int64[]\n"
                         "u = Loop(n, _, a) captures(k) {body=graph {\ninput j : int64[]\ninput go2 : bool[]\n"
                         "input b : float64[2]\ncapture l : float64[2]\ns = Sin(b)\nc = Mul(s, l)\ng2 = Identity(go2)\n"
                         "output g2\noutput c\n}}\ng = Identity(go)\noutput g\noutput u\n}}\noutput last\n"),
            4);
}

TEST(LoopGradient, OfAScanFollowsItsAxesAndDirections) {
  EXPECT_EQ(CompareGraph("input v : float64[2]\ninput x : float64[2,3]\ninput w : float64[2]\n"
                         "last, all = Scan(v, x) captures(w) {num_scan_inputs=1, scan_input_axes=[1], "
                         "scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1], body=graph {\n"
                         "input a : float64[2]\ninput b : float64[2]\ncapture k : float64[2]\np = Mul(a, k)\n"
                         "u = Add(p, b)\nt = Tanh(u)\noutput t\noutput p\n}}\noutput last\noutput all\n"),
            2 + 6 + 2);
}

TEST(LoopGradient, OfALoopWhoseEndDependsOnValuesIsAnErrorThatNamesIt) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input v : float32[]\nconst yes = bool[]<true>\nconst limit = float32[]<9>\n"
      "last = Loop(_, yes, v) captures(limit) {body=graph {\ninput i : int64[]\ninput go : bool[]\n"
      "input a : float32[]\ncapture l : float32[]\nu = Mul(a, a)\ng = Less(u, l)\noutput g\noutput u\n}} as \"the loop\"\n"
      "output last\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  const ValueId v = graph->inputs()[0];
  const auto gradients = AddGradients(*graph, graph->outputs()[0], {&v, 1});
  ASSERT_TRUE(gradients.ok()) << FormatError(gradients.status());
  graph->outputs() = {(*gradients)[0]};
  absl::Status status = InferTypes(*graph);
  std::vector<HostValue> inputs(1);
  inputs[0].tensor = Tensor::Scalar<float>(2);
  if (status.ok()) status = Interpret(*graph, std::move(inputs)).status();
  EXPECT_THAT(FormatError(status), testing::AllOf(testing::HasSubstr("whose end depends on the values of a run"),
                                                  testing::HasSubstr("the loop")));
}

}  // namespace
}  // namespace mge
