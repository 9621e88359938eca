// SPDX-License-Identifier: Apache-2.0
// A model becomes a training step: its inputs, outputs and parameters, and the options that are refused.
#include "core/train/training.h"

#include <gmock/gmock.h>

#include <map>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "mge/optimizers.hpp"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLinear[] = R"(input x : float32[N,3]
const w = float32[3,2]<1, 2, 3, 4, 5, 6>
const b = float32[2]<0.5, -0.5>
p = MatMul(x, w)
y = Add(p, b)
output y
)";

onnx::Model ModelOf(std::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  onnx::Model model;
  if (graph.ok()) model.graph = *std::move(graph);
  return model;
}

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> out;
  for (ValueId v : values) out.push_back(graph.value(v).name);
  return out;
}

std::string ErrorOf(std::string_view text, const TrainingOptions& options) {
  onnx::Model model = ModelOf(text);
  return FormatError(MakeTrainingStep(model, options).status());
}

TEST(TrainingStep, HasLabelsAndALearningRateAsInputsAndTheLossAsFirstOutput) {
  onnx::Model model = ModelOf(kLinear);
  auto parameters = MakeTrainingStep(model, {});
  ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
  EXPECT_THAT(*parameters, ElementsAre("w", "b"));
  EXPECT_THAT(NamesOf(model.graph, model.graph.inputs()), ElementsAre("x", "labels", "learning_rate"));
  EXPECT_EQ(model.graph.value(model.graph.inputs()[1]).type.ToString(), "int64[?]");
  ASSERT_EQ(model.graph.outputs().size(), 2u);
  EXPECT_EQ(model.graph.value(model.graph.outputs()[1]).name, "y");
  ASSERT_TRUE(InferTypes(model.graph).ok());
  EXPECT_EQ(model.graph.value(model.graph.outputs()[0]).type.ToString(), "float32[]");
}

TEST(TrainingStep, KeepsFrozenInitializersAndThoseThatTheLossDoesNotDependOn) {
  onnx::Model model = ModelOf(std::string(kLinear) + "const other = float32[2]<1, 2>\nz = Neg(other)\noutput z\n");
  auto parameters = MakeTrainingStep(model, {.loss = "mse", .frozen = {"b"}});
  ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
  EXPECT_THAT(*parameters, ElementsAre("w"));
}

TEST(TrainingStep, OfAModelWithAnInputNamedLabelsNeedsAnotherNameForThem) {
  const std::string text = "input labels : float32[N,3]\nconst w = float32[3,2]<1>\ny = MatMul(labels, w)\noutput y\n";
  EXPECT_THAT(ErrorOf(text, {}), AllOf(HasSubstr("there is an input 'labels' already"), HasSubstr("with labels_name")));
  onnx::Model model = ModelOf(text);
  ASSERT_TRUE(MakeTrainingStep(model, {.labels_name = "classes"}).ok());
  EXPECT_THAT(NamesOf(model.graph, model.graph.inputs()), ElementsAre("labels", "classes", "learning_rate"));
}

TEST(TrainingStep, RefusesAModelWithAnInputNamedLearningRate) {
  EXPECT_THAT(
      ErrorOf("input learning_rate : float32[N,3]\nconst w = float32[3,2]<1>\ny = MatMul(learning_rate, w)\noutput y\n", {}),
      HasSubstr("there is an input 'learning_rate' already"));
}

TEST(TrainingStep, OfAModelThatComputesItsLossHasNoLabels) {
  onnx::Model model = ModelOf(
      "input x : float32[4,3]\nconst w = float32[3,1]<1>\np = MatMul(x, w)\nq = Mul(p, p)\n"
      "l = ReduceMean(q) {keepdims=0}\noutput p\noutput l\n");
  auto parameters = MakeTrainingStep(model, {.loss = "output", .loss_output = "l"});
  ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
  EXPECT_THAT(NamesOf(model.graph, model.graph.inputs()), ElementsAre("x", "learning_rate"));
  EXPECT_THAT(NamesOf(model.graph, model.graph.outputs()), ElementsAre("l", "p", "l"));
}

TEST(TrainingStep, DifferentiatesTheBodiesOfFunctionOperators) {
  onnx::Model model = ModelOf(
      "input x : float32[4,3]\nconst b = float32[3]<1, 2, 3>\nconst w = float32[3,2]<1>\n"
      "g = com.microsoft::BiasGelu(x, b)\ny = MatMul(g, w)\noutput y\n");
  auto parameters = MakeTrainingStep(model, {});
  ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
  EXPECT_THAT(*parameters, ElementsAre("b", "w"));
}

TEST(TrainingStep, RefusesOptionsThatItDoesNotKnow) {
  EXPECT_THAT(ErrorOf(kLinear, {.loss = "hinge"}), AllOf(HasSubstr("no loss 'hinge'"), HasSubstr("cross_entropy")));
  EXPECT_THAT(ErrorOf(kLinear, {.optimizer = "tiger"}), AllOf(HasSubstr("no optimizer 'tiger'"), HasSubstr("adamw")));
  EXPECT_THAT(ErrorOf(kLinear, {.loss_output = "z"}), AllOf(HasSubstr("no output 'z'"), HasSubstr("use one of y")));
  EXPECT_THAT(ErrorOf(kLinear, {.momentum = 1}), HasSubstr("momentum = 1 is outside of [0, 1)"));
  EXPECT_THAT(ErrorOf(kLinear, {.clip_norm = -1}), HasSubstr("clip_norm = -1"));
  EXPECT_THAT(ErrorOf(kLinear, {.frozen = {"ww"}}), AllOf(HasSubstr("no parameter 'ww'"), HasSubstr("did you mean 'w'?")));
}

TEST(TrainingStep, FreezesInitializersByPatterns) {
  for (const char* pattern : {"b", "?", "*"}) {
    onnx::Model model = ModelOf(
        "input x : float32[4,3]\nconst w.0 = float32[3,3]<1>\nconst w.1 = float32[3,3]<1>\nconst b = float32[3]<1>\n"
        "p = MatMul(x, w.0)\nq = MatMul(p, w.1)\ny = Add(q, b)\noutput y\n");
    auto parameters = MakeTrainingStep(model, {.frozen = {"w.*1", pattern}});
    if (*pattern == '*') {
      EXPECT_THAT(FormatError(parameters.status()), HasSubstr("the loss depends on no parameter"));
    } else {
      ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
      EXPECT_THAT(*parameters, ElementsAre("w.0"));
    }
  }
  EXPECT_THAT(ErrorOf(kLinear, {.frozen = {"v*"}}), HasSubstr("no parameter 'v*'"));
}

TEST(TrainingStep, RefusesSmoothingOfALossWithoutClasses) {
  EXPECT_THAT(ErrorOf(kLinear, {.loss = "mse", .label_smoothing = 0.1}), HasSubstr("the loss mse has no label_smoothing"));
  EXPECT_THAT(ErrorOf(kLinear, {.accumulate = 0}), HasSubstr("accumulate = 0 is outside of [1, 1000000]"));
}

TEST(TrainingStep, RefusesNumbersThatTheOptimizerDoesNotRead) {
  EXPECT_THAT(ErrorOf(kLinear, {.optimizer = "adam", .momentum = 0.9}),
              AllOf(HasSubstr("the optimizer adam has no momentum"), HasSubstr("use an optimizer that has it: sgd")));
  EXPECT_THAT(ErrorOf(kLinear, {.beta2 = 0.5}), HasSubstr("the optimizer sgd has no beta2"));
}

TEST(TrainingStep, HasTheStatesOfItsOptimizer) {
  for (const Optimizer& optimizer : kOptimizers) {
    onnx::Model model = ModelOf(kLinear);
    TrainingOptions options = {.optimizer = std::string(optimizer.name)};
    if (ReadsOption(optimizer, "momentum")) options.momentum = 0.5;
    ASSERT_TRUE(MakeTrainingStep(model, options).ok()) << optimizer.name;
    const std::string text = GraphText(model.graph);
    for (const std::string_view slot : optimizer.slots) {
      if (slot.empty()) continue;
      EXPECT_THAT(text, HasSubstr("w." + std::string(slot))) << optimizer.name;
    }
  }
}

TEST(TrainingStep, RefusesModelsThatCannotBeTrained) {
  EXPECT_THAT(ErrorOf("input x : float32[2,3]\ny = Neg(x)\noutput y\n", {}), HasSubstr("the loss depends on no parameter"));
  EXPECT_THAT(ErrorOf("input x : float32[2,3]\nconst w = float32[3]<1>\ny = Add(x, w)\noutput y\n", {.loss = "output"}),
              HasSubstr("'y' cannot be a loss"));
  EXPECT_THAT(ErrorOf("input x : float32[3]\nconst w = float32[3]<1>\ny = Add(x, w)\noutput y\n", {}),
              HasSubstr("scores have the dimensions [N,C,...]"));
  EXPECT_THAT(ErrorOf("input x : float32[1,1,3]\nconst w = float32[1,1,3]<1>\np = Add(x, w)\nd = LpPool(p) "
                      "{kernel_shape=[3]} as \"pool\"\noutput d\n",
                      {.loss = "output"}),
              AllOf(HasSubstr("operator LpPool has no gradient"), HasSubstr("node 'pool'")));
}

// Six elements of w and two of b, over four replicas.
TEST(TrainingStep, HasAPartOfTheOptimizersStatesIfReplicasDivideThem) {
  ReplicaExchange exchange;
  exchange.sum = [](Graph&, std::span<const ValueId> values, const std::vector<bool>& parts) {
    EXPECT_THAT(parts, ElementsAre());
    return std::vector<ValueId>(values.begin(), values.end());
  };
  exchange.gather = [](Graph&, ValueId token, std::span<const ValueId> parts, std::span<const int64_t> elements) {
    EXPECT_THAT(elements, ElementsAre(6));
    return std::vector<ValueId>{token, parts[0]};
  };
  exchange.replicas = 4;
  for (const auto& [replica, part] : {std::pair(0u, 2), {1u, 2}, {2u, 1}, {3u, 1}}) {
    onnx::Model model = ModelOf(kLinear);
    exchange.replica = replica;
    auto parameters = MakeTrainingStep(model, {.optimizer = "adam"}, exchange);
    ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
    std::map<std::string, Shape> states;
    for (ValueId v = 0; v < model.graph.value_count(); ++v)
      states[model.graph.value(v).name] = model.graph.value(v).type.dims;
    EXPECT_EQ(states["w.mean"], Shape({part}));
    EXPECT_EQ(states["w.variance"], Shape({part}));
    EXPECT_EQ(states["b.mean"], Shape({2})) << "fewer elements than replicas";
  }
}

// Returns which sums a replica of four requests in parts with these options: of the loss, the count, the gradients of w and b.
std::vector<bool> PartsOfSums(const TrainingOptions& options) {
  std::vector<bool> out;
  ReplicaExchange exchange;
  exchange.sum = [&](Graph&, std::span<const ValueId> values, const std::vector<bool>& parts) {
    out = parts;
    return std::vector<ValueId>(values.begin(), values.end());
  };
  exchange.gather = [](Graph&, ValueId token, std::span<const ValueId> parts, std::span<const int64_t>) {
    return std::vector<ValueId>{token, parts[0]};
  };
  exchange.sums_parts = true;
  exchange.replicas = 4;
  onnx::Model model = ModelOf(kLinear);
  (void)MakeTrainingStep(model, options, exchange);  // the gradient has another shape than the part that it should have
  return out;
}

TEST(TrainingStep, NeedsOnlyPartsOfTheGradientsUnlessItReadsThemWhole) {
  EXPECT_THAT(PartsOfSums({.optimizer = "adam"}), ElementsAre(false, false, true, false));
  EXPECT_THAT(PartsOfSums({.optimizer = "adam", .clip_norm = 1}), ElementsAre());
  EXPECT_THAT(PartsOfSums({.optimizer = "adam", .on_nan = "skip"}), ElementsAre());
  EXPECT_THAT(PartsOfSums({.optimizer = "adam", .accumulate = 2}), ElementsAre());
  EXPECT_THAT(PartsOfSums({.optimizer = "adam", .keep_gradients = true}), ElementsAre());
}

}  // namespace
}  // namespace mge
