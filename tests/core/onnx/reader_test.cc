// SPDX-License-Identifier: Apache-2.0
// Graphs that the reader makes of well-formed models.
#include "core/onnx/reader.h"

#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

using ::testing::ElementsAre;

const Proto kX = ValueInfo("x", DType::kF32, {2}), kY = ValueInfo("y", DType::kF32, {2});

TEST(Reader, KeepsTheMetadataOfTheModel) {
  Proto bytes = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                                 .inputs = {ValueInfo("x", DType::kF32, {"batch", 3})},
                                                 .outputs = {ValueInfo("y", DType::kF32, {"batch", 3})},
                                                 .name = "net"}),
                            .opsets = {{"ai.onnx", 13}, {"custom", 2}}}) +
                TextField(field::model::kMetadata, Entry("author", "someone")) +
                TextField(field::model::kProducerVersion, "1.2");
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->info.ir_version, 8);
  EXPECT_EQ(model->info.producer_name, "test");
  EXPECT_EQ(model->info.producer_version, "1.2");
  ASSERT_EQ(model->info.opsets.size(), 2u);
  EXPECT_EQ(model->info.opsets[0].domain, "");
  EXPECT_EQ(model->info.opsets[0].version, 13);
  EXPECT_THAT(model->info.metadata, ElementsAre(std::pair<std::string, std::string>("author", "someone")));
  EXPECT_EQ(model->graph.name, "net");
  ASSERT_EQ(model->info.inputs.size(), 1u);
  const Value& x = model->graph.value(model->graph.inputs()[0]);
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.type.ToString(), "float32[batch,3]");
  EXPECT_THAT(x.type.symbols, ElementsAre("batch", ""));
  EXPECT_EQ(model->info.outputs[0].name, "y");
}

TEST(Reader, ExportersPlaceholdersAreNotNamesOfDimensions) {
  Proto bytes = ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                            .inputs = {ValueInfo("x", DType::kF32, {"?", "unk__7", "-1", "", "*", "None", "unknown", "N"})},
                            .outputs = {ValueInfo("y", DType::kF32, {})}})});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->graph.value(model->graph.inputs()[0]).type.ToString(), "float32[?,?,?,?,?,?,?,N]");
}

TEST(Reader, NodesMayComeInAnyOrder) {
  auto run = RunModel(
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"t"}, {"y"}), NodeProto("Sub", {"x", "w"}, {"t"})},
                                       .inputs = {kX},
                                       .outputs = {kY},
                                       .initializers = {FloatTensor("w", {2}, {1, 10})}})}),
      {{5, 5}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(4, 0));
}

TEST(Reader, UsesOperatorSet1ForModelsBeforeIrVersion3) {
  Proto graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}});
  auto model = Read(ModelProto({.graph = graph, .ir_version = 2, .opsets = {}}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->info.opsets[0].version, 1);
  EXPECT_THAT(model->info.deviations, ElementsAre());
  model = Read(ModelProto({.graph = graph, .ir_version = 1, .opsets = {{"", 9}}}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->info.opsets[0].version, 9);
  EXPECT_THAT(model->info.deviations, ElementsAre(HasSubstr("IR version 1 has no operator sets")));
  ExpectError(Read(ModelProto({.graph = graph, .ir_version = 3, .opsets = {}})).status(), errors::kMalformedModel,
              "the model lacks an operator set");
}

TEST(Reader, InputsWithInitializersAreConstants) {
  for (int64_t ir : {3, 8}) {
    Proto bytes = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"y"})},
                                                   .inputs = {kX, ValueInfo("w", DType::kF32, {2})},
                                                   .outputs = {kY},
                                                   .initializers = {FloatTensor("w", {2}, {1, 2})}}),
                              .ir_version = ir});
    auto model = Read(bytes);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->graph.inputs().size(), 1u);
    EXPECT_THAT(model->info.fixed_inputs, ElementsAre("w"));
    EXPECT_THAT(*RunModel(bytes, {{1, 1}}), ElementsAre(2, 3));
  }
  ExpectError(Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"y"})},
                                                    .inputs = {kX, ValueInfo("w", DType::kF32, {3})},
                                                    .outputs = {kY},
                                                    .initializers = {FloatTensor("w", {2}, {1, 2})}})}))
                  .status(),
              errors::kInvalidGraph, "input 'w' and its initializer disagree");
}

TEST(Reader, NamesTheSizeOfTheWeightsAndTheLargestIfMemoryIsShort) {
  struct Little : HostAllocator {
    explicit Little(int64_t bytes) : left(bytes) {}
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
      if ((left -= bytes) < 0) return Fail(errors::kOverBudget, "the limit would be exceeded", {.what = "too much"});
      return UnlimitedHostAllocator().Allocate(bytes);
    }
    int64_t left;
  };
  auto weight = [](const std::string& name, int64_t n) {
    return TensorHead(name, DType::kI64, {n}) +
           PackedIntField(field::tensor::kInt64s, std::vector<int64_t>(static_cast<size_t>(n), 7));
  };
  const Proto bytes = ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                            .inputs = {kX},
                            .outputs = {kY},
                            .initializers = {weight("a", 10), weight("b", 300), weight("c", 20), weight("d", 40)}})});
  Little little(100), enough(8 * 370);
  absl::Status status = Read(bytes, {.allocator = &little}).status();
  ExpectError(status, errors::kOverBudget,
              "too much; the model's weights need 2960 bytes, the largest are "
              "'b' (2400 bytes), 'd' (320 bytes), 'c' (160 bytes)");
  EXPECT_THAT(PartsOf(status).fix, HasSubstr("memory.limit=host=2960"));
  EXPECT_TRUE(Read(bytes, {.allocator = &enough}).ok());
}

TEST(Reader, AbsentInputsAndOutputsStayAbsentAndTrailingInputsAreDropped) {
  NodeOptions kernel = {.attributes = {IntsAttr("kernel_shape", {2, 2})}};
  auto model = Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Conv", {"x", "w", ""}, {"c"}),
                                                               NodeProto("MaxPool", {"c"}, {"y", ""}, kernel)},
                                                     .inputs = {ValueInfo("x", DType::kF32, {1, 1, 4, 4})},
                                                     .outputs = {ValueInfo("y", DType::kF32, {1, 1, 3, 3})},
                                                     .initializers = {FloatTensor("w", {1, 1, 1, 1}, {2})}})}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->graph.node(0).inputs.size(), 2u);
  ASSERT_EQ(model->graph.node(1).outputs.size(), 2u);
  EXPECT_EQ(model->graph.node(1).outputs[1], kNone);
}

TEST(Reader, ReadsTheDeviceOfANodeFromItsMetadata) {
  Proto node = NodeProto("Relu", {"x"}, {"y"}) + TextField(field::node::kMetadata, Entry("mge.device", "gpu1"));
  auto model = Read(ModelProto({.graph = GraphProto({.nodes = {node}, .inputs = {kX}, .outputs = {kY}})}));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph.node(0).device, "gpu1");
  EXPECT_EQ(model->graph.node(0).name, "Relu_0");
}

Proto Choice(const Proto& then_branch, const Proto& else_branch, const Proto& p_type = TensorTypeProto(DType::kF32, {2})) {
  // The condition p is the constant true.
  return GraphProto(
      {.nodes = {NodeProto("If", {"p"}, {"y"},
                           {.attributes = {GraphAttr("then_branch", then_branch), GraphAttr("else_branch", else_branch)}})},
       .inputs = {kX, ValueInfo("z", p_type)},
       .outputs = {kY},
       .initializers = {RawTensor("p", DType::kBool, {}, std::string(1, '\x01')), FloatTensor("w", {2}, {10, 20})}});
}

TEST(Reader, BodiesCaptureValuesByPosition) {
  Proto then_branch = GraphProto({.nodes = {NodeProto("Sub", {"z", "x"}, {"a"}), NodeProto("Add", {"a", "w"}, {"b"})},
                                  .outputs = {ValueInfo("b", DType::kF32, {2})}});
  Proto else_branch =
      GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"c"})}, .outputs = {ValueInfo("c", DType::kF32, {2})}});
  Proto bytes = ModelProto({.graph = Choice(then_branch, else_branch)});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_TRUE(VerifyGraph(model->graph).ok()) << FormatError(VerifyGraph(model->graph));
  const ::mge::Node& node = model->graph.node(0);
  // The first body captures z and x, the second captures x. The constant w is copied into the body.
  ASSERT_EQ(node.captures.size(), 3u);
  EXPECT_EQ(model->graph.value(node.captures[0]).name, "z");
  EXPECT_EQ(model->graph.value(node.captures[1]).name, "x");
  EXPECT_EQ(model->graph.value(node.captures[2]).name, "x");
  EXPECT_EQ(node.attrs.GraphOrNull("then_branch")->inputs().size(), 2u);
  EXPECT_EQ(node.attrs.GraphOrNull("else_branch")->inputs().size(), 1u);
  auto run = RunModel(bytes, {{1, 2}, {5, 5}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(14, 23));
}

TEST(Reader, ABodyMayReturnAValueFromOutside) {
  Proto through = GraphProto({.outputs = {ValueInfo("z", DType::kF32, {2})}});
  Proto constant = GraphProto({.outputs = {ValueInfo("w", DType::kF32, {2})}});
  auto run = RunModel(ModelProto({.graph = Choice(through, constant)}), {{1, 2}, {5, 6}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(5, 6));
}

TEST(Reader, CapturesPassThroughIntermediateBodies) {
  Proto inner = GraphProto({.nodes = {NodeProto("Add", {"x", "z"}, {"i"})}, .outputs = {ValueInfo("i", DType::kF32, {2})}});
  Proto outer =
      GraphProto({.nodes = {NodeProto("If", {"p"}, {"o"},
                                      {.attributes = {GraphAttr("then_branch", inner), GraphAttr("else_branch", inner)}})},
                  .outputs = {ValueInfo("o", DType::kF32, {2})}});
  auto run = RunModel(ModelProto({.graph = Choice(outer, outer)}), {{1, 2}, {5, 6}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(6, 8));
}

Proto Calling(const std::vector<Proto>& nodes, const std::vector<Proto>& functions) {
  return ModelProto({.graph = GraphProto({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}),
                     .opsets = {{"", 13}, {"my", 1}},
                     .functions = functions});
}

TEST(Reader, FunctionsAreInlined) {
  Proto twice = FunctionProto(
      {.domain = "my", .name = "Twice", .inputs = {"a"}, .outputs = {"b"}, .nodes = {NodeProto("Add", {"a", "a"}, {"b"})}});
  Proto four = FunctionProto(
      {.domain = "my",
       .name = "Four",
       .inputs = {"a"},
       .outputs = {"b"},
       .nodes = {NodeProto("Twice", {"a"}, {"t"}, {.domain = "my"}), NodeProto("Twice", {"t"}, {"b"}, {.domain = "my"})}});
  Proto bytes = Calling({NodeProto("Four", {"x"}, {"u"}, {.name = "f", .domain = "my"}),
                         NodeProto("Four", {"u"}, {"y"}, {.name = "f", .domain = "my"})},
                        {four, twice});
  auto run = RunModel(bytes, {{1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(16, 32));
  auto model = Read(bytes);
  EXPECT_EQ(model->graph.node_count(), 4);
  EXPECT_THAT(model->graph.node(0).name, HasSubstr("f/Twice"));
}

TEST(Reader, AFunctionMayPassItsInputsAndResultsOnTwice) {
  Proto f = FunctionProto({.domain = "my",
                           .name = "F",
                           .inputs = {"a"},
                           .outputs = {"a", "b", "b"},
                           .nodes = {NodeProto("Relu", {"a"}, {"b"})}});
  Proto bytes = Calling({NodeProto("F", {"x"}, {"p", "q", "r"}, {.domain = "my"}), NodeProto("Add", {"p", "q"}, {"s"}),
                         NodeProto("Add", {"s", "r"}, {"y"})},
                        {f});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  auto run = RunModel(bytes, {{-1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(-1, 6));
}

TEST(Reader, AttributesOfFunctionsReachTheirNodes) {
  Proto f = FunctionProto({.domain = "my",
                           .name = "Cut",
                           .inputs = {"a"},
                           .outputs = {"b"},
                           .attributes = {"which"},
                           .nodes = {NodeProto("Concat", {"a", "a"}, {"b"},
                                               {.attributes = {ReferenceAttr("axis", AttributeKind::kInt, "which")}})}});
  Proto outer = FunctionProto(
      {.domain = "my",
       .name = "Outer",
       .inputs = {"a"},
       .outputs = {"b"},
       .nodes = {NodeProto("Cut", {"a"}, {"b"},
                           {.attributes = {ReferenceAttr("which", AttributeKind::kInt, "default_axis")}, .domain = "my"})},
       .defaults = {IntAttr("default_axis", 0)}});
  Proto bytes = Calling({NodeProto("Outer", {"x"}, {"y"}, {.domain = "my"})}, {f, outer});
  auto model = Read(bytes);
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(model->graph.node(0).attrs.Int("axis", 99), 0);
  auto given = Read(Calling(
      {NodeProto("Outer", {"x"}, {"y"}, {.attributes = {IntAttr("default_axis", -1)}, .domain = "my"})}, {f, outer}));
  ASSERT_TRUE(given.ok()) << FormatError(given.status());
  EXPECT_EQ(given->graph.node(0).attrs.Int("axis", 99), -1);
  ExpectError(
      Read(Calling({NodeProto("Outer", {"x"}, {"y"}, {.attributes = {IntAttr("axes", 1)}, .domain = "my"})}, {f, outer}))
          .status(),
      errors::kInvalidNode, "has no attribute 'axes'");
}

TEST(Reader, ABodyPassedToAFunctionUsesTheCallersValues) {
  // The function runs the body that it receives. The body uses a value of the caller. The function has another value of
  // the same name.
  Proto body = GraphProto({.nodes = {NodeProto("Add", {"t", "t"}, {"r"})}, .outputs = {ValueInfo("r", DType::kF32, {2})}});
  Proto f = FunctionProto(
      {.domain = "my",
       .name = "Pick",
       .inputs = {"p", "t"},
       .outputs = {"o"},
       .attributes = {"body"},
       .nodes = {NodeProto(
           "If", {"p"}, {"o"},
           {.attributes = {ReferenceAttr("then_branch", AttributeKind::kGraph, "body"),
                           GraphAttr("else_branch", GraphProto({.nodes = {NodeProto("Relu", {"t"}, {"e"})},
                                                                .outputs = {ValueInfo("e", DType::kF32, {2})}}))}})}});
  Proto bytes = ModelProto(
      {.graph = GraphProto(
           {.nodes = {NodeProto("Add", {"x", "x"}, {"t"}),
                      NodeProto("Pick", {"p", "x"}, {"y"}, {.attributes = {GraphAttr("body", body)}, .domain = "my"})},
            .inputs = {kX},
            .outputs = {kY},
            .initializers = {RawTensor("p", DType::kBool, {}, std::string(1, '\x01'))}}),
       .opsets = {{"", 13}, {"my", 1}},
       .functions = {f}});
  auto run = RunModel(bytes, {{1, 2}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ElementsAre(4, 8));
}

TEST(Reader, ReadingTwiceGivesTheSameGraph) {
  Proto bytes = ReluModel();
  EXPECT_EQ(GraphText(Read(bytes)->graph), GraphText(Read(bytes)->graph));
}

}  // namespace
}  // namespace mge::onnx
