// SPDX-License-Identifier: Apache-2.0
// Tests of `mge inspect`, which also reads models that mge cannot run.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

class Inspect : public Command {
 protected:
  // Writes a model with a Relu, two nodes of a vendor's operator and a misspelt operator.
  void Unknown() const {
    Write("m.onnx",
          ob::ModelProto({.graph = ob::GraphProto(
                              {.nodes = {ob::NodeProto("Relu", {"x"}, {"a"}),
                                         ob::NodeProto("Magic", {"a"}, {"b"}, {.name = "one", .domain = "com.acme"}),
                                         ob::NodeProto("Magic", {"b"}, {"c"}, {.name = "two", .domain = "com.acme"}),
                                         ob::NodeProto("Sigmoidd", {"c"}, {"y"})},
                               .inputs = {ob::ValueInfo("x", DType::kF32, {"N", int64_t{2}})},
                               .outputs = {ob::ValueInfo("y", DType::kF32, {"N", int64_t{2}})}}),
                          .opsets = {{"", 17}, {"com.acme", 3}}}));
  }
};

TEST_F(Inspect, ListsEveryUnsupportedOperator) {
  Unknown();
  EXPECT_EQ(Mge("run m.onnx").code, 4);
  Outcome o = Mge("inspect m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("2 operators are not supported"));
  EXPECT_THAT(o.out, testing::ContainsRegex("Magic +com.acme +3 +2 +one +none +MGE has no operator of domain 'com.acme'"));
  EXPECT_THAT(o.out, HasSubstr("MGE has no operator 'Sigmoidd' in domain 'ai.onnx'. Did you mean \"Sigmoid\"?"));
  EXPECT_THAT(o.out, HasSubstr("MGE cannot load this model: error[E0401]"));
  const json report = json::parse(Mge("inspect m.onnx --json").out);
  EXPECT_EQ(report["loads"], false);
  EXPECT_EQ(report["problem"]["id"], 401);
  ASSERT_EQ(report["unsupported"].size(), 2u);
  EXPECT_EQ(report["unsupported"][1]["count"], 2);
  EXPECT_EQ(report["unsupported"][1]["first_node"], "one");
  EXPECT_EQ(report["unsupported"][1]["backends"], json::array());
  EXPECT_EQ(report["inputs"][0]["shape"], json({"N", 2}));
}

TEST_F(Inspect, ShowsTheContentsOfAModel) {
  const std::string body = ob::GraphProto(
      {.nodes = {ob::NodeProto("Neg", {"x"}, {"b"})}, .outputs = {ob::ValueInfo("b", DType::kF32, {int64_t{2}})}});
  Write("m.onnx",
        ob::ModelProto({.graph = ob::GraphProto(
                            {.nodes = {ob::NodeProto(
                                 "If", {"p"}, {"y"},
                                 {.attributes = {ob::GraphAttr("then_branch", body), ob::GraphAttr("else_branch", body)}})},
                             .inputs = {ob::ValueInfo("p", DType::kBool, {}), ob::ValueInfo("x", DType::kF32, {int64_t{2}})},
                             .outputs = {ob::ValueInfo("y", DType::kF32, {int64_t{2}})}})}) +
            ob::TextField(ob::field::model::kProducerName, "") +
            ob::TextField(ob::field::model::kMetadata, ob::Entry("author", "me")));
  Outcome o = Mge("inspect m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("1 nodes and 2 in 2 bodies"));
  EXPECT_THAT(o.out, HasSubstr("2 Neg (2 in bodies)"));
  EXPECT_THAT(o.out, HasSubstr("metadata author = me"));
  EXPECT_THAT(o.out, Not(HasSubstr(", by ")));  // the model names no producer
  const json report = json::parse(Mge("inspect m.onnx --json").out);
  EXPECT_EQ(report["loads"], true);
  EXPECT_EQ(report["problem"], nullptr);
  EXPECT_EQ(report["file"]["bodies"], 2);
  EXPECT_EQ(report["file"]["metadata"]["author"], "me");
}

TEST_F(Inspect, ShowsAModelWhoseNodesAreWrong) {
  Model("m.onnx", {ob::NodeProto("Relu", {"nothing"}, {"y"})});
  EXPECT_EQ(Mge("run m.onnx").code, 3);
  Outcome o = Mge("inspect m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("MGE cannot load this model"));
}

TEST_F(Inspect, FailsIfTheFileIsNotAModel) {
  Write("m.onnx", "no model");
  EXPECT_EQ(Mge("inspect m.onnx").code, 3);
  EXPECT_EQ(Mge("inspect absent.onnx").code, 7);
}

}  // namespace
}  // namespace mge
