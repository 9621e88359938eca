// SPDX-License-Identifier: Apache-2.0
// Runs an operator twice: with inputs known before the run, and with unknown inputs.
#pragma once

#include "tests/support/ops_test_util.h"

namespace mge {

// Calls RunOp. Checks also that shape rule and evaluator agree, both for known and for unknown inputs.
inline std::string Both(std::string_view op, const std::vector<std::string>& inputs, std::string_view rest = "",
                        int outputs = 1, int wanted = 0) {
  std::string known = RunOp(op, inputs, rest, outputs, wanted);
  std::string text, call, outs;
  std::vector<HostValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i) call += ", ";
    if (inputs[i] == "_") {
      call += "_";
      continue;
    }
    auto constant = ParseGraphText("const c = " + inputs[i] + "\n");
    if (!constant.ok()) return FormatError(constant.status());
    HostValue value;
    value.tensor = constant->value(0).constant;
    values.push_back(value);
    text += fmt::format("input i{}\n", i);
    call += fmt::format("i{}", i);
  }
  for (int i = 0; i < outputs; ++i) outs += fmt::format("{}y{}", i ? ", " : "", i);
  text += fmt::format("{} = {}({}) {}\noutput {}\n", outs, op, call, rest, outs);
  auto run = [&]() -> absl::StatusOr<std::string> {
    MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
    MGE_RETURN_IF_ERROR(InferTypes(graph));
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, Interpret(graph, values));
    return TensorToText(results[wanted].tensor);
  };
  absl::StatusOr<std::string> unknown = run();
  std::string second = unknown.ok() ? *unknown : "error: " + ErrorTitle(unknown.status());
  return second == known ? known : fmt::format("known: {}; unknown: {}", known, second);
}

}  // namespace mge
