// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_fold.h"

namespace mge::rewrite_conv_affine {
namespace {

// Returns one number per channel from a constant operand of a result of that rank. The constant holds one number, or
// one per channel. Returns an empty list if it varies along another dimension.
std::vector<double> PerChannel(const Tensor& tensor, int64_t rank, int64_t channels) {
  if (!kFloating.Contains(tensor.dtype()) || tensor.rank() > rank || rank < 2) return {};
  if (tensor.elements() == 1) return std::vector<double>(channels, Doubles(tensor)[0]);
  int64_t channel_axis = tensor.rank() - (rank - 1);  // dimension 1 of the result
  if (tensor.elements() != channels || channel_axis < 0 || tensor.shape()[channel_axis] != channels) return {};
  return Doubles(tensor);
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node& node = graph.node(id);
  bool mul = IsOp(node, "Mul"), add = IsOp(node, "Add"), sub = IsOp(node, "Sub"), div = IsOp(node, "Div");
  if (!mul && !add && !sub && !div) return false;
  for (int i = 0; i < (mul || add ? 2 : 1); ++i) {
    ValueId number = node.inputs[1 - i];
    if (!IsConstant(graph, number) || !graph.value(node.inputs[i]).type.has_rank) continue;
    int64_t channels = 0;
    const Node* conv = FoldableConvolution(graph, node.inputs[i], id, &channels);
    if (!conv) continue;
    int64_t rank = static_cast<int64_t>(graph.value(node.inputs[i]).type.dims.size());
    std::vector<double> numbers = PerChannel(graph.value(number).constant, rank, channels);
    if (static_cast<int64_t>(numbers.size()) != channels) continue;
    std::vector<double> scale(channels, 1.0), shift(channels, 0.0);
    for (int64_t c = 0; c < channels; ++c) {
      if (mul) scale[c] = numbers[c];
      if (div) scale[c] = 1 / numbers[c];
      if (add) shift[c] = numbers[c];
      if (sub) shift[c] = -numbers[c];
    }
    return FoldIntoConvolution(graph, id, *conv, scale, shift, allocator);
  }
  return false;
}

}  // namespace

MGE_REWRITE(conv_affine) = {.name = "conv_affine",
                            .doc = "Folds constant per-channel scales and shifts into the convolution before them.",
                            .apply = Apply};

}  // namespace mge::rewrite_conv_affine
