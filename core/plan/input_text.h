// SPDX-License-Identifier: Apache-2.0
// Inputs and their sizes as text. A language model has dozens of inputs, so only the first ones are named.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "core/graph/graph.h"

namespace mge {

// Returns text such as "ids[1,8], past[1,7,64] and 22 more inputs". sizes(i) is the text behind the name of input i; inputs for
// which it is empty are left out.
inline std::string InputText(const Graph& graph, absl::FunctionRef<std::string(size_t i)> sizes) {
  constexpr size_t kShown = 4;
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string of_input = sizes(i);
    if (of_input.empty() || ++count > kShown) continue;
    text += (count > 1 ? ", " : "") + graph.value(graph.inputs()[i]).name + of_input;
  }
  return count > kShown ? text + " and " + std::to_string(count - kShown) + " more inputs" : text;
}

}  // namespace mge
