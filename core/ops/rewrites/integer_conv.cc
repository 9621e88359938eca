// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_integer_conv {
namespace {

bool MayApply(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return IsOp(node, "Conv") && Producer(graph, node.inputs[0], "DequantizeLinear") &&
         Producer(graph, node.inputs[1], "DequantizeLinear");
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  if (!MayApply(graph, id)) return false;
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  const std::optional<Quantization> x = FindDequantized(graph, node.inputs[0]), w = FindDequantized(graph, node.inputs[1]);
  if (!x || !w || !x->Is8Bit() || !w->Is8Bit() || !HasOneElement(graph, x->scale) || !IsConstant(graph, w->data))
    return false;
  if (IsQuantizedNext(graph, node.outputs[0])) return false;
  const int64_t rank = graph.value(w->data).constant.rank();
  if (rank < 3) return false;
  const int64_t channels = graph.value(w->data).constant.shape()[0];
  if (!HasOneElement(graph, w->scale) && (w->axis != 0 || graph.value(w->scale).constant.shape() != Shape{channels})) {
    return false;
  }
  ValueId bias = kNone;
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    const std::vector<double> numbers = ConstantFloats(graph, node.inputs[2]);
    if (static_cast<int64_t>(numbers.size()) != channels) return false;
    Shape shape(static_cast<size_t>(rank), 1);
    shape[1] = channels;
    MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(DType::kF32, std::move(shape), allocator));
    for (int64_t c = 0; c < channels; ++c)
      tensor.MutableData<float>()[c] = static_cast<float>(numbers[static_cast<size_t>(c)]);
    bias = AddFreshConstant(graph, graph.value(node.inputs[2]).name, std::move(tensor));
  }
  const auto x_scale = static_cast<float>(ScaleAt(graph, *x, 0));
  MGE_ASSIGN_OR_RETURN(Tensor scale, ScaledBy(graph, *w, x_scale, rank - 2, allocator));
  MGE_ASSIGN_OR_RETURN(ValueId x_zero, ZeroOf(graph, *x, allocator));
  MGE_ASSIGN_OR_RETURN(ValueId w_zero, ZeroOf(graph, *w, allocator));
  const ValueId factors = AddFreshConstant(graph, graph.value(node.outputs[0]).name + ".scale", std::move(scale));
  Attributes to;
  to.Set("to", int64_t{1});
  const ValueId sums = AddStep(graph, node, "ConvInteger", {x->data, w->data, x_zero, w_zero}, node.attrs);
  const ValueId floats = AddStep(graph, node, "Cast", {sums}, std::move(to));
  if (bias == kNone) {
    Replace(graph, id, "Mul", {floats, factors});
    return true;
  }
  const ValueId scaled = AddStep(graph, node, "Mul", {floats, factors});
  Replace(graph, id, "Add", {scaled, bias});
  return true;
}

}  // namespace

MGE_REWRITE(integer_conv) = {
    .name = "integer_conv",
    .doc = "Replaces a Conv of two DequantizeLinear by a ConvInteger and a scale.",
    .apply = Apply,
    .needs = "ConvInteger",
    .may_apply = MayApply,
    .keeps = "DequantizeLinear",
};

}  // namespace mge::rewrite_integer_conv
