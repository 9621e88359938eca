// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

std::string TypeOfOutput(std::string_view text) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status status = InferTypes(*graph); !status.ok()) return FormatError(status);
  const Value& v = graph->value(graph->outputs()[0]);
  return TypeText(v.kind, v.type);
}

TEST(InferTypes, ComputesShapeArithmetic) {
  EXPECT_EQ(TypeOfOutput("input x : float32[2,3,4]\n"
                         "s = Shape(x) {end=1}\n"
                         "const minus = int64[1]<-1>\n"
                         "t = Concat(s, minus) {axis=0}\n"
                         "y = Reshape(x, t)\noutput y\n"),
            "float32[2,12]");
}

TEST(InferTypes, KeepsUnknownAndSymbolicSizes) {
  EXPECT_EQ(TypeOfOutput("input x : float32[N,3]\ny = Relu(x)\noutput y\n"), "float32[N,3]");
  EXPECT_EQ(TypeOfOutput("input x : float32[N,3]\nconst w = float32[3,4]<0>\ny = MatMul(x, w)\noutput y\n"), "float32[?,4]");
  EXPECT_EQ(TypeOfOutput("input x : float32\ny = Relu(x)\noutput y\n"), "float32");
  EXPECT_EQ(TypeOfOutput("input x\ny = Relu(x)\noutput y\n"), "?");
}

// Without them, a Reshape of twelve elements, or of none, to a scalar seemed valid: the run read what it does not have.
TEST(InferTypes, KnowsTheElementsOfAnEmptyList) {
  const auto reshaped = [](const std::string& type) {
    return TypeOfOutput("input x : " + type + "\ninput s : int64[0]\ny = Reshape(x, s)\noutput y\n");
  };
  EXPECT_EQ(reshaped("float32[1,1]"), "float32[]");
  EXPECT_EQ(reshaped("float32[N,1]"), "float32[]");
  for (const char* type : {"float32[3,4]", "float32[0,4]"}) {
    EXPECT_THAT(reshaped(type), HasSubstr("the numbers of elements differ"));
  }
  EXPECT_EQ(TypeOfOutput("input x : float32[2,3]\ninput a : int64[0]\ny = ReduceSum(x, a)\noutput y\n"), "float32[1,1]");
}

TEST(InferTypes, MergesDeclaredTypes) {
  EXPECT_EQ(TypeOfOutput("input x : float32[?,3]\ny = Relu(x) : float32[2,?]\noutput y\n"), "float32[2,3]");
  std::string error = TypeOfOutput("input x : float32[2,3]\ny = Relu(x) : float32[2,4] as \"r\"\noutput y\n");
  EXPECT_THAT(error, HasSubstr("contradicts"));
  EXPECT_THAT(error, HasSubstr("declared float32[2,4], computed float32[2,3]"));
  EXPECT_THAT(error, HasSubstr("node 'r'"));
}

TEST(InferTypes, ChecksElementTypesOfComputedValues) {
  EXPECT_THAT(TypeOfOutput("input x : float32[2]\nb = Less(x, x)\ny = Relu(b) as \"r\"\noutput y\n"),
              HasSubstr("has type bool"));
}

TEST(InferTypes, WritesTypesIntoBodies) {
  auto graph = ParseGraphText(
      "input c : bool[]\ninput x : float32[2]\n"
      "y = If(c) captures(x, x) {then_branch=graph {\ncapture x\nr = Relu(x)\noutput r\n}, else_branch=graph {\n"
      "capture x\nr = Neg(x)\noutput r\n}}\noutput y\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  EXPECT_EQ(graph->value(graph->outputs()[0]).type.ToString(), "float32[2]");
  GraphPtr body = graph->node(0).attrs.GraphOrNull("then_branch");
  EXPECT_EQ(body->value(body->outputs()[0]).type.ToString(), "float32[2]");
  HostValue c, x;
  c.tensor = Tensor::Scalar<bool>(false);
  x.tensor = Tensor::Vector<float>(std::vector<float>{1, -2});
  auto results = Interpret(*graph, {c, x});
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  EXPECT_EQ(TensorToText((*results)[0].tensor), "float32[2]<-1.0, 2.0>");
}

TEST(InferTypes, NamesTheNodeOfAnError) {
  EXPECT_THAT(TypeOfOutput("input a : float32[2]\ninput b : float32[3]\ny = Add(a, b) as \"sum\"\noutput y\n"),
              HasSubstr("node 'sum' (Add)"));
}

}  // namespace
}  // namespace mge
