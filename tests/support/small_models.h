// SPDX-License-Identifier: Apache-2.0
// A few small models that touch every part of the reader: seeds for mutations and for fuzzing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/onnx_builder.h"

namespace mge::onnx_builder {

inline std::vector<std::pair<std::string, Proto>> SmallModels() {
  const Proto x = ValueInfo("x", DType::kF32, {2}), y = ValueInfo("y", DType::kF32, {2});
  Proto weights =
      Model({.graph = Graph({.nodes = {Node("Add", {"x", "w"}, {"t"}), Node("Relu", {"t"}, {"y"})},
                             .inputs = {ValueInfo("x", DType::kF32, {"N", 2})},
                             .outputs = {ValueInfo("y", DType::kF32, {"N", 2})},
                             .initializers = {FloatTensor("w", {2}, {1, -2})}})});
  Proto body = Graph(
      {.nodes = {Node("Add", {"x", "x"}, {"b"})}, .outputs = {ValueInfo("b", DType::kF32, {2})}});
  Proto other =
      Graph({.nodes = {Node("Relu", {"x"}, {"c"})}, .outputs = {ValueInfo("c", DType::kF32, {2})}});
  Proto branches =
      Model({.graph = Graph({.nodes = {Node("If", {"p"}, {"y"},
                                            {.attributes = {GraphAttr("then_branch", body),
                                                            GraphAttr("else_branch", other)}})},
                             .inputs = {ValueInfo("p", DType::kBool, {}), x},
                             .outputs = {y}})});
  Proto step =
      Graph({.nodes = {Node("Identity", {"more"}, {"again"}), Node("Add", {"state", "x"}, {"next"}),
                       Node("Relu", {"next"}, {"scan"})},
             .inputs = {ValueInfo("i", DType::kI64, {}), ValueInfo("more", DType::kBool, {}),
                        ValueInfo("state", DType::kF32, {2})},
             .outputs = {ValueInfo("again", DType::kBool, {}), ValueInfo("next", DType::kF32, {2}),
                         ValueInfo("scan", DType::kF32, {2})}});
  Proto loop = Model({.graph = Graph({.nodes = {Node("Loop", {"n", "", "x"}, {"y", "all"},
                                                     {.attributes = {GraphAttr("body", step)}})},
                                      .inputs = {x},
                                      .outputs = {y, ValueInfo("all", DType::kF32, {"k", 2})},
                                      .initializers = {TensorHead("n", DType::kI64, {}) +
                                                       PackedInts(field::tensor::kInt64s, {3})}})});
  Proto function = Model(
      {.graph = Graph({.nodes = {Node("Twice", {"x"}, {"y"},
                                      {.attributes = {IntAttr("axis", 0)}, .domain = "my"})},
                       .inputs = {x},
                       .outputs = {ValueInfo("y", DType::kF32, {4})}}),
       .opsets = {{"", 13}, {"my", 1}},
       .functions = {Function(
           {.domain = "my",
            .name = "Twice",
            .inputs = {"a"},
            .outputs = {"b"},
            .attributes = {"axis"},
            .nodes = {Node(
                "Concat", {"a", "a"}, {"b"},
                {.attributes = {ReferenceAttr("axis", onnx::AttributeKind::kInt, "axis")}})}})}});
  Proto typed = Model({.graph = Graph({.nodes = {Node("Reshape", {"x", "s"}, {"y"})},
                                       .inputs = {x},
                                       .outputs = {ValueInfo("y", DType::kF32, {1, 2})},
                                       .initializers = {IntTensor("s", {1, 2})}})});
  Proto conv =
      Model({.graph = Graph(
                 {.nodes = {Node("Conv", {"i", "k"}, {"c"},
                                 {.attributes = {IntsAttr("pads", {1, 1, 1, 1}),
                                                 IntsAttr("strides", {1, 1})}}),
                            Node("MaxPool", {"c"}, {"p"},
                                 {.attributes = {IntsAttr("kernel_shape", {2, 2})}}),
                            Node("Transpose", {"p"}, {"o"},
                                 {.attributes = {IntsAttr("perm", {0, 2, 3, 1})}})},
                  .inputs = {ValueInfo("i", DType::kF32, {1, 1, 4, 4})},
                  .outputs = {ValueInfo("o", DType::kF32, {1, 3, 3, 1})},
                  .initializers = {FloatTensor("k", {1, 1, 3, 3}, std::vector<float>(9, 1))}})});
  return {{"relu", ReluModel()},  {"weights", weights}, {"if", branches}, {"loop", loop},
          {"function", function}, {"reshape", typed},   {"conv", conv}};
}

}  // namespace mge::onnx_builder
