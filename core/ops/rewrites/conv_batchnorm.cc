// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_fold.h"

namespace mge::rewrite_conv_batchnorm {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node& norm = graph.node(id);
  if (!IsOp(norm, "BatchNormalization") || norm.attrs.Int("training_mode") != 0) return false;
  int64_t channels = 0;
  const Node* conv = FoldableConvolution(graph, norm.inputs[0], id, &channels);
  if (!conv) return false;
  std::vector<double> parameters[4];  // scale, bias, mean, variance
  for (int i = 0; i < 4; ++i) {
    if (!IsConstant(graph, norm.inputs[i + 1])) return false;
    parameters[i] = Doubles(graph.value(norm.inputs[i + 1]).constant);
    if (static_cast<int64_t>(parameters[i].size()) != channels) return false;
  }
  double epsilon = norm.attrs.Float("epsilon");
  std::vector<double> scale(channels), shift(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    shift[c] = parameters[1][c] - parameters[2][c] * scale[c];
  }
  return FoldIntoConvolution(graph, id, *conv, scale, shift, allocator);
}

}  // namespace

MGE_REWRITE(conv_batchnorm) = {.name = "conv_batchnorm",
                               .doc = "Folds a batch normalization with constant parameters into the convolution before it.",
                               .apply = Apply};

}  // namespace mge::rewrite_conv_batchnorm
