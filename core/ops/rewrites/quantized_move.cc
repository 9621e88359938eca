// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/node_adder.h"
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_quantized_move {
namespace {

// Operators that select or move elements of input 0.
constexpr std::string_view kMoves[] = {"DepthToSpace", "Expand",       "Flatten", "Gather",    "MaxPool",  "Reshape",
                                       "Slice",        "SpaceToDepth", "Squeeze", "Transpose", "Unsqueeze"};

// Quantizes the operands of a Concat instead of its result. An operand that has the result's quantization needs no node.
bool QuantizeBeforeConcat(Graph& graph, NodeId id, const Node& concat, const Quantization& y) {
  std::vector<ValueId> integers;
  for (ValueId input : concat.inputs) {
    const std::optional<Quantization> x = FindDequantized(graph, input);
    if (!x || !x->Is8Bit()) return false;
    integers.push_back(SameQuantization(graph, *x, y) ? x->data : kNone);
  }
  std::vector<ValueId> steps = {kNone, y.scale};
  if (y.zero != kNone) steps.push_back(y.zero);
  for (size_t i = 0; i < integers.size(); ++i) {
    steps[0] = concat.inputs[i];
    if (integers[i] == kNone) integers[i] = NodeAdder(graph, concat).Add("QuantizeLinear", steps, graph.node(id).attrs);
  }
  const NodeId whole = Replace(graph, id, "Concat", std::move(integers));
  graph.node(whole).attrs = concat.attrs;
  graph.node(whole).name = concat.name;
  graph.node(whole).device = concat.device;
  return true;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const std::optional<Quantization> y = FindQuantized(graph, graph.node(id));
  if (!y || !y->Is8Bit()) return false;
  const ValueId moved = graph.node(id).inputs[0];
  if (std::optional<Quantization> x = FindDequantized(graph, moved)) {
    const bool given_out = graph.OutputUses(y->data) > 0;
    if (given_out || !SameQuantization(graph, *x, *y)) return false;
    graph.ReplaceUses(y->data, x->data);
    graph.RemoveNode(id);
    return true;
  }
  const NodeId producer = graph.value(moved).producer;
  if (producer == kNone) return false;
  const Node move = graph.node(producer);  // a copy: adding nodes moves it
  const bool served = move.outputs.size() == 1 && ServeOnly(graph, std::vector<ValueId>{moved}, id);
  if (served && IsOp(move, "Concat")) return QuantizeBeforeConcat(graph, id, move, *y);
  if (std::none_of(std::begin(kMoves), std::end(kMoves), [&](std::string_view op) { return IsOp(move, op); })) return false;
  if (!served) return false;
  const std::optional<Quantization> x = FindDequantized(graph, move.inputs[0]);
  if (!x || !SameQuantization(graph, *x, *y)) return false;
  std::vector<ValueId> inputs = move.inputs;
  inputs[0] = x->data;
  Node& integers = graph.node(Replace(graph, id, move.op, std::move(inputs)));
  integers.attrs = move.attrs;
  integers.name = move.name;
  integers.device = move.device;
  return true;
}

}  // namespace

MGE_REWRITE(quantized_move) = {
    .name = "quantized_move",
    .doc = "Moves and joins integers instead of floats between DequantizeLinear and QuantizeLinear.",
    .apply = Apply,
    .needs = "QLinearConv",  // a sign that the devices compute quantized models with integers
    .contains = "DequantizeLinear",
};

}  // namespace mge::rewrite_quantized_move
