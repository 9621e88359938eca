// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_quantized_conv {
namespace {

constexpr double kMaxError = 0.05;  // of a result's scale, by the rounding of a bias

// Returns the bias as integers with the scale of the sums, which is x_scale * w_scale. Returns an undefined tensor if that
// changes results, or if sums with the bias do not fit into int32.
absl::StatusOr<Tensor> BiasOf(const Graph& graph, ValueId bias, const ConvOperands& conv, const Quantization& y,
                              HostAllocator& allocator) {
  const std::vector<double> numbers = ConstantFloats(graph, bias);
  if (static_cast<int64_t>(numbers.size()) != conv.channels) return Tensor();
  MGE_ASSIGN_OR_RETURN(Tensor sums, Tensor::Create(DType::kI32, {conv.channels}, allocator));
  for (int64_t c = 0; c < conv.channels; ++c) {
    const double scale = ScaleAt(graph, conv.x, 0) * ScaleAt(graph, conv.w, c);
    const double exact = numbers[static_cast<size_t>(c)] / scale, number = std::nearbyint(exact);
    const bool fits = std::abs(number) + conv.largest_sum <= kMaxInt32;
    if (!fits || std::abs(number - exact) * scale > kMaxError * ScaleAt(graph, y, 0)) return Tensor();
    sums.MutableData<int32_t>()[static_cast<size_t>(c)] = static_cast<int32_t>(number);
  }
  return sums;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const std::optional<Quantization> y = FindQuantized(graph, graph.node(id));
  if (!y || !y->Is8Bit()) return false;
  const ValueId last = graph.node(id).inputs[0], result = BeforeClip(graph, last, *y);
  const Node* found = Producer(graph, result, "Conv");
  if (!found || !ServesOnlyThrough(graph, result, last, id)) return false;
  const Node conv = *found;  // a copy: adding nodes moves it
  const std::optional<ConvOperands> operands = FindConvOperands(graph, conv);
  if (!operands) return false;
  const Quantization &x = operands->x, &w = operands->w;
  ValueId bias = kNone;
  if (conv.inputs.size() > 2 && conv.inputs[2] != kNone) {
    MGE_ASSIGN_OR_RETURN(Tensor sums, BiasOf(graph, conv.inputs[2], *operands, *y, allocator));
    if (!sums.defined()) return false;
    bias = AddFreshConstant(graph, graph.value(conv.inputs[2]).name, std::move(sums));
  }
  const ValueId x_zero = ZeroOf(graph, x), w_zero = ZeroOf(graph, w), y_zero = ZeroOf(graph, *y);
  std::vector<ValueId> inputs = {x.data, x.scale, x_zero, w.data, w.scale, w_zero, y->scale, y_zero};
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
    .contains = "DequantizeLinear",
};

}  // namespace mge::rewrite_quantized_conv
