// SPDX-License-Identifier: Apache-2.0
// Models as PyTorch's exporters write them train like the model in PyTorch, and are saved with all of its parameters.
#include "core/train/restore_export.h"

#include <cstdio>
#include <map>

#include "core/autodiff/autodiff.h"
#include "core/onnx/weights_writer.h"
#include "core/ops/interpreter.h"
#include "core/ops/rewrites/node_adder.h"
#include "core/train/exported.h"
#include "core/train/training.h"
#include "core/train/unpack_sequences.h"
#include "tests/core/onnx/onnx_test_util.h"

namespace mge {
namespace {

using namespace onnx_builder;  // NOLINT: the tests consist of its functions
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Returns a node with the notes of the newer exporter.
Proto Noted(const Proto& node, const std::string& call, const std::string& scopes, const std::string& rules = "") {
  Proto out = node + TextField(field::node::kMetadata, Entry("pkg.torch.onnx.fx_node", "%y : [num_users=1] = " + call)) +
              TextField(field::node::kMetadata, Entry("pkg.torch.onnx.name_scopes", scopes));
  if (!rules.empty()) out += TextField(field::node::kMetadata, Entry("pkg.onnxscript.rewriter.rule_name", rules));
  return out;
}
std::string Call(const std::string& function, const std::string& arguments) {
  return "call_function[target=torch.ops." + function + "](args = (" + arguments + "), kwargs = {})";
}

Proto ModelOf(const GraphSpec& graph, const std::string& producer = "pytorch") {
  ModelSpec spec;
  spec.graph = GraphProto(graph);
  spec.opsets = {{"", 20}};
  return ModelProto(spec) + TextField(field::model::kProducerName, producer);
}

struct Restored {
  Proto bytes;
  onnx::Model model;
  RestoredExport restored;
  std::vector<std::string> trained;

  explicit Restored(Proto proto) : bytes(std::move(proto)) {
    onnx::ReadOptions options;
    options.export_notes = true;
    absl::StatusOr<onnx::Model> read = onnx::Read(bytes, options);
    EXPECT_TRUE(read.ok()) << FormatError(read.status());
    if (!read.ok()) return;
    model = *std::move(read);
    absl::StatusOr<RestoredExport> done = RestoreExported(model);
    EXPECT_TRUE(done.ok()) << FormatError(done.status());
    if (done.ok()) restored = *std::move(done);
    onnx::Model step = model;
    absl::StatusOr<std::vector<std::string>> names = MakeTrainingStep(step, {.loss = "mse"});
    EXPECT_TRUE(names.ok()) << FormatError(names.status());
    if (names.ok()) trained = *std::move(names);
  }
  std::vector<std::string> Warnings() const { return ExportWarnings(model, trained, restored); }
  // Writes the model with these weights and reads it again.
  onnx::Model Saved(std::map<std::string, Tensor> weights) const {
    const std::string path = testing::TempDir() + "restored_export.onnx";
    const absl::Status written = onnx::WriteWithWeights(AsBytes(bytes), weights, path, testing::TempDir(),
                                                        onnx::NodeForm::kInference, restored.added);
    EXPECT_TRUE(written.ok()) << FormatError(written);
    absl::StatusOr<onnx::Model> read = onnx::ReadModel(path);
    EXPECT_TRUE(read.ok()) << FormatError(read.status());
    std::remove(path.c_str());
    return read.ok() ? *std::move(read) : onnx::Model();
  }
};

// Returns the elements of an input of the node of this operator, the `number`-th of them.
std::vector<float> InputOf(const Graph& graph, std::string_view op, int number, size_t input) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || node.op != op || number-- > 0) continue;
    if (node.inputs.size() <= input || node.inputs[input] == kNone) return {};
    const Tensor& t = graph.value(node.inputs[input]).constant;
    return t.defined() ? std::vector<float>(t.Data<float>().begin(), t.Data<float>().end()) : std::vector<float>();
  }
  return {};
}

Tensor Floats(std::vector<float> values) { return Tensor::Vector<float>(std::span<const float>(values)); }

// Two normalizations whose parameters are equal before the training: one pair of initializers.
Proto MergedNormalizations() {
  auto norm = [](const char* in, const char* out, const char* scope, const char* parameters) {
    return Noted(NodeProto("LayerNormalization", {in, "net.1.weight", "net.1.bias"}, {out}),
                 Call("aten.layer_norm.default", std::string("%linear, [3], ") + parameters + ", 1e-05, False"),
                 std::string("['', 'net', '") + scope + "', 'layer_norm']");
  };
  return ModelOf({.nodes = {norm("x", "a", "net.1", "%p_net_1_weight, %p_net_1_bias"),
                            norm("a", "y", "net.4", "%p_net_4_weight, %p_net_4_bias")},
                  .inputs = {ValueInfo("x", DType::kF32, {2, 3})},
                  .outputs = {ValueInfo("y", DType::kF32, {2, 3})},
                  .initializers = {FloatTensor("net.1.weight", {3}, {1, 1, 1}), FloatTensor("net.1.bias", {3}, {0, 0, 0})}});
}

TEST(RestoreExported, MergedParametersTrainApartAndAreSavedApart) {
  const Restored r(MergedNormalizations());
  EXPECT_THAT(r.trained, UnorderedElementsAre("net.1.weight", "net.1.bias", "net.4.weight", "net.4.bias"));
  EXPECT_THAT(r.Warnings(), IsEmpty());
  const onnx::Model saved = r.Saved({{"net.1.weight", Floats({1, 2, 3})},
                                     {"net.1.bias", Floats({4, 5, 6})},
                                     {"net.4.weight", Floats({7, 8, 9})},
                                     {"net.4.bias", Floats({10, 11, 12})}});
  EXPECT_THAT(InputOf(saved.graph, "LayerNormalization", 0, 1), ElementsAre(1, 2, 3));
  EXPECT_THAT(InputOf(saved.graph, "LayerNormalization", 1, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(InputOf(saved.graph, "LayerNormalization", 1, 2), ElementsAre(10, 11, 12));
}

TEST(RestoreExported, ParametersThatAreOneInPyTorchStayOne) {
  Proto bytes = MergedNormalizations();
  for (size_t at; (at = bytes.find("p_net_4_")) != Proto::npos;) bytes.replace(at, 8, "p_net_1_");
  const Restored r(bytes);
  EXPECT_THAT(r.trained, UnorderedElementsAre("net.1.weight", "net.1.bias"));
  EXPECT_THAT(r.Warnings(), IsEmpty());
}

TEST(RestoreExported, OtherProducersAreLeftAlone) {
  Proto bytes = MergedNormalizations();
  bytes.replace(bytes.rfind("pytorch"), 7, "someone");
  EXPECT_THAT(Restored(bytes).trained, UnorderedElementsAre("net.1.weight", "net.1.bias"));
}

TEST(RestoreExported, IdentitiesOfTheOlderExporterAreParametersAgain) {
  const Restored r(ModelOf(
      {.nodes = {NodeProto("Identity", {"1.weight"}, {"4.weight"}), NodeProto("Identity", {"2.weight"}, {"5.weight"}),
                 NodeProto("Mul", {"x", "1.weight"}, {"/1/Mul_output_0"}),
                 NodeProto("Mul", {"/1/Mul_output_0", "4.weight"}, {"/4/Mul_output_0"}),
                 NodeProto("Mul", {"/4/Mul_output_0", "2.weight"}, {"/2/Mul_output_0"}),
                 NodeProto("Mul", {"/2/Mul_output_0", "5.weight"}, {"y"})},
       .inputs = {ValueInfo("x", DType::kF32, {2, 3})},
       .outputs = {ValueInfo("y", DType::kF32, {2, 3})},
       .initializers = {FloatTensor("1.weight", {3}, {1, 1, 1}), FloatTensor("2.weight", {3}, {1, 2, 3})}}));
  EXPECT_THAT(r.trained, UnorderedElementsAre("1.weight", "2.weight", "4.weight"));
  EXPECT_THAT(r.Warnings(), ElementsAre(HasSubstr("'5.weight'")));  // equal by chance, or one parameter
  const onnx::Model saved =
      r.Saved({{"1.weight", Floats({1, 2, 3})}, {"2.weight", Floats({4, 5, 6})}, {"4.weight", Floats({7, 8, 9})}});
  EXPECT_THAT(InputOf(saved.graph, "Mul", 0, 1), ElementsAre(1, 2, 3));
  EXPECT_THAT(InputOf(saved.graph, "Mul", 1, 1), ElementsAre(7, 8, 9));
}

TEST(RestoreExported, BiasesOfZerosThatTheExporterLeftOutAreTrained) {
  const std::string call = Call("aten.linear.default", "%x, %p_fc_weight, %p_fc_bias");
  const Restored r(
      ModelOf({.nodes = {Noted(NodeProto("Gemm", {"x", "fc.weight"}, {"y"}, {.attributes = {IntAttr("transB", 1)}}), call,
                               "['', 'fc', 'linear']", "RemoveOptionalBiasFromGemm")},
               .inputs = {ValueInfo("x", DType::kF32, {2, 3})},
               .outputs = {ValueInfo("y", DType::kF32, {2, 2})},
               .initializers = {FloatTensor("fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6})}}));
  EXPECT_THAT(r.trained, UnorderedElementsAre("fc.weight", "fc.bias"));
  const onnx::Model saved = r.Saved({{"fc.bias", Floats({8, 9})}});
  EXPECT_THAT(InputOf(saved.graph, "Gemm", 0, 2), ElementsAre(8, 9));
}

TEST(RestoreExported, ATiedWeightThatWasTransposedIsOneParameter) {
  const Restored r(
      ModelOf({.nodes = {Noted(NodeProto("Gather", {"emb.weight", "ids"}, {"embedding"}),
                               Call("aten.embedding.default", "%p_emb_weight, %ids"), "['', 'emb', 'embedding']"),
                         Noted(NodeProto("MatMul", {"embedding", "val_3"}, {"y"}),
                               Call("aten.linear.default", "%embedding, %p_emb_weight"), "['', 'head', 'linear']")},
               .inputs = {ValueInfo("ids", DType::kI64, {2})},
               .outputs = {ValueInfo("y", DType::kF32, {2, 3})},
               .initializers = {FloatTensor("emb.weight", {3, 2}, {1, 2, 3, 4, 5, 6}),
                                FloatTensor("val_3", {2, 3}, {1, 3, 5, 2, 4, 6})}}));
  EXPECT_THAT(r.trained, ElementsAre("emb.weight"));
  EXPECT_THAT(r.Warnings(), IsEmpty());
  ASSERT_EQ(r.restored.copies.size(), 1u);
  EXPECT_EQ(r.restored.copies[0].name, "val_3");
  EXPECT_EQ(r.restored.copies[0].parameter, "emb.weight");
}

// Returns the gradient of an embedding's rows 0, 1 and 2 if each is read once and every element of the result has the gradient 1.
std::vector<float> GradientOfEmbedding(const std::string& arguments) {
  Restored r(ModelOf({.nodes = {Noted(NodeProto("Gather", {"emb.weight", "ids"}, {"y"}),
                                      Call("aten.embedding.default", arguments), "['', 'emb', 'embedding']")},
                      .inputs = {ValueInfo("ids", DType::kI64, {3})},
                      .outputs = {ValueInfo("y", DType::kF32, {3, 2})},
                      .initializers = {FloatTensor("emb.weight", {3, 2}, {1, 2, 3, 4, 5, 6})}}));
  EXPECT_THAT(r.trained, ElementsAre("emb.weight"));
  Graph& graph = r.model.graph;
  NodeAdder add(graph, "loss");
  const ValueId loss = add.Add("ReduceSum", {graph.outputs()[0]}, IntAttribute("keepdims", 0));
  const ValueId weight = graph.FindValue("emb.weight");
  EXPECT_TRUE(InferTypes(graph).ok());
  const absl::StatusOr<std::vector<ValueId>> gradients = AddGradients(graph, loss, {&weight, 1});
  EXPECT_TRUE(gradients.ok()) << FormatError(gradients.status());
  if (!gradients.ok()) return {};
  graph.outputs() = *gradients;
  constexpr int64_t kIds[] = {0, 1, 2};
  HostValue ids;
  ids.tensor = Tensor::Vector<int64_t>(kIds);
  EXPECT_TRUE(InferTypes(graph).ok());
  const auto results = Interpret(graph, std::vector<HostValue>{ids});
  EXPECT_TRUE(results.ok()) << FormatError(results.status());
  if (!results.ok()) return {};
  const auto elements = (*results)[0].tensor.Data<float>();
  return {elements.begin(), elements.end()};
}

TEST(RestoreExported, TheRowOfPaddingOfAnEmbeddingIsNotTrained) {
  EXPECT_THAT(GradientOfEmbedding("%p_emb_weight, %ids"), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(GradientOfEmbedding("%p_emb_weight, %ids, -1"), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(GradientOfEmbedding("%p_emb_weight, %ids, 0"), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT(GradientOfEmbedding("%p_emb_weight, %ids, 1"), ElementsAre(1, 1, 0, 0, 1, 1));
}

// A BatchNormalization of a model in training mode or not.
Proto Normalized(const std::string& function, const std::string& training) {
  return ModelOf(
      {.nodes = {Noted(
           NodeProto("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"y"}),
           Call(function, "%x, %p_bn_weight, %p_bn_bias, %b_bn_running_mean, %b_bn_running_var, " + training + "0.1, 1e-05"),
           "['', 'bn', 'batch_norm']")},
       .inputs = {ValueInfo("x", DType::kF32, {2, 1, 2, 2})},
       .outputs = {ValueInfo("y", DType::kF32, {2, 1, 2, 2})},
       .initializers = {FloatTensor("bn.weight", {1}, {1}), FloatTensor("bn.bias", {1}, {0}),
                        FloatTensor("bn.running_mean", {1}, {0}), FloatTensor("bn.running_var", {1}, {1})}});
}

TEST(RestoreExported, BatchNormalizationOfAModelInTrainingModeTrains) {
  const Restored r(Normalized("aten._native_batch_norm_legit_functional.default", "True, "));
  EXPECT_THAT(r.trained, UnorderedElementsAre("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"));
  EXPECT_THAT(r.Warnings(), IsEmpty());
}

TEST(RestoreExported, BatchNormalizationForInferenceKeepsItsStatistics) {
  const Restored r(Normalized("aten._native_batch_norm_legit_no_training.default", ""));
  EXPECT_THAT(r.trained, UnorderedElementsAre("bn.weight", "bn.bias"));
  EXPECT_THAT(r.Warnings(), ElementsAre(HasSubstr("exported for inference")));
}

TEST(RestoreExported, MasksBuffersAndInitialStatesAreNotTrained) {
  const Restored r(
      ModelOf({.nodes = {Noted(NodeProto("Add", {"x", "val_7"}, {"masked"}),
                               Call("aten.scaled_dot_product_attention.default", "%q, %k, %v, %mask"),
                               "['', 'scaled_dot_product_attention']"),
                         Noted(NodeProto("Mul", {"masked", "rotary.inv_freq"}, {"mul"}),
                               Call("aten.mul.Tensor", "%masked, %b_rotary_inv_freq"), "['', 'rotary', 'mul']"),
                         Noted(NodeProto("Mul", {"mul", "rotary.gain"}, {"y"}),
                               Call("aten.mul.Tensor", "%mul, %p_rotary_gain"), "['', 'rotary', 'mul_1']")},
               .inputs = {ValueInfo("x", DType::kF32, {2, 2})},
               .outputs = {ValueInfo("y", DType::kF32, {2, 2})},
               .initializers = {FloatTensor("val_7", {2, 2}, {0, -3e38F, 0, 0}), FloatTensor("rotary.inv_freq", {2}, {1, 2}),
                                FloatTensor("rotary.gain", {2}, {1, 2})}}));
  EXPECT_THAT(r.trained, ElementsAre("rotary.gain"));
}

TEST(RestoreExported, WarnsOfFoldedNormalizationsAndOfWhatNoParameterStandsFor) {
  const Restored r(ModelOf(
      {.nodes = {Noted(NodeProto("Conv", {"x", "conv.weight"}, {"c"}),
                       Call("aten._native_batch_norm_legit_functional.default",
                            "%conv, %p_bn_weight, %p_bn_bias, %b_m, %b_v, True, 0.1, 1e-05"),
                       "['', 'bn', 'batch_norm']", "FuseBatchNormIntoConv"),
                 Noted(NodeProto("Add", {"c", "expand"}, {"y"}), Call("aten.add.Tensor", "%c, %expand"), "['', 'add']")},
       .inputs = {ValueInfo("x", DType::kF32, {1, 1, 2, 2})},
       .outputs = {ValueInfo("y", DType::kF32, {1, 1, 2, 2})},
       .initializers = {FloatTensor("conv.weight", {1, 1, 1, 1}, {2}), FloatTensor("expand", {1, 1, 2, 2}, {1, 2, 3, 4})}}));
  EXPECT_THAT(r.Warnings(),
              ElementsAre(HasSubstr("'expand'"), testing::AllOf(HasSubstr("'conv.weight'"), HasSubstr("folded"))));
}

// A split by a sequence, as torch.split is exported without the optimizer: all shapes of the training step are known nevertheless.
TEST(UnpackSequences, PartsOfASplitHaveKnownShapes) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input x : float32[2,5]\nconst size = int64[]<2>\nconst last = int64[]<-1>\nconst first = int64[]<0>\nconst w = "
      "float32[2,3]<1>\ns = SplitToSequence(x, size) {axis=1}\na = SequenceAt(s, first)\nb = SequenceAt(s, last)\nm = "
      "MatMul(a, w)\ny = Add(m, b)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  ASSERT_TRUE(UnpackSequences(*graph).ok());
  ASSERT_TRUE(InferTypes(*graph).ok());
  int splits = 0;
  for (NodeId id = 0; id < graph->node_count(); ++id) {
    const Node& node = graph->node(id);
    if (node.dead) continue;
    EXPECT_NE(node.op, "SequenceAt");
    splits += node.op == "Split";
    if (node.op == "Split") {
      ASSERT_EQ(node.outputs.size(), 3u);
      EXPECT_EQ(graph->value(node.outputs[2]).type.dims, (Shape{2, 1}));
    }
  }
  EXPECT_EQ(splits, 1);
  EXPECT_EQ(graph->value(graph->outputs()[0]).type.dims, (Shape{2, 3}));
}

}  // namespace
}  // namespace mge
