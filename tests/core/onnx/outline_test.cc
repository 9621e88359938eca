// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/outline.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/core/onnx/onnx_test_util.h"
#include "tests/support/small_models.h"

namespace mge::onnx {
namespace {

const Proto kX = ValueInfo("x", DType::kF32, {2}), kY = ValueInfo("y", DType::kF32, {2});

absl::StatusOr<Outline> OutlineOf(const Proto& bytes) {
  const std::string path = ::testing::TempDir() + "/mge_outline_" + std::to_string(getpid()) + ".onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  absl::StatusOr<Outline> outline = ReadOutline(path);
  std::filesystem::remove(path);
  return outline;
}

std::vector<std::string> Uses(const Outline& outline) {
  std::vector<std::string> uses;
  for (const OperatorUse& use : outline.operators) {
    uses.push_back(use.domain + ":" + use.name + " version " + std::to_string(use.version) + " count " +
                   std::to_string(use.count) + " in bodies " + std::to_string(use.in_bodies) + " first " + use.first_node +
                   (use.is_function ? " function" : ""));
  }
  return uses;
}

TEST(Outline, CountsUnknownOperators) {
  const Proto body = GraphProto(
      {.nodes = {NodeProto("Secret", {"x"}, {"b"}, {.domain = "acme"})}, .outputs = {ValueInfo("b", DType::kF32, {2})}});
  auto outline = OutlineOf(ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("Secret", {"x"}, {"s"}, {.name = "n1", .domain = "acme"}),
                                      NodeProto("F", {"s"}, {"f"}, {.domain = "my"}), NodeProto("Rellu", {"f"}, {"r"}),
                                      NodeProto("If", {"c"}, {"y"}, {.attributes = {GraphAttr("then_branch", body)}})},
                            .inputs = {kX, ValueInfo("c", DType::kBool, {})},
                            .outputs = {kY},
                            .initializers = {FloatTensor("w", {3}, {1, 2, 3})}}),
       .opsets = {{"", 13}, {"my", 2}},
       .functions = {FunctionProto({"my", "F", {"a"}, {"b"}, {}, {NodeProto("Abs", {"a"}, {"b"})}})}}));
  ASSERT_TRUE(outline.ok()) << FormatError(outline.status());
  EXPECT_THAT(Uses(*outline), ::testing::ElementsAre(":Abs version 13 count 1 in bodies 0 first b",  //
                                                     ":If version 13 count 1 in bodies 0 first y",
                                                     ":Rellu version 13 count 1 in bodies 0 first r",
                                                     "acme:Secret version 0 count 2 in bodies 1 first n1",
                                                     "my:F version 2 count 1 in bodies 0 first f function"));
  EXPECT_EQ(outline->nodes.size(), 4u);
  EXPECT_EQ(outline->body_count, 1);
  EXPECT_EQ(outline->body_nodes, 1);
  EXPECT_EQ(outline->function_count, 1);
  EXPECT_EQ(outline->weight_count, 1);
  EXPECT_EQ(outline->weight_bytes, 12);
  EXPECT_THAT(outline->notes, ::testing::ElementsAre());
}

TEST(Outline, WeightsListedAsInputsAreNotInputs) {
  auto outline = OutlineOf(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"y"})},
                                                            .inputs = {kX, ValueInfo("w", DType::kF32, {2})},
                                                            .outputs = {kY},
                                                            .initializers = {FloatTensor("w", {2}, {1, 2})}})}));
  ASSERT_TRUE(outline.ok()) << FormatError(outline.status());
  ASSERT_EQ(outline->info.inputs.size(), 1u);
  EXPECT_EQ(outline->info.inputs[0].name, "x");
  ASSERT_EQ(outline->info.outputs.size(), 1u);
}

TEST(Outline, RefusesFilesThatAreNotAModelAndBodiesNestedTooDeep) {
  ExpectError(OutlineOf("no model").status(), errors::kNotOnnx, "");
  Proto graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"r"})}});
  for (int i = 0; i < 200; ++i) {
    graph = GraphProto({.nodes = {NodeProto("If", {"c"}, {"y"}, {.attributes = {GraphAttr("then_branch", graph)}})}});
  }
  ExpectError(OutlineOf(ModelProto({.graph = graph})).status(), errors::kLimit, "deeper than 100 levels");
}

TEST(Outline, TruncatedFilesAreErrorsOrOutlines) {
  for (const auto& [name, model] : SmallModels()) {
    for (size_t size = 0; size < model.size(); size += 7) {
      auto outline = OutlineOf(model.substr(0, size));
      EXPECT_TRUE(outline.ok() || ErrorId(outline.status()) != 0) << name << " cut to " << size;
    }
  }
}

}  // namespace
}  // namespace mge::onnx
