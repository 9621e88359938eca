// SPDX-License-Identifier: Apache-2.0
// Every operator's gradient rule agrees with finite differences, on the examples in its row.
#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/ops/gradient.h"
#include "tests/core/autodiff/finite_differences.h"

namespace mge {
namespace {

constexpr int64_t kMaxElements = 3000;  // larger examples are left out

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

// Returns whether the input is a setting without a gradient.
bool Excepted(const OpDef& def, size_t input) {
  for (const char* name : {"Dropout", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Resize", "Upsample"}) {
    if (def.name == name) return IsFixedInput(def, input);
  }
  return false;
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
  // Functions of quantized numbers or integers, of those that have no gradient, and those that compute in float32 only.
  constexpr std::string_view kFunctions[] = {"DequantizeLinear",
                                             "DynamicQuantizeMatMul",
                                             "GatherBlockQuantized",
                                             "MatMulIntegerToFloat",
                                             "MoE",
                                             "NhwcMaxPool",
                                             "QAttention",
                                             "QGemm",
                                             "QMoE",
                                             "QuantizeLinear",
                                             "Range",
                                             "Unique"};
  if (def.domain == "com.microsoft" && !def.gradient) {
    return def.name.starts_with("QLinear") || std::ranges::find(kFunctions, def.name) != std::end(kFunctions);
  }
  if (def.name == "Loop" || def.name == "Scan") return true;  // loop_gradients_test.cc
  return def.name == "Bernoulli" || def.name == "FunctionGradient";
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
    if (elements <= kMaxElements) compared += Compare(*std::move(c), Excepted);
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
  EXPECT_THAT(ErrorOf("input x : float32[1,1,3]\nz = LpPool(x) {kernel_shape=[3]} as \"p\"\n"
                      "y = ReduceSum(z) {keepdims=0}\noutput y\n"),
              testing::AllOf(testing::HasSubstr("operator LpPool has no gradient"), testing::HasSubstr("node 'p'")));
}

TEST(Gradient, OfASettingWithoutOneIsAnErrorThatNamesTheInput) {
  EXPECT_THAT(ErrorOf("input r : float32[]\nconst x = float32[9]<1>\nr2 = Identity(r)\n"
                      "z = Dropout(x, r2) as \"d\"\ny = ReduceSum(z) {keepdims=0}\noutput y\n"),
              testing::AllOf(testing::HasSubstr("input 1 ('ratio') of operator Dropout has no gradient"),
                             testing::HasSubstr("node 'd'")));
}

TEST(Gradient, OfALossWithSeveralElementsIsAnError) {
  EXPECT_THAT(ErrorOf("input x : float32[3]\ny = Neg(x)\noutput y\n"),
              testing::HasSubstr("a loss has one floating element"));
}

}  // namespace
}  // namespace mge
