// SPDX-License-Identifier: Apache-2.0
// What well-formed models become.
#include "core/onnx/reader.h"

#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

using ::testing::ElementsAre;

const Proto kX = ValueInfo("x", DType::kF32, {2}), kY = ValueInfo("y", DType::kF32, {2});

TEST(Reader, KnowsWhatTheModelSaysOfItself) {
  Proto bytes = Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                       .inputs = {ValueInfo("x", DType::kF32, {"batch", 3})},
                                       .outputs = {ValueInfo("y", DType::kF32, {"batch", 3})},
                                       .name = "net"}),
                       .opsets = {{"ai.onnx", 13}, {"custom", 2}}}) +
                Text(field::model::kMetadata, Entry("author", "someone")) +
                Text(field::model::kProducerVersion, "1.2");
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->info.ir_version, 8);
  EXPECT_EQ(model->info.producer_name, "test");
  EXPECT_EQ(model->info.producer_version, "1.2");
  ASSERT_EQ(model->info.opsets.size(), 2u);
  EXPECT_EQ(model->info.opsets[0].domain, "");
  EXPECT_EQ(model->info.opsets[0].version, 13);
  EXPECT_THAT(model->info.metadata,
              ElementsAre(std::pair<std::string, std::string>("author", "someone")));
  EXPECT_EQ(model->graph.name, "net");
  ASSERT_EQ(model->info.inputs.size(), 1u);
  const Value& x = model->graph.value(model->graph.inputs()[0]);
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.type.ToString(), "float32[batch,3]");
  EXPECT_THAT(x.type.symbols, ElementsAre("batch", ""));
  EXPECT_EQ(model->info.outputs[0].name, "y");
}

TEST(Reader, NodesMayComeInAnyOrder) {
  auto run = Run(
      Model({.graph = Graph({.nodes = {Node("Relu", {"t"}, {"y"}), Node("Sub", {"x", "w"}, {"t"})},
                             .inputs = {kX},
                             .outputs = {kY},
                             .initializers = {FloatTensor("w", {2}, {1, 10})}})}),
      {{5, 5}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(4, 0));
}

TEST(Reader, InputsWithInitializersAreConstants) {
  for (int64_t ir : {3, 8}) {
    Proto bytes = Model({.graph = Graph({.nodes = {Node("Add", {"x", "w"}, {"y"})},
                                         .inputs = {kX, ValueInfo("w", DType::kF32, {2})},
                                         .outputs = {kY},
                                         .initializers = {FloatTensor("w", {2}, {1, 2})}}),
                         .ir_version = ir});
    auto model = Read(bytes);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->graph.inputs().size(), 1u);
    EXPECT_THAT(model->info.fixed_inputs, ElementsAre("w"));
    EXPECT_THAT(*Run(bytes, {{1, 1}}), ElementsAre(2, 3));
  }
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Add", {"x", "w"}, {"y"})},
                                          .inputs = {kX, ValueInfo("w", DType::kF32, {3})},
                                          .outputs = {kY},
                                          .initializers = {FloatTensor("w", {2}, {1, 2})}})}))
                  .status(),
              errors::kInvalidGraph, "input 'w' and its initializer disagree");
}

TEST(Reader, AbsentInputsAndOutputsStayAbsent) {
  auto model = Read(Model({.graph = Graph({.nodes = {Node("Split", {"x", ""}, {"y", ""},
                                                          {.attributes = {IntAttr("axis", 0)}})},
                                           .inputs = {kX},
                                           .outputs = {ValueInfo("y", DType::kF32, {1})}})}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->graph.node(0).inputs[1], kNone);
  EXPECT_EQ(model->graph.node(0).outputs[1], kNone);
}

TEST(Reader, TheDeviceOfANodeIsInItsMetadata) {
  Proto node =
      Node("Relu", {"x"}, {"y"}) + Text(field::node::kMetadata, Entry("mge.device", "gpu1"));
  auto model = Read(Model({.graph = Graph({.nodes = {node}, .inputs = {kX}, .outputs = {kY}})}));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph.node(0).device, "gpu1");
  EXPECT_EQ(model->graph.node(0).name, "Relu_0");
}

Proto Choice(const Proto& then_branch, const Proto& else_branch,
             const Proto& p_type = TensorType(DType::kF32, {2})) {
  // x is the condition's source too: p = x has elements (always true for tests that need one
  // branch).
  return Graph({.nodes = {Node("If", {"p"}, {"y"},
                               {.attributes = {GraphAttr("then_branch", then_branch),
                                               GraphAttr("else_branch", else_branch)}})},
                .inputs = {kX, ValueInfo("z", p_type)},
                .outputs = {kY},
                .initializers = {RawTensor("p", DType::kBool, {}, std::string(1, '\x01')),
                                 FloatTensor("w", {2}, {10, 20})}});
}

TEST(Reader, BodiesCaptureValuesByPosition) {
  Proto then_branch =
      Graph({.nodes = {Node("Sub", {"z", "x"}, {"a"}), Node("Add", {"a", "w"}, {"b"})},
             .outputs = {ValueInfo("b", DType::kF32, {2})}});
  Proto else_branch =
      Graph({.nodes = {Node("Relu", {"x"}, {"c"})}, .outputs = {ValueInfo("c", DType::kF32, {2})}});
  Proto bytes = Model({.graph = Choice(then_branch, else_branch)});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_TRUE(VerifyGraph(model->graph).ok()) << FormatError(VerifyGraph(model->graph));
  const ::mge::Node& node = model->graph.node(0);
  // z and x for the first body, x for the second; the constant w is repeated in the body.
  ASSERT_EQ(node.captures.size(), 3u);
  EXPECT_EQ(model->graph.value(node.captures[0]).name, "z");
  EXPECT_EQ(model->graph.value(node.captures[1]).name, "x");
  EXPECT_EQ(model->graph.value(node.captures[2]).name, "x");
  EXPECT_EQ(node.attrs.GraphOrNull("then_branch")->inputs().size(), 2u);
  EXPECT_EQ(node.attrs.GraphOrNull("else_branch")->inputs().size(), 1u);
  auto run = Run(bytes, {{1, 2}, {5, 5}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(14, 23));
}

TEST(Reader, ABodyMayReturnWhatIsOutside) {
  Proto through = Graph({.outputs = {ValueInfo("z", DType::kF32, {2})}});
  Proto constant = Graph({.outputs = {ValueInfo("w", DType::kF32, {2})}});
  auto run = Run(Model({.graph = Choice(through, constant)}), {{1, 2}, {5, 6}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(5, 6));
}

TEST(Reader, CapturesPassThroughBodiesBetween) {
  Proto inner = Graph(
      {.nodes = {Node("Add", {"x", "z"}, {"i"})}, .outputs = {ValueInfo("i", DType::kF32, {2})}});
  Proto outer = Graph({.nodes = {Node("If", {"p"}, {"o"},
                                      {.attributes = {GraphAttr("then_branch", inner),
                                                      GraphAttr("else_branch", inner)}})},
                       .outputs = {ValueInfo("o", DType::kF32, {2})}});
  auto run = Run(Model({.graph = Choice(outer, outer)}), {{1, 2}, {5, 6}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(6, 8));
}

Proto Calling(const std::vector<Proto>& nodes, const std::vector<Proto>& functions) {
  return Model({.graph = Graph({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}),
                .opsets = {{"", 13}, {"my", 1}},
                .functions = functions});
}

TEST(Reader, FunctionsAreInlined) {
  Proto twice = Function({.domain = "my",
                          .name = "Twice",
                          .inputs = {"a"},
                          .outputs = {"b"},
                          .nodes = {Node("Add", {"a", "a"}, {"b"})}});
  Proto four = Function({.domain = "my",
                         .name = "Four",
                         .inputs = {"a"},
                         .outputs = {"b"},
                         .nodes = {Node("Twice", {"a"}, {"t"}, {.domain = "my"}),
                                   Node("Twice", {"t"}, {"b"}, {.domain = "my"})}});
  Proto bytes = Calling({Node("Four", {"x"}, {"u"}, {.name = "f", .domain = "my"}),
                         Node("Four", {"u"}, {"y"}, {.name = "f", .domain = "my"})},
                        {four, twice});
  auto run = Run(bytes, {{1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(16, 32));
  auto model = Read(bytes);
  EXPECT_EQ(model->graph.node_count(), 4);
  EXPECT_THAT(model->graph.node(0).name, HasSubstr("f/Twice"));
}

TEST(Reader, AFunctionMayPassItsInputsAndResultsOnTwice) {
  Proto f = Function({.domain = "my",
                      .name = "F",
                      .inputs = {"a"},
                      .outputs = {"a", "b", "b"},
                      .nodes = {Node("Relu", {"a"}, {"b"})}});
  Proto bytes = Calling({Node("F", {"x"}, {"p", "q", "r"}, {.domain = "my"}),
                         Node("Add", {"p", "q"}, {"s"}), Node("Add", {"s", "r"}, {"y"})},
                        {f});
  auto model = Read(bytes);
  if (ErrorId(model.status()) == errors::kUnsupportedOp.id)
    GTEST_SKIP() << FormatError(model.status());
  auto run = Run(bytes, {{-1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(-1, 6));
}

TEST(Reader, AttributesOfFunctionsReachTheirNodes) {
  Proto f = Function(
      {.domain = "my",
       .name = "Cut",
       .inputs = {"a"},
       .outputs = {"b"},
       .attributes = {"which"},
       .nodes = {Node("Concat", {"a", "a"}, {"b"},
                      {.attributes = {ReferenceAttr("axis", AttributeKind::kInt, "which")}})}});
  Proto outer = Function(
      {.domain = "my",
       .name = "Outer",
       .inputs = {"a"},
       .outputs = {"b"},
       .nodes = {Node("Cut", {"a"}, {"b"},
                      {.attributes = {ReferenceAttr("which", AttributeKind::kInt, "default_axis")},
                       .domain = "my"})},
       .defaults = {IntAttr("default_axis", 0)}});
  Proto bytes = Calling({Node("Outer", {"x"}, {"y"}, {.domain = "my"})}, {f, outer});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->graph.node(0).attrs.Int("axis", 99), 0);
  auto given = Read(Calling(
      {Node("Outer", {"x"}, {"y"}, {.attributes = {IntAttr("default_axis", -1)}, .domain = "my"})},
      {f, outer}));
  ASSERT_TRUE(given.ok()) << FormatError(given.status());
  EXPECT_EQ(given->graph.node(0).attrs.Int("axis", 99), -1);
  ExpectError(Read(Calling({Node("Outer", {"x"}, {"y"},
                                 {.attributes = {IntAttr("axes", 1)}, .domain = "my"})},
                           {f, outer}))
                  .status(),
              errors::kInvalidNode, "has no attribute 'axes'");
}

TEST(Reader, BodiesGivenToAFunctionSeeTheirOwnSurroundings) {
  // The function runs the body that it is given; the body uses a value of the caller, whose name
  // the function uses too.
  Proto body = Graph(
      {.nodes = {Node("Add", {"t", "t"}, {"r"})}, .outputs = {ValueInfo("r", DType::kF32, {2})}});
  Proto f = Function(
      {.domain = "my",
       .name = "Pick",
       .inputs = {"p", "t"},
       .outputs = {"o"},
       .attributes = {"body"},
       .nodes = {Node(
           "If", {"p"}, {"o"},
           {.attributes = {ReferenceAttr("then_branch", AttributeKind::kGraph, "body"),
                           GraphAttr("else_branch",
                                     Graph({.nodes = {Node("Relu", {"t"}, {"e"})},
                                            .outputs = {ValueInfo("e", DType::kF32, {2})}}))}})}});
  Proto bytes = Model(
      {.graph = Graph({.nodes = {Node("Add", {"x", "x"}, {"t"}),
                                 Node("Pick", {"p", "x"}, {"y"},
                                      {.attributes = {GraphAttr("body", body)}, .domain = "my"})},
                       .inputs = {kX},
                       .outputs = {kY},
                       .initializers = {RawTensor("p", DType::kBool, {}, std::string(1, '\x01'))}}),
       .opsets = {{"", 13}, {"my", 1}},
       .functions = {f}});
  auto run = Run(bytes, {{1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(4, 8));
}

TEST(Reader, ReadingTwiceGivesTheSameGraph) {
  Proto bytes = ReluModel();
  EXPECT_EQ(GraphText(Read(bytes)->graph), GraphText(Read(bytes)->graph));
}

}  // namespace
}  // namespace mge::onnx
