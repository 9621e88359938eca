// SPDX-License-Identifier: Apache-2.0
// Runs single nodes of com.microsoft and compares their results with those of ONNX Runtime.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/ops_test_util.h"

namespace mge {

// Input k is a constant in the notation of graph text. Without values, its elements are those of Filled().
struct MicrosoftNode {
  std::string name, op;
  std::vector<std::string> inputs;
  std::string attributes;
  int outputs, wanted;
  std::vector<double> expected;  // the elements of output `wanted`
};

// Returns a tensor with small multiples of 1/4, or with integers from the whole range.
inline Tensor Filled(DType dtype, const Shape& shape, int64_t k) {
  Tensor out = *Tensor::Create(dtype, shape);
  DispatchNumeric(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t i = 0;
    for (T& element : out.MutableData<T>()) {
      if constexpr (std::is_floating_point_v<T>) element = static_cast<T>((i * 7 + k * 5) % 11 - 5) / 4;
      if constexpr (std::is_integral_v<T>) element = static_cast<T>((i * 37 + k * 11) % 256);
      ++i;
    }
  });
  return out;
}

inline Tensor InputOf(const std::string& text, int64_t k) {
  const bool has_values = text.find('<') != std::string::npos;
  auto graph = ParseGraphText(has_values ? "const c = " + text + "\n" : "input c : " + text + "\n");
  if (!graph.ok()) return {};
  const Value& v = graph->value(0);
  return has_values ? v.constant : Filled(v.type.dtype, v.type.dims, k);
}

// Runs the node. Its inputs are constants, or inputs whose types are unknown before the run.
inline absl::StatusOr<Tensor> RunNode(const MicrosoftNode& row, bool known) {
  std::string text, call, outs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const bool absent = row.inputs[i] == "_";
    if (!absent) text += fmt::format("input i{}\n", i);
    call += fmt::format("{}{}", i ? ", " : "", absent ? "_" : fmt::format("i{}", i));
  }
  for (int i = 0; i < row.outputs; ++i) {  // outputs after the third are rare, and others may then be absent
    const bool absent = row.outputs > 3 && i > 0 && i != row.wanted;
    outs += fmt::format("{}{}", i ? ", " : "", absent ? "_" : fmt::format("y{}", i));
  }
  text += fmt::format("{} = {}({}) {}\noutput y{}\n", outs, row.op, call, row.attributes, row.wanted);
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  std::vector<HostValue> values;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    if (row.inputs[i] == "_") continue;
    HostValue value;
    value.tensor = InputOf(row.inputs[i], static_cast<int64_t>(i));
    Value& v = graph.value(graph.inputs()[values.size()]);
    if (known) v.type = {.dtype = value.tensor.dtype(), .has_rank = true, .dims = value.tensor.shape()};
    values.push_back(std::move(value));
  }
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, Interpret(graph, values));
  return results[0].tensor;
}

inline std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> out;
  DispatchNumeric(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T element : tensor.Data<T>()) out.push_back(static_cast<double>(element));
  });
  return out;
}

// Checks the results with types that are known before the run, and with types that are not.
inline void CheckNode(const MicrosoftNode& row) {
  for (bool known : {true, false}) {
    SCOPED_TRACE(known ? "types known" : "types unknown");
    absl::StatusOr<Tensor> y = RunNode(row, known);
    ASSERT_TRUE(y.ok()) << FormatError(y.status());
    const std::vector<double> got = Numbers(*y);
    const bool rounded = ElementBytes(y->dtype()) == 1;  // an 8-bit result may be the neighbour
    ASSERT_EQ(got.size(), row.expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], row.expected[i], rounded ? 1 : 2e-5 * std::max(1.0, std::abs(row.expected[i]))) << "element " << i;
    }
  }
}

}  // namespace mge
