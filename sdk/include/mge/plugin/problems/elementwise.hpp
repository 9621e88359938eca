// SPDX-License-Identifier: Apache-2.0
// Reads elementwise nodes: the function that a node computes, and its parameters. A backend maps functions, or their names, to
// its instructions.
#pragma once

#include <array>
#include <iterator>

#include "mge/plugin/elementwise.hpp"
#include "mge/plugin/graph.hpp"
#include "mge/plugin/row.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A function as a node uses it. a and b are kIsInf's flags for positive and negative infinity, and otherwise the factors, slopes
// and limits that OPERATORS.md calls alpha, then beta or gamma; for kShrink, lambd and bias.
struct Elementwise {
  ElementwiseForm form = ElementwiseForm::kUnary;
  ElementwiseFunction function = ElementwiseFunction::kAbs;
  float a = 0, b = 0;
};

namespace internal {
// Returns an attribute of type int or float.
inline float NumberOf(const Node& node, std::string_view name) {
  const mge_attr* a = node.attr(name);
  return !a ? 0 : a->type == MGE_ATTR_INT ? static_cast<float>(a->i) : static_cast<float>(a->f);
}
}  // namespace internal

// Reads a node. Returns false if its operator is not elementwise. The node's inputs may have any types, and may be absent where
// the operator allows it.
inline bool ReadElementwise(const Node& node, Elementwise* out) {
  if (!node.domain().empty()) return false;
  for (const ElementwiseOp& op : kElementwiseOps) {
    if (node.op() != op.name) continue;
    *out = {op.form, op.function, internal::NumberOf(node, op.a), internal::NumberOf(node, op.b)};
    using F = ElementwiseFunction;
    if (op.function == F::kGelu && node.Word("approximate") == "tanh") out->function = F::kGeluTanh;
    if (op.function == F::kMod && node.Int("fmod") != 0) out->function = F::kFmod;
    if (op.function == F::kShiftRight && node.Word("direction") == "LEFT") out->function = F::kShiftLeft;
    return true;
  }
  return false;
}

// Returns a kernel row for each elementwise operator. R has the functions Offer and Make that Row() needs.
template <typename R>
constexpr auto ElementwiseRows() {
  std::array<KernelRow, std::size(kElementwiseOps)> rows = {};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = Row<R>(kElementwiseOps[i].name);
  return rows;
}

}  // namespace MGE_HIDDEN
