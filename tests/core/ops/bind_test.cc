// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

absl::Status Bind(std::string_view text) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return graph.status();
  return BindNode(*graph, 0);
}

TEST(BindNode, SuggestsTheNearestOperator) {
  absl::Status status = Bind("input x\ny = Relyu@13(x) as \"n\"\noutput y\n");
  EXPECT_EQ(ErrorId(status), errors::kUnsupportedOp.id);
  EXPECT_THAT(FormatError(status), HasSubstr("did you mean 'Relu'?"));
  EXPECT_THAT(FormatError(status), HasSubstr("'n'"));
}

TEST(BindNode, NamesUnknownDomains) {
  absl::Status status = Bind("input x\ny = my.domain::Relu@1(x)\noutput y\n");
  EXPECT_EQ(ErrorId(status), errors::kUnsupportedOp.id);
  EXPECT_THAT(FormatError(status), HasSubstr("my.domain"));
  EXPECT_THAT(FormatError(status), HasSubstr("'ai.onnx' has an operator of this name"));
}

TEST(BindNode, TreatsAiOnnxAsTheDefaultDomain) { EXPECT_TRUE(Bind("input x\ny = ai.onnx::Relu@13(x)\noutput y\n").ok()); }

TEST(BindNode, ChecksArity) {
  for (const char* bad : {"input x\ny = Relu(x, x)\noutput y\n", "y = Relu()\noutput y\n", "y = Relu(_)\noutput y\n",
                          "input x\ny, z = Relu(x)\noutput y\n", "input x\n_ = Relu(x)\noutput x\n"}) {
    EXPECT_EQ(ErrorId(Bind(bad)), errors::kInvalidNode.id) << bad;
  }
}

TEST(BindNode, ChecksAttributes) {
  EXPECT_THAT(FormatError(Bind("input x\ny = Relu@13(x) {alpha=1.0}\noutput y\n")), HasSubstr("no attribute 'alpha'"));
  EXPECT_THAT(FormatError(Bind("input x\ny = Add@6(x, x) {_axis=1}\noutput y\n")), HasSubstr("no attribute '_axis'"));
}

TEST(BindNode, SaysHowToSaveAModelThatIsOptimizedForOneProcessor) {
  absl::Status status = Bind("input x\ny = com.microsoft.nchwc::ReorderInput@1(x)\noutput y\n");
  EXPECT_EQ(ErrorId(status), errors::kUnsupportedOp.id);
  EXPECT_THAT(FormatError(status), HasSubstr("ORT_ENABLE_EXTENDED"));
}

TEST(BindNode, ChecksElementTypes) {
  absl::Status status = Bind("input x : string[2]\ny = Relu@13(x)\noutput y\n");
  EXPECT_EQ(ErrorId(status), errors::kUnsupportedType.id);
  EXPECT_THAT(FormatError(status), HasSubstr("string"));
}

TEST(BindNode, UpgradesAnOldOperatorOnce) {
  auto graph =
      ParseGraphText("input x : float32[2,3,4]\ninput b : float32[3]\ny = Add@6(x, b) {axis=1, broadcast=1}\noutput y\n");
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(BindNode(*graph, 0).ok());
  ASSERT_TRUE(BindNode(*graph, 0).ok());
  EXPECT_EQ(graph->node(0).attrs.Int("_axis"), 1);
  EXPECT_FALSE(graph->node(0).attrs.Has("broadcast"));
  EXPECT_TRUE(InferTypes(*graph).ok());
}

TEST(FindOp, EveryRowIsFoundByItsName) {
  for (const OpDef* def : AllOps()) {
    EXPECT_EQ(FindOp(def->domain, def->name), def) << def->name;
    EXPECT_FALSE(def->doc.empty()) << def->name;
    EXPECT_NE(def->infer, nullptr) << def->name;
    EXPECT_NE(def->eval, nullptr) << def->name;
  }
  EXPECT_EQ(FindOp("", "NoSuchOperator"), nullptr);
}

}  // namespace
}  // namespace mge
