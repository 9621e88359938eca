// SPDX-License-Identifier: Apache-2.0
// A few small models that together use every part of the reader: seeds for mutations and for fuzzing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/onnx_builder.h"

namespace mge::onnx_builder {

inline std::vector<std::pair<std::string, Proto>> SmallModels() {
  const Proto x = ValueInfo("x", DType::kF32, {2}), y = ValueInfo("y", DType::kF32, {2});
  Proto weights =
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"t"}), NodeProto("Relu", {"t"}, {"y"})},
                                       .inputs = {ValueInfo("x", DType::kF32, {"N", 2})},
                                       .outputs = {ValueInfo("y", DType::kF32, {"N", 2})},
                                       .initializers = {FloatTensor("w", {2}, {1, -2})}})});
  Proto body = GraphProto({.nodes = {NodeProto("Add", {"x", "x"}, {"b"})}, .outputs = {ValueInfo("b", DType::kF32, {2})}});
  Proto other = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"c"})}, .outputs = {ValueInfo("c", DType::kF32, {2})}});
  Proto branches = ModelProto(
      {.graph = GraphProto(
           {.nodes = {NodeProto("If", {"p"}, {"y"},
                                {.attributes = {GraphAttr("then_branch", body), GraphAttr("else_branch", other)}})},
            .inputs = {ValueInfo("p", DType::kBool, {}), x},
            .outputs = {y}})});
  Proto step = GraphProto({.nodes = {NodeProto("Add", {"state", "x"}, {"next"}), NodeProto("Relu", {"next"}, {"scan"})},
                           .inputs = {ValueInfo("i", DType::kI64, {}), ValueInfo("more", DType::kBool, {}),
                                      ValueInfo("state", DType::kF32, {2})},
                           .outputs = {ValueInfo("more", DType::kBool, {}), ValueInfo("next", DType::kF32, {2}),
                                       ValueInfo("scan", DType::kF32, {2})}});
  Proto loop =
      ModelProto({.graph = GraphProto(
                      {.nodes = {NodeProto("Loop", {"n", "", "x"}, {"y", "all"}, {.attributes = {GraphAttr("body", step)}})},
                       .inputs = {x},
                       .outputs = {y, ValueInfo("all", DType::kF32, {"k", 2})},
                       .initializers = {TensorHead("n", DType::kI64, {}) + PackedIntField(field::tensor::kInt64s, {3})}})});
  Proto function =
      ModelProto({.graph = GraphProto(
                      {.nodes = {NodeProto("Twice", {"x"}, {"y"}, {.attributes = {IntAttr("axis", 0)}, .domain = "my"})},
                       .inputs = {x},
                       .outputs = {ValueInfo("y", DType::kF32, {4})}}),
                  .opsets = {{"", 13}, {"my", 1}},
                  .functions = {FunctionProto(
                      {.domain = "my",
                       .name = "Twice",
                       .inputs = {"a"},
                       .outputs = {"b"},
                       .attributes = {"axis"},
                       .nodes = {NodeProto("Concat", {"a", "a"}, {"b"},
                                           {.attributes = {ReferenceAttr("axis", onnx::AttributeKind::kInt, "axis")}})}})}});
  Proto typed = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Reshape", {"x", "s"}, {"y"})},
                                                 .inputs = {x},
                                                 .outputs = {ValueInfo("y", DType::kF32, {1, 2})},
                                                 .initializers = {IntTensor("s", {1, 2})}})});
  Proto conv =
      ModelProto({.graph = GraphProto(
                      {.nodes = {NodeProto("Conv", {"i", "k"}, {"c"},
                                           {.attributes = {IntsAttr("pads", {1, 1, 1, 1}), IntsAttr("strides", {1, 1})}}),
                                 NodeProto("MaxPool", {"c"}, {"p"}, {.attributes = {IntsAttr("kernel_shape", {2, 2})}}),
                                 NodeProto("Transpose", {"p"}, {"o"}, {.attributes = {IntsAttr("perm", {0, 2, 3, 1})}})},
                       .inputs = {ValueInfo("i", DType::kF32, {1, 1, 4, 4})},
                       .outputs = {ValueInfo("o", DType::kF32, {1, 3, 3, 1})},
                       .initializers = {FloatTensor("k", {1, 1, 3, 3}, std::vector<float>(9, 1))}})});
  std::vector<Proto> readers;
  Names joined;
  for (int i = 0; i < 10; ++i) {
    joined.push_back("r" + std::to_string(i));
    readers.push_back(NodeProto(i % 2 ? "Relu" : "Neg", {"x"}, {joined.back()}));
  }
  readers.push_back(NodeProto("Sum", joined, {"sum"}));
  readers.push_back(NodeProto("Concat", joined, {"all"}, {.attributes = {IntAttr("axis", 0)}}));
  Proto wide = ModelProto(
      {.graph = GraphProto({.nodes = readers,
                            .inputs = {x},
                            .outputs = {ValueInfo("sum", DType::kF32, {2}), ValueInfo("all", DType::kF32, {20})}})});
  return {{"relu", ReluModel()},  {"weights", weights}, {"if", branches}, {"loop", loop},
          {"function", function}, {"reshape", typed},   {"conv", conv},   {"wide", wide}};
}

}  // namespace mge::onnx_builder
