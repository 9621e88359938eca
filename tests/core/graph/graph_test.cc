// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <set>
#include <string>

#include "core/base/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Parse(std::string_view text) {
  auto graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  return graph.ok() ? *std::move(graph) : Graph{};
}

ValueId Find(const Graph& g, std::string_view name) {
  for (ValueId v = 0; v < g.value_count(); ++v) {
    if (g.value(v).name == name) return v;
  }
  ADD_FAILURE() << "no value " << name;
  return kNone;
}

TEST(GraphText, RoundTripKeepsEverything) {
  constexpr std::string_view kText =
      "name \"g\"\n"
      "input x : float32[1,N,?]\n"
      "input s : seq float32\n"
      "input \"odd \\\"name\\\"\" : optional seq int64[2]\n"
      "input m : map float32\n"
      "input n : seq map string\n"
      "const w = float32[2]<1.0, -2.5>\n"
      "const b = bool[2]<true, false>\n"
      "const t = string[]<\"a b\">\n"
      "const h = float16[2]<0.5, inf>\n"
      "const e = int8[0]<>\n"
      "y, _ = mge::Foo@13(x, _, w) {k=1, a=0.5, s=\"t\", l=[1, 2], f=[1.0, 2.5], q=[\"u\"], n=floats[], "
      "v=int64[1]<3>, vs=[int64[1]<3>, int64[]<4>]} : float32[1,3], _ as \"the node\" on \"gpu0\"\n"
      "z = If(b) captures(x, y) {then_branch=graph {\n"
      "  capture cx : float32[1,N,?]\n"
      "  output cx\n"
      "}, else_branch=graph {\n"
      "  capture cy : ?\n"
      "  output cy\n"
      "}} : ?\n"
      "output z, y\n";
  Graph g = Parse(kText);
  EXPECT_EQ(GraphText(g), kText);
}

TEST(GraphText, SingleElementFillsAConstant) {
  Graph g = Parse("const w = float32[2,3]<0.5>\noutput w\n");
  auto data = g.value(g.outputs()[0]).constant.Data<float>();
  EXPECT_THAT(std::vector<float>(data.begin(), data.end()), ElementsAre(.5f, .5f, .5f, .5f, .5f, .5f));
}

TEST(GraphText, AcceptsAValueUsedBeforeItsProducer) {
  Graph g = Parse("input x : float32[1]\nz = Relu(y)\ny = Relu(x)  # a comment\n\noutput z\n");
  auto order = g.TopologicalOrder();
  ASSERT_TRUE(order.ok());
  EXPECT_THAT(*order, ElementsAre(1, 0));
}

TEST(GraphText, NamesTheLineOfAnError) {
  for (std::string_view bad :
       {"input x : float33\n", "input x : float32[1\n", "\ny = \n", "y = Relu(x\n", "y = Relu(x) {a=}\n", "y = A() {a=\"",
        "const c = int8[1]<300>\n", "const c = int64[3]<1, 2>\n", "input x\ninput x\n", "y = A()\ny = B()\n", "}\n",
        "y = A() {a=1, a=2}\n", "const c = float32[4000000000,4000000000,4000000000]<0>\n", "y = A(x) junk\n"}) {
    auto graph = ParseGraphText(bad);
    ASSERT_FALSE(graph.ok()) << bad;
    EXPECT_EQ(ErrorId(graph.status()), errors::kInvalidGraph.id) << bad;
    EXPECT_THAT(ErrorTitle(graph.status()), HasSubstr("line ")) << bad;
  }
}

TEST(VerifyGraph, NamesACycle) {
  auto graph = ParseGraphText("a = A(b) as \"first\"\nb = B(a) as \"second\"\noutput a\n");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(FormatError(graph.status()), HasSubstr("cycle"));
  EXPECT_THAT(FormatError(graph.status()), HasSubstr("'first' (A) needs 'second' (B) needs 'first'"));
}

TEST(VerifyGraph, NamesAValueWithoutAProducer) {
  auto graph = ParseGraphText("y = Relu(x) as \"r\"\noutput y\n");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(ErrorTitle(graph.status()), HasSubstr("'x'"));
  EXPECT_THAT(ErrorTitle(graph.status()), HasSubstr("'r'"));
}

TEST(VerifyGraph, RefusesTwoProducersAndWrongIds) {
  Graph g = Parse("input x : float32[1]\ny = Relu(x)\noutput y\n");
  Node n = g.node(0);
  g.AddNode(n);
  EXPECT_FALSE(VerifyGraph(g).ok());
  Graph h = Parse("input x : float32[1]\ny = Relu(x)\noutput y\n");
  h.node(0).inputs[0] = 77;
  EXPECT_FALSE(VerifyGraph(h).ok());
  h.node(0).inputs[0] = -5;
  EXPECT_FALSE(VerifyGraph(h).ok());
}

TEST(VerifyGraph, RefusesAWrongNumberOfCaptures) {
  auto graph = ParseGraphText("input c : bool[]\ny = If(c) {then_branch=graph {\ncapture q\noutput q\n}}\noutput y\n");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(ErrorTitle(graph.status()), HasSubstr("captures 0"));
}

TEST(VerifyGraph, VerifiesBodies) {
  auto graph = ParseGraphText("input c : bool[]\ny = If(c) {then_branch=graph {\nz = Relu(q)\noutput z\n}}\noutput y\n");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(ErrorTitle(graph.status()), HasSubstr("'q'"));
}

TEST(Graph, TopologicalOrderIsStable) {
  Graph g = Parse("input x\nd = A(c)\na = A(x)\nb = A(x)\nc = A(a, b)\noutput d\n");
  auto order = g.TopologicalOrder();
  ASSERT_TRUE(order.ok());
  EXPECT_THAT(*order, ElementsAre(1, 2, 3, 0));
}

TEST(Graph, CompactRenumbersTheRemainingNodes) {
  Graph g = Parse("input x\na = A(x)\nb = B(x)\nc = C(b)\noutput c\n");
  g.ReplaceUses(Find(g, "b"), Find(g, "x"));
  g.RemoveNode(1);
  ASSERT_TRUE(g.Compact().ok());
  EXPECT_TRUE(VerifyGraph(g).ok());
  EXPECT_EQ(GraphText(g), "input x : ?\na = A(x) : ?\nc = C(x) : ?\noutput c\n");
}

TEST(Graph, ConsumersCountEachUse) {
  Graph g = Parse("input x\ny = A(x, x)\noutput y, y\n");
  EXPECT_THAT(g.Consumers()[Find(g, "x")], ElementsAre(0, 0));
  EXPECT_EQ(g.OutputUses(Find(g, "y")), 2);
}

TEST(Graph, AnIndexFindsTheReadersThatAWalkFinds) {
  Graph g = Parse("input x\ny = A(x, x)\nz = B(y, x)\noutput z, y\n");
  auto readers = [&](std::string_view name) {
    std::set<std::string> ops;
    g.AnyReader(Find(g, name), [&](NodeId id) { return ops.insert(g.node(id).op).second && false; });
    return ops;
  };
  const auto check = [&](const char* state) {
    EXPECT_EQ(readers("x"), (std::set<std::string>{"A", "B", "C"})) << state;
    EXPECT_EQ(readers("y"), std::set<std::string>{}) << state;
    EXPECT_EQ(readers("u"), std::set<std::string>{"D"}) << state;
    EXPECT_EQ(g.OutputUses(Find(g, "y")), 0) << state;
    EXPECT_EQ(g.OutputUses(Find(g, "x")), 1) << state;
  };
  g.CreateIndex();
  const ValueId u = g.AddTemporary("u");
  g.AddNode({.op = "C", .inputs = {Find(g, "x")}, .outputs = {u}});
  g.AddNode({.op = "D", .inputs = {u}, .outputs = {g.AddTemporary("w")}});
  g.ReplaceUses(Find(g, "y"), Find(g, "x"));
  check("with an index");
  EXPECT_TRUE(g.DropIndex());
  check("without an index");
}

TEST(Graph, AnIndexNoticesAUseThatItLacks) {
  Graph g = Parse("input x\ny = A(x)\nz = B(y)\noutput z\n");
  g.CreateIndex();
  g.node(1).inputs[0] = Find(g, "x");
  EXPECT_FALSE(g.DropIndex());
  g.CreateIndex();
  g.node(1).inputs[0] = Find(g, "y");
  g.Reindex(1);
  EXPECT_TRUE(g.DropIndex());
}

TEST(Graph, TemporariesGetFreshNames) {
  Graph g = Parse("input x\noutput x\n");
  ValueId a = g.AddTemporary("x"), b = g.AddTemporary("x"), c = g.AddTemporary("t");
  EXPECT_NE(g.value(a).name, "x");
  EXPECT_NE(g.value(a).name, g.value(b).name);
  EXPECT_EQ(g.value(c).name, "t");
}

TEST(Graph, HandlesLongChainsWithoutRecursion) {
  Graph g;
  ValueId v = g.AddInput("x", {});
  for (int i = 0; i < 200'000; ++i) {
    ValueId next = g.AddTemporary("t");
    g.AddNode({.op = "Relu", .inputs = {v}, .outputs = {next}});
    v = next;
  }
  g.outputs() = {v};
  EXPECT_TRUE(VerifyGraph(g).ok());
  EXPECT_TRUE(g.Compact().ok());
}

TEST(MergeTypes, CombinesTheKnownPartsOfBothTypes) {
  TensorType declared{.dtype = DType::kF32, .has_rank = true, .dims = {-1, 3}, .symbols = {"N", ""}};
  TensorType inferred{.has_rank = true, .dims = {2, -1}};
  auto merged = MergeTypes(declared, inferred, "x");
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->ToString(), "float32[2,3]");
}

TEST(MergeTypes, NamesAContradiction) {
  TensorType a{.dtype = DType::kF32, .has_rank = true, .dims = {2}};
  TensorType b{.dtype = DType::kF32, .has_rank = true, .dims = {3}};
  auto merged = MergeTypes(a, b, "x");
  ASSERT_FALSE(merged.ok());
  EXPECT_THAT(FormatError(merged.status()), HasSubstr("float32[3]"));
  b.dims = {2};
  b.dtype = DType::kI8;
  EXPECT_FALSE(MergeTypes(a, b, "x").ok());
}

TEST(Graph, NodesThatComputeSomethingAgainComeAsLateAsPossible) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input x : float32[3]\na = Neg(x)\nagain = Tanh(x)\nreader = Exp(again)\nb = Sigmoid(a)\nc = Mul(b, reader)\noutput "
      "c\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  graph->node(1).recomputed = true;
  EXPECT_THAT(*graph->TopologicalOrder(), testing::ElementsAre(0, 3, 1, 2, 4));
}

}  // namespace
}  // namespace mge
