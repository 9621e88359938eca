// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_fold.h"

namespace mge {
namespace {

constexpr TypeSet kFoldable = {DType::kF32, DType::kF64, DType::kF16};

// The numbers as a tensor; undefined if one of them does not fit the type.
absl::StatusOr<Tensor> TensorOf(DType dtype, const Shape& shape, std::span<const double> numbers) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, shape));
  bool finite = true;
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto data = out.MutableData<T>();
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = Rounded<T>(numbers[i]);
      finite &= std::isfinite(static_cast<double>(data[i]));
    }
  });
  return finite ? out : Tensor();
}

}  // namespace

const Node* FoldableConvolution(const Graph& graph, ValueId value, NodeId root, int64_t* channels) {
  const Node* conv = Producer(graph, value, "Conv");
  bool transposed = !conv;
  if (transposed) conv = Producer(graph, value, "ConvTranspose");
  if (!conv || !IsConstant(graph, conv->inputs[1])) return nullptr;
  if (conv->inputs.size() > 2 && conv->inputs[2] != kNone && !IsConstant(graph, conv->inputs[2])) return nullptr;
  const Tensor& weights = graph.value(conv->inputs[1]).constant;
  int64_t group = conv->attrs.Int("group", 1);
  if (!kFoldable.Contains(weights.dtype()) || weights.rank() < 2 || group < 1) return nullptr;
  if (transposed && weights.shape()[0] % group != 0) return nullptr;
  *channels = transposed ? weights.shape()[1] * group : weights.shape()[0];
  return ServeOnly(graph, std::vector<ValueId>{value}, root) ? conv : nullptr;
}

absl::StatusOr<bool> FoldIntoConvolution(Graph& graph, NodeId root, const Node& convolution,
                                         std::span<const double> scale, std::span<const double> shift) {
  const Node conv = convolution;  // the graph grows below
  const Value& w = graph.value(conv.inputs[1]);
  const Shape shape = w.constant.shape();
  const DType dtype = w.constant.dtype();
  std::vector<double> weights = Doubles(w.constant);
  const int64_t rows = shape[0], columns = shape[1];
  int64_t inner = 1;
  for (size_t d = 2; d < shape.size(); ++d) inner *= shape[d];
  const bool transposed = conv.op == "ConvTranspose";
  const int64_t rows_per_group = transposed ? rows / conv.attrs.Int("group", 1) : 1;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      int64_t channel = transposed ? row / rows_per_group * columns + column : row;
      double* at = weights.data() + (row * columns + column) * inner;
      for (int64_t i = 0; i < inner; ++i) at[i] *= scale[channel];
    }
  }
  std::vector<double> bias(scale.size(), 0.0);
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNone;
  if (has_bias) bias = Doubles(graph.value(conv.inputs[2]).constant);
  if (bias.size() != scale.size()) return false;
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * scale[c] + shift[c];

  MGE_ASSIGN_OR_RETURN(Tensor new_weights, TensorOf(dtype, shape, weights));
  MGE_ASSIGN_OR_RETURN(Tensor new_bias, TensorOf(dtype, {static_cast<int64_t>(bias.size())}, bias));
  if (!new_weights.defined() || !new_bias.defined()) return false;
  ValueId weights_id = AddFreshConstant(graph, w.name, std::move(new_weights));
  std::string bias_name = has_bias ? graph.value(conv.inputs[2]).name : graph.value(conv.inputs[1]).name + ".bias";
  ValueId bias_id = AddFreshConstant(graph, bias_name, std::move(new_bias));
  Node& folded = graph.node(Replace(graph, root, conv.op, {conv.inputs[0], weights_id, bias_id}));
  folded.attrs = conv.attrs;
  folded.name = conv.name;
  folded.device = conv.device;
  return true;
}

}  // namespace mge
