// SPDX-License-Identifier: Apache-2.0
// Questions of many kernels about a problem: whether they can compute it at all, and the integers of an operand.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Returns whether the node is from an old operator set in which it has another meaning. No kernel computes it.
inline bool HasOwnMeaning(const Node& node) {
  for (uint64_t i = 0; i < node.raw()->attr_count; ++i) {
    if (View(node.raw()->attrs[i]->name).starts_with('_')) return true;
  }
  return false;
}

// Returns the reason why a usual kernel cannot compute the problem, or an empty text. `groups`: the kernel computes groups of
// nodes. `adds`: it can add to its outputs.
inline std::string_view WhyNotUsual(const Problem& p, bool groups, bool adds) {
  if (!groups && p.node_count() != 1) return "computes one node, not a group";
  for (int i = 0; i < p.node_count(); ++i) {
    if (HasOwnMeaning(p.node(i))) return "the node is from an old operator set in which it has another meaning";
  }
  if (!p.is_static()) return "a shape is not known";
  for (int i = 0; i < p.output_count(); ++i) {
    if (p.adds(i) && !adds) return "cannot add to its output";
  }
  return {};
}

// Reads the integers of a constant operand (int32 or int64). Returns false if the operand is absent or not constant.
inline bool ConstantInts(const Node& node, int input, std::vector<int64_t>& out) {
  if (!node.has_input(input)) return false;
  const Value v = node.input(input);
  out.clear();
  if (v.elements() == 0) return true;
  if (!v.is_constant()) return false;
  if (v.dtype() == MGE_DTYPE_I64) {
    out.assign(v.data<int64_t>().begin(), v.data<int64_t>().end());
  } else if (v.dtype() == MGE_DTYPE_I32) {
    out.assign(v.data<int32_t>().begin(), v.data<int32_t>().end());
  } else {
    return false;
  }
  return true;
}

// Reads a list of axes of `rank` dimensions from a constant operand; if it is absent, all axes. Fails if it is not constant or
// an axis is out of range.
inline Result ReadAxes(const Node& node, int input, int rank, std::vector<int64_t>* axes) {
  if (!node.has_input(input)) {
    axes->clear();
    for (int d = 0; d < rank; ++d) axes->push_back(d);
    return {};
  }
  if (!ConstantInts(node, input, *axes)) return {MGE_UNIMPLEMENTED, "the axes are not constant"};
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return {MGE_UNIMPLEMENTED, "an axis is outside of the rank"};
  }
  return {};
}

}  // namespace MGE_HIDDEN
