// SPDX-License-Identifier: Apache-2.0
// Nodes that break a rule of ONNX and are computed nevertheless, and the fix of an error that several layers give.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace mge {

// Returns how the node breaks the rules of ONNX, and how it is computed. Returns an empty text if it breaks none, as far as the
// types that the model declares tell.
inline std::string DeviationOf(const Graph& graph, const Node& node) {
  if (node.domain.empty() && node.op == "STFT") {  // some exporters leave out the last dimension of a real signal
    const TensorType& signal = graph.value(node.inputs[0]).type;
    if (signal.has_rank && signal.dims.size() == 2)
      return "the signal has the shape [batch, length]; it is read as [batch, length, 1]";
  }
  return "";
}

// The fix of an operand that has no result, which a reference evaluator or a kernel finds.
inline constexpr std::string_view kCheckOperands =
    "Check the data that the node reads. For a divisor of 0, an empty dimension or a count of nothing is the usual cause.";

}  // namespace mge
