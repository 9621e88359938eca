// SPDX-License-Identifier: Apache-2.0
// Divides nodes of very many operands. The arguments of a step grow with its operands, and the host limits them.
#include <algorithm>
#include <span>
#include <vector>

#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_wide_nodes {
namespace {

constexpr size_t kMaxOperands = 4096;

using Values = std::vector<ValueId>;

// Calls visit(part) for consecutive parts of at most kMaxOperands values.
template <typename Visit>
void ForEachPart(std::span<const ValueId> values, Visit visit) {
  while (!values.empty()) {
    const size_t count = std::min(values.size(), kMaxOperands);
    visit(values.first(count));
    values = values.subspan(count);
  }
}

Values ValuesOf(std::span<const ValueId> part) { return {part.begin(), part.end()}; }

// Joins parts, then the results.
void DivideConcat(Graph& graph, const Node& node) {
  NodeAdder nodes(graph, node);
  Values inputs = node.inputs;
  while (inputs.size() > kMaxOperands) {
    Values joined;
    ForEachPart(inputs, [&](auto part) { joined.push_back(nodes.Add("Concat", ValuesOf(part), node.attrs)); });
    inputs = std::move(joined);
  }
  nodes.AddTo({node.outputs[0]}, "Concat", std::move(inputs), node.attrs);
}

// Computes the first inputs, then the result with the next inputs, so that the order of the additions stays the same.
void DivideSum(Graph& graph, const Node& node) {
  NodeAdder nodes(graph, node);
  Values next;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    next.push_back(node.inputs[i]);
    if (next.size() == kMaxOperands && i + 1 < node.inputs.size()) next = {nodes.Add(node.op, std::move(next), node.attrs)};
  }
  nodes.AddTo({node.outputs[0]}, node.op, std::move(next), node.attrs);
}

// Adds the means of parts, each times its share of the inputs, in float32 at least. A sum of all inputs could overflow.
void DivideMean(Graph& graph, const Node& node) {
  NodeAdder nodes(graph, node);
  const DType type = graph.value(node.inputs[0]).type.dtype, wide = type == DType::kF64 ? type : DType::kF32;
  ValueId sum = kNone;
  ForEachPart(node.inputs, [&](auto part) {
    const double share = static_cast<double>(part.size()) / static_cast<double>(node.inputs.size());
    const ValueId mean = nodes.Cast(nodes.Add("Mean", ValuesOf(part)), type, wide);
    const ValueId term = nodes.Add("Mul", {mean, nodes.Number(wide, share)});
    sum = sum == kNone ? term : nodes.Add("Add", {sum, term});
  });
  if (type == wide) {
    nodes.AddTo({node.outputs[0]}, "Identity", {sum});
  } else {
    nodes.AddTo({node.outputs[0]}, "Cast", {sum}, CastTo(type));
  }
}

// Splits the input into few parts, then each part. Returns false if the sizes are not known yet.
bool DivideSplit(Graph& graph, const Node& node) {
  const TensorType& x = graph.value(node.inputs[0]).type;
  if (!x.has_rank) return false;
  const int64_t axis = node.attrs.Int("axis");
  std::vector<int64_t> sizes;
  for (ValueId v : node.outputs) {
    if (v == kNone) return false;
    const TensorType& y = graph.value(v).type;
    if (!y.has_rank || y.dims[static_cast<size_t>(axis)] < 0) return false;
    sizes.push_back(y.dims[static_cast<size_t>(axis)]);
  }
  NodeAdder nodes(graph, node);
  const Attributes attrs = IntAttribute("axis", axis);
  const size_t part = std::max((node.outputs.size() + kMaxOperands - 1) / kMaxOperands, kMaxOperands);
  std::vector<int64_t> sums;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i % part == 0) sums.push_back(0);
    sums.back() += sizes[i];
  }
  const Values parts = nodes.Add("Split", {node.inputs[0], nodes.Integers(sums)}, sums.size(), attrs);
  for (size_t k = 0; k < parts.size(); ++k) {
    const size_t begin = k * part, end = std::min(begin + part, sizes.size());
    const std::span<const int64_t> own = std::span<const int64_t>(sizes).subspan(begin, end - begin);
    nodes.AddTo(Values(node.outputs.begin() + static_cast<std::ptrdiff_t>(begin),
                       node.outputs.begin() + static_cast<std::ptrdiff_t>(end)),
                "Split", {parts[k], nodes.Integers(own)}, attrs);
  }
  return true;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  if (std::max(graph.node(id).inputs.size(), graph.node(id).outputs.size()) <= kMaxOperands) return false;
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (IsOp(node, "Concat")) {
    DivideConcat(graph, node);
  } else if (IsOp(node, "Sum") || IsOp(node, "Max") || IsOp(node, "Min")) {
    DivideSum(graph, node);
  } else if (IsOp(node, "Mean")) {
    DivideMean(graph, node);
  } else if (!IsOp(node, "Split") || !DivideSplit(graph, node)) {
    return false;
  }
  graph.RemoveNode(id);  // its outputs stay alive: they have new producers
  return true;
}

}  // namespace

MGE_REWRITE(wide_nodes) = {.name = "wide_nodes",
                           .doc = "Divides Concat, Split, Sum, Mean, Max and Min nodes of more than 4096 operands.",
                           .apply = Apply};

}  // namespace mge::rewrite_wide_nodes
