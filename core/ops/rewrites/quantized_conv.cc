// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_quantized_conv {
namespace {

// Returns the bias as integers with the scale of the sums, which is x_scale * w_scale. Returns kNone if a number does not fit.
absl::StatusOr<ValueId> BiasOf(Graph& graph, ValueId bias, const Quantization& x, const Quantization& w, int64_t channels,
                               HostAllocator& allocator) {
  const std::vector<double> numbers = ConstantFloats(graph, bias);
  if (static_cast<int64_t>(numbers.size()) != channels) return kNone;
  MGE_ASSIGN_OR_RETURN(Tensor sums, Tensor::Create(DType::kI32, {channels}, allocator));
  for (int64_t c = 0; c < channels; ++c) {
    const double number = std::nearbyint(numbers[static_cast<size_t>(c)] / (ScaleAt(graph, x, 0) * ScaleAt(graph, w, c)));
    if (!(std::abs(number) < 2147483648.0)) return kNone;
    sums.MutableData<int32_t>()[c] = static_cast<int32_t>(number);
  }
  return AddFreshConstant(graph, graph.value(bias).name, std::move(sums));
}

bool MayApply(const Graph& graph, NodeId id) { return IsOp(graph.node(id), "QuantizeLinear"); }

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const std::optional<Quantization> y = FindQuantized(graph, graph.node(id));
  if (!y || !y->Is8Bit()) return false;
  const ValueId last = graph.node(id).inputs[0], result = BeforeClip(graph, last, *y);
  const Node* found = Producer(graph, result, "Conv");
  if (!found || !ServesOnlyThrough(graph, result, last, id)) return false;
  const Node conv = *found;  // a copy: adding nodes moves it
  const std::optional<Quantization> x = FindDequantized(graph, conv.inputs[0]), w = FindDequantized(graph, conv.inputs[1]);
  if (!x || !w || !x->Is8Bit() || !w->Is8Bit() || !HasOneElement(graph, x->scale) || !IsConstant(graph, w->data))
    return false;
  const Tensor& filter = graph.value(w->data).constant;
  const int64_t channels = filter.rank() > 0 ? filter.shape()[0] : 0;
  if (!HasOneElement(graph, w->scale) && (w->axis != 0 || graph.value(w->scale).constant.shape() != Shape{channels})) {
    return false;
  }
  ValueId bias = kNone;
  if (conv.inputs.size() > 2 && conv.inputs[2] != kNone) {
    MGE_ASSIGN_OR_RETURN(bias, BiasOf(graph, conv.inputs[2], *x, *w, channels, allocator));
    if (bias == kNone) return false;
  }
  MGE_ASSIGN_OR_RETURN(ValueId x_zero, ZeroOf(graph, *x, allocator));
  MGE_ASSIGN_OR_RETURN(ValueId w_zero, ZeroOf(graph, *w, allocator));
  MGE_ASSIGN_OR_RETURN(ValueId y_zero, ZeroOf(graph, *y, allocator));
  std::vector<ValueId> inputs = {x->data, x->scale, x_zero, w->data, w->scale, w_zero, y->scale, y_zero};
  if (bias != kNone) inputs.push_back(bias);
  Node& quantized = graph.node(Replace(graph, id, "QLinearConv", std::move(inputs)));
  quantized.attrs = conv.attrs;
  quantized.name = conv.name;
  quantized.device = conv.device;
  return true;
}

}  // namespace

MGE_REWRITE(quantized_conv) = {
    .name = "quantized_conv",
    .doc = "Replaces a Conv between DequantizeLinear and QuantizeLinear by a QLinearConv.",
    .apply = Apply,
    .needs = "QLinearConv",
    .may_apply = MayApply,
    .keeps = "DequantizeLinear",
};

}  // namespace mge::rewrite_quantized_conv
