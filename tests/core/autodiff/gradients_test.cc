// SPDX-License-Identifier: Apache-2.0
// Every operator's gradient rule agrees with finite differences, on the examples in its row.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "core/autodiff/autodiff.h"
#include "core/base/errors.h"
#include "core/conform/cases.h"
#include "core/ops/gradient.h"
#include "core/ops/interpreter.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxElements = 3000;  // larger examples are left out
constexpr int64_t kProbes = 6;          // elements of each input that are changed
constexpr double kStep = 1e-5;

// Examples in place of those of the row, whose values are outside of the domain or too large for finite differences.
std::vector<std::string> SpecsOf(const OpDef& def) {
  for (const char* name : {"Acos", "Asin", "Atanh"}) {
    if (def.name == name) return {def.name.data() + std::string("(T[3,7]@-0.9:0.9)")};
  }
  std::vector<std::string> specs = conform::SpecsFor(def);
  for (std::string& spec : conform::VariationsOf(def)) specs.push_back(std::move(spec));
  std::erase_if(specs, [](const std::string& spec) { return spec.find("@-100:100") != std::string::npos; });
  return specs;
}

// Returns whether finite differences say nothing about this gradient, with the reason at its place below.
bool Excepted(const OpDef& def, size_t input) {
  if (def.name == "BatchNormalization") return input >= 3;  // mean and variance are statistics, which are not trained
  return IsFixedInput(def, input);
}

absl::StatusOr<std::vector<HostValue>> RunGraph(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<HostValue> values;
  for (const Tensor& t : inputs) values.emplace_back().tensor = t;
  return Interpret(graph, std::move(values));
}

// Adds a sum of all outputs with random weights as the only output. Returns kNone if no output is floating.
ValueId AddLoss(Graph& graph) {
  ExpressionBuilder b(graph, "loss", DType::kF64);
  ValueId loss = kNone;
  uint64_t seed = 7;
  for (ValueId v : std::vector<ValueId>(graph.outputs())) {
    const TensorType type = graph.value(v).type;
    if (type.dtype != DType::kF64 || !type.IsStatic()) continue;
    const Term weights(b, b.Constant(conform::RandomTensor(DType::kF64, type.dims, -1, 1, ++seed)));
    const ValueId sum = b.SumAll(Term(b, v) * weights).id();
    loss = loss == kNone ? sum : b.Add("Add", {loss, sum});
  }
  graph.outputs() = {loss};
  return loss;
}

// Returns a copy with element `at` changed by `by`.
Tensor Changed(const Tensor& t, int64_t at, double by) {
  Tensor copy = conform::TensorOf(t.dtype(), t.shape(), t.data());
  copy.MutableData<double>()[static_cast<size_t>(at)] += by;
  return copy;
}

// Compares the gradients of a case. Returns the number of compared elements. Fails the test if one differs.
int Compare(conform::Case c) {
  Graph& graph = c.graph;
  const std::vector<Tensor>& inputs = c.inputs[0];
  std::vector<ValueId> wanted;
  for (ValueId v : graph.inputs()) {
    if (graph.value(v).type.dtype == DType::kF64) wanted.push_back(v);
  }
  const ValueId loss = AddLoss(graph);
  if (wanted.empty() || loss == kNone) return 0;
  EXPECT_TRUE(InferTypes(graph).ok());
  Graph forward = graph;
  absl::StatusOr<std::vector<ValueId>> gradients = AddGradients(graph, loss, wanted);
  if (!gradients.ok()) {
    EXPECT_EQ(ErrorId(gradients.status()), errors::kUnsupportedFeature.id) << c.Name() << FormatError(gradients.status());
    return 0;
  }
  graph.outputs().clear();
  for (ValueId& v : *gradients) {
    if (v != kNone) graph.outputs().push_back(v);
  }
  absl::Status typed = InferTypes(graph);
  EXPECT_TRUE(typed.ok()) << c.Name() << FormatError(typed);
  absl::StatusOr<std::vector<HostValue>> got = RunGraph(graph, inputs);
  if (ErrorId(got.status()) == errors::kUnsupportedFeature.id) return 0;  // a gradient by replacement finds that late
  EXPECT_TRUE(got.ok()) << c.Name() << FormatError(got.status());
  if (!got.ok()) return 0;
  int compared = 0;
  size_t next = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    const auto at = static_cast<size_t>(std::ranges::find(graph.inputs(), wanted[w]) - graph.inputs().begin());
    const std::vector<ValueId>& operands = graph.node(0).inputs;
    if (Excepted(*c.def, static_cast<size_t>(std::ranges::find(operands, wanted[w]) - operands.begin()))) continue;
    const Tensor& x = inputs[at];
    const bool given = (*gradients)[w] != kNone;
    const Tensor gradient = given ? (*got)[next++].tensor : Tensor();
    if (given && gradient.shape() != x.shape()) {
      ADD_FAILURE() << c.Name() << " input " << at << ": the gradient has shape " << ShapeText(gradient.shape());
      continue;
    }
    for (int64_t probe = 0; probe < std::min(kProbes, x.elements()); ++probe) {
      const int64_t element = probe * 7919 % x.elements();
      double values[2] = {};
      for (int side : {0, 1}) {
        std::vector<Tensor> moved = inputs;
        moved[at] = Changed(x, element, side == 0 ? -kStep : kStep);
        auto y = RunGraph(forward, moved);
        EXPECT_TRUE(y.ok()) << FormatError(y.status());
        if (y.ok()) values[side] = (*y)[0].tensor.Data<double>()[0];
      }
      const double want = (values[1] - values[0]) / (2 * kStep);
      if (std::isnan(want)) continue;  // outside of the domain
      const double have = given ? gradient.Data<double>()[static_cast<size_t>(element)] : 0;
      EXPECT_NEAR(have, want, 2e-4 * std::max(1.0, std::abs(want))) << c.Name() << " input " << at << " element " << element;
      ++compared;
    }
  }
  return compared;
}

std::vector<const OpDef*> Differentiable() {
  std::vector<const OpDef*> out;
  for (const OpDef* def : AllOps()) {
    if (RuleOf(*def) && !def->name.starts_with("Cast")) out.push_back(def);  // Cast changes the type: see below
  }
  return out;
}

// Returns whether finite differences cannot test this operator.
bool NothingToCompare(const OpDef& def) {
  // Functions of quantized numbers or integers, and of those that have no gradient.
  constexpr std::string_view kFunctions[] = {"DequantizeLinear",
                                             "DynamicQuantizeMatMul",
                                             "GatherBlockQuantized",
                                             "MatMulIntegerToFloat",
                                             "NhwcMaxPool",
                                             "QAttention",
                                             "QGemm",
                                             "QuantizeLinear",
                                             "Range",
                                             "Unique"};
  if (def.domain == "com.microsoft" && !def.gradient) {
    return def.name.starts_with("QLinear") || std::ranges::find(kFunctions, def.name) != std::end(kFunctions);
  }
  return def.name == "Bernoulli" || def.name == "OneHot" || def.name == "FunctionGradient";
}

class Gradients : public testing::TestWithParam<const OpDef*> {};

TEST_P(Gradients, AgreeWithFiniteDifferences) {
  const OpDef& def = *GetParam();
  int compared = 0;
  for (const std::string& spec : SpecsOf(def)) {
    absl::StatusOr<conform::Case> c = conform::MakeCase(def, DType::kF64, spec);
    if (!c.ok()) continue;
    int64_t elements = 0;
    for (const Tensor& t : c->inputs[0]) elements += t.elements();
    if (elements <= kMaxElements) compared += Compare(*std::move(c));
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(compared > 0, !NothingToCompare(def)) << "no example of this operator is small and floating";
}

INSTANTIATE_TEST_SUITE_P(Operators, Gradients, testing::ValuesIn(Differentiable()), [](const auto& info) {
  const std::string_view domain = info.param->domain;
  return std::string(domain == "mge" ? "mge" : domain == "com.microsoft" ? "microsoft" : "") + std::string(info.param->name);
});

TEST(Gradient, OfACastHasTheTypeOfItsInput) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input x : float64[3]\ny = Cast(x) {to=1}\nz = Mul(y, y)\nloss = ReduceSum(z) {keepdims=0}\noutput loss\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  const ValueId x = graph->inputs()[0];
  auto gradients = AddGradients(*graph, graph->outputs()[0], {&x, 1});
  ASSERT_TRUE(gradients.ok()) << FormatError(gradients.status());
  graph->outputs() = {(*gradients)[0]};
  ASSERT_TRUE(InferTypes(*graph).ok());
  auto got = RunGraph(*graph, {Tensor::Vector<double>(std::vector<double>{1, -2, 3})});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_THAT((*got)[0].tensor.Data<double>(), testing::ElementsAre(2, -4, 6));
}

TEST(Gradient, OfAProductIsFiniteWhereElementsAreZero) {
  absl::StatusOr<Graph> graph = ParseGraphText(
      "input x : float64[3,3]\naxes = Constant() {value_ints=[1]}\ny = ReduceProd(x, axes)\n"
      "loss = ReduceSum(y) {keepdims=0}\noutput loss\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  const ValueId x = graph->inputs()[0];
  auto gradients = AddGradients(*graph, graph->outputs()[0], {&x, 1});
  ASSERT_TRUE(gradients.ok()) << FormatError(gradients.status());
  graph->outputs() = {(*gradients)[0]};
  ASSERT_TRUE(InferTypes(*graph).ok());
  const double rows[] = {2, 0, 3, 2, 4, 3, 0, 5, 0};
  auto got = RunGraph(*graph, {Tensor::Of<double>({3, 3}, rows)});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_THAT((*got)[0].tensor.Data<double>(), testing::ElementsAre(0, 6, 0, 12, 6, 8, 0, 0, 0));
}

TEST(Mirroring, ComputesCheapNodesOnceMoreForTheGradients) {
  std::vector<std::string> recomputed;
  std::vector<double> results[2];
  for (const bool mirror : {false, true}) {
    absl::StatusOr<Graph> graph = ParseGraphText(
        "input x : float64[2,3]\nconst w = float64[3,3]<0.5>\na = MatMul(x, w)\nb = Tanh(a)\nc = Sigmoid(b)\n"
        "d = MatMul(c, w)\nloss = ReduceSum(d) {keepdims=0}\noutput loss\n");
    ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
    ASSERT_TRUE(InferTypes(*graph).ok());
    const ValueId x = graph->inputs()[0];
    auto gradients = AddGradients(*graph, graph->outputs()[0], {&x, 1}, {.mirror = mirror});
    ASSERT_TRUE(gradients.ok()) << FormatError(gradients.status());
    for (NodeId id = 0; id < graph->node_count(); ++id) {
      if (graph->node(id).recomputed) recomputed.push_back(graph->node(id).op);
    }
    graph->outputs() = {(*gradients)[0]};
    ASSERT_TRUE(InferTypes(*graph).ok());
    auto got = RunGraph(*graph, {conform::RandomTensor(DType::kF64, {2, 3}, -1, 1, 1)});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    const auto data = (*got)[0].tensor.Data<double>();
    results[mirror].assign(data.begin(), data.end());
  }
  EXPECT_THAT(recomputed, testing::UnorderedElementsAre("Tanh", "Sigmoid"));  // no matrix product
  EXPECT_EQ(results[0], results[1]);
}

std::string ErrorOf(const char* text) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  if (!graph.ok() || !InferTypes(*graph).ok()) return "the test's graph is wrong";
  const ValueId x = graph->inputs()[0];
  return FormatError(AddGradients(*graph, graph->outputs()[0], {&x, 1}).status());
}

TEST(Gradient, OfAnOperatorWithoutARuleIsAnErrorThatNamesIt) {
  EXPECT_THAT(ErrorOf("input x : float32[3]\ny = Det(x) as \"d\"\noutput y\n"), testing::HasSubstr("wrong"));
  EXPECT_THAT(ErrorOf("input x : float32[3,3]\ny = Det(x) as \"d\"\noutput y\n"),
              testing::AllOf(testing::HasSubstr("operator Det has no gradient"), testing::HasSubstr("node 'd'")));
}

TEST(Gradient, OfALossWithSeveralElementsIsAnError) {
  EXPECT_THAT(ErrorOf("input x : float32[3]\ny = Neg(x)\noutput y\n"),
              testing::HasSubstr("a loss has one floating element"));
}

}  // namespace
}  // namespace mge
