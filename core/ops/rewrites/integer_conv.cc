// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/node_adder.h"
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_integer_conv {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "Conv")) return false;
  const std::optional<ConvOperands> found = FindConvOperands(graph, node);
  if (!found || IsQuantizedNext(graph, node.outputs[0])) return false;
  const auto& [x, w, channels, largest_sum] = *found;
  const int64_t rank = graph.value(w.data).constant.rank();
  MGE_ASSIGN_OR_RETURN(Tensor scale, ScaledBy(graph, w, static_cast<float>(ScaleAt(graph, x, 0)), rank - 2, allocator));
  ValueId bias = kNone;
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    const std::vector<double> numbers = ConstantFloats(graph, node.inputs[2]);
    if (static_cast<int64_t>(numbers.size()) != channels) return false;
    Shape shape(static_cast<size_t>(rank), 1);
    shape[1] = channels;
    MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(DType::kF32, std::move(shape), allocator));
    std::ranges::transform(numbers, tensor.MutableData<float>().begin(), [](double n) { return static_cast<float>(n); });
    bias = AddFreshConstant(graph, graph.value(node.inputs[2]).name, std::move(tensor));
  }
  const ValueId x_zero = ZeroOf(graph, x), w_zero = ZeroOf(graph, w);
  const ValueId factors = AddFreshConstant(graph, graph.value(node.outputs[0]).name + ".scale", std::move(scale));
  NodeAdder nodes(graph, node);
  const ValueId sums = nodes.Add("ConvInteger", {x.data, w.data, x_zero, w_zero}, node.attrs);
  const ValueId floats = nodes.Add("Cast", {sums}, CastTo(DType::kF32));
  if (bias == kNone) {
    Replace(graph, id, "Mul", {floats, factors});
    return true;
  }
  const ValueId scaled = nodes.Add("Mul", {floats, factors});
  Replace(graph, id, "Add", {scaled, bias});
  return true;
}

}  // namespace

MGE_REWRITE(integer_conv) = {
    .name = "integer_conv",
    .doc = "Replaces a Conv of two DequantizeLinear by a ConvInteger and a scale.",
    .apply = Apply,
    .needs = "ConvInteger",
    .contains = "DequantizeLinear",
};

}  // namespace mge::rewrite_integer_conv
