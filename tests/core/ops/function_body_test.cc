// SPDX-License-Identifier: Apache-2.0
// Function operators: their nodes are replaced by their bodies.
#include "core/ops/function_body.h"

#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using testing::HasSubstr;

absl::StatusOr<Graph> Typed(std::string_view text) {
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  return graph;
}

TEST(FunctionBody, ReplacesTheNode) {
  auto graph = Typed("input x : float32[2,3]\ninput b : float32[3]\ny = com.microsoft::BiasGelu(x, b)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(*ExpandFunction(*graph, 0));
  ASSERT_TRUE(graph->Compact().ok());
  EXPECT_THAT(GraphText(*graph), HasSubstr("y = Gelu("));
  EXPECT_TRUE(VerifyGraph(*graph).ok());
}

TEST(FunctionBody, WaitsForTheElementTypes) {
  auto graph = Typed("input x\ninput b\ny = com.microsoft::BiasGelu(x, b)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(*ExpandFunction(*graph, 0));
  EXPECT_EQ(graph->node_count(), 1);
}

TEST(FunctionBody, RefusesZeroPointsOfAnotherRank) {
  auto graph = Typed(
      "input d : uint8[5,16]\ninput i : int64[2]\ninput s : float32[5,2]\ninput z : uint8[]\n"
      "y = com.microsoft::GatherBlockQuantized(d, i, s, z) {block_size=16}\noutput y\n");
  EXPECT_THAT(graph.status().ToString(), HasSubstr("data has rank 2, scales 2, zero_points 0"));
}

TEST(FunctionBody, WaitsForTheShapesItNeeds) {
  auto graph =
      Typed("input a : float32\ninput b : float32[3,4]\ny = com.microsoft::FusedMatMul(a, b) {transA=1}\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(*ExpandFunction(*graph, 0));
}

// The elementwise operators of the body would broadcast a parameter of another size.
TEST(FunctionBody, OfBatchNormalizationWaitsForTheSizesOfTheParameters) {
  const auto expands = [](std::string_view x, std::string_view scale) {
    auto graph =
        Typed(fmt::format("input x : float32{}\ninput s : float32{}\ninput p : float32[3]\n"
                          "y = BatchNormalization(x, s, p, p, p) {{training_mode=1}}\noutput y\n",
                          x, scale));
    return graph.ok() && *ExpandFunction(*graph, 0);
  };
  EXPECT_TRUE(expands("[2,3,4]", "[3]"));
  EXPECT_TRUE(expands("[N,3,?]", "[3]"));
  EXPECT_FALSE(expands("[2,3,4]", "[N]"));
  EXPECT_FALSE(expands("[2,C,4]", "[3]"));
}

TEST(FunctionBody, OfBatchNormalizationMayHaveStatisticsOfTwoTypes) {
  auto graph = Typed(
      "input x : float32[2,3,4]\ninput p : float32[3]\ninput m : float16[3]\ninput v : float32[3]\n"
      "y, nm, nv = BatchNormalization(x, p, p, m, v) {training_mode=1}\noutput y\noutput nm\noutput nv\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(*ExpandFunction(*graph, 0));
  ASSERT_TRUE(InferTypes(*graph).ok());
  EXPECT_EQ(graph->value(graph->outputs()[1]).type.dtype, DType::kF16);
  EXPECT_EQ(graph->value(graph->outputs()[2]).type.dtype, DType::kF32);
}

TEST(FunctionBody, GivesTheTypesOfTheOutputs) {
  auto graph = Typed(
      "input x : float32[2,N,4]\ninput g : float32[4]\n"
      "y, m, v, s = com.microsoft::SkipLayerNormalization(x, x, g)\noutput y, s\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(GraphText(*graph), HasSubstr("float32[2,N,4], float32[2,?,1], float32[2,?,1], float32[2,N,4]"));
}

TEST(FunctionBody, KnowsTheElementsOfSmallResults) {
  auto graph = Typed(
      "const a = int64[]<2>\nconst b = int64[]<5>\ninput x\nr = com.microsoft::Range(a, b)\n"
      "y = Expand(x, r)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(GraphText(*graph), HasSubstr("int64[3]"));
}

TEST(FunctionBody, ErrorsNameTheNode) {
  auto graph = Typed("input x : float32[2,3]\ninput w : float32[4,5]\ny = com.microsoft::FusedMatMul(x, w)\noutput y\n");
  EXPECT_THAT(FormatError(graph.status()), HasSubstr("FusedMatMul"));
}

TEST(FunctionBody, EveryFunctionOperatorUsesItsBodyOnly) {
  for (const OpDef* def : AllOps()) {
    // Only in training has BatchNormalization a body. The losses' evaluators say which label is wrong.
    if (!def->body || def->name == "BatchNormalization" || def->name.ends_with("Loss")) continue;
    EXPECT_EQ(def->eval, EvalByBody) << def->name;
  }
}

}  // namespace
}  // namespace mge
