// SPDX-License-Identifier: Apache-2.0
// Runs graphs in text form through binding, type inference and the interpreter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/interpreter.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {

// Binds, infers and runs a graph without inputs. Returns its outputs.
inline absl::StatusOr<std::vector<HostValue>> RunText(std::string_view text) {
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  return Interpret(graph, {});
}

inline std::string TensorToText(const Tensor& tensor) {
  Graph graph;
  graph.outputs() = {graph.AddConstant("c", tensor)};
  std::string text = GraphText(graph);
  return text.substr(10, text.find('\n') - 10);
}

// Runs one node, e.g. Op(float32[2]<1, 2>, int64[]<3>) {a=1}. Returns output 0, or "error: <title>".
// Inputs and result are constants in the notation of graph text: "float32[2]<1.0, 2.0>". The input "_" is absent.
inline std::string RunOp(std::string_view op, const std::vector<std::string>& inputs, std::string_view rest = "",
                         int outputs = 1, int wanted = 0) {
  std::string text, call;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i) call += ", ";
    if (inputs[i] == "_") {
      call += "_";
      continue;
    }
    text += fmt::format("const i{} = {}\n", i, inputs[i]);
    call += fmt::format("i{}", i);
  }
  std::string outs;
  for (int i = 0; i < outputs; ++i) outs += fmt::format("{}y{}", i ? ", " : "", i);
  text += fmt::format("{} = {}({}) {}\noutput {}\n", outs, op, call, rest, outs);
  auto results = RunText(text);
  if (!results.ok()) return "error: " + ErrorTitle(results.status());
  return TensorToText((*results)[wanted].tensor);
}

}  // namespace mge
