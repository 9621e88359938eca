// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/lazy_bytes.h"
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/movement.h"
#include "core/ops/rewrites/pattern.h"
#include "fmt/format.h"

namespace mge::rewrite_conv_padding_taps {
namespace {

struct Convolution {
  std::string_view op;
  size_t weights;  // number of the input
};
constexpr Convolution kConvolutions[] = {{"Conv", 1}, {"ConvInteger", 1}, {"QLinearConv", 3}};

// Returns the taps of an axis without the outer ones that read only padding. At least one tap is left, and pads stay positive.
IndexRange KeptTaps(const WindowAxis& axis) {
  auto is_useless = [&](int64_t tap) {
    const IndexRange outputs = axis.OutputsInside(tap);
    return outputs.begin >= outputs.end;
  };
  IndexRange kept = {0, axis.kernel};
  while (kept.end - kept.begin > 1 && is_useless(kept.begin) && axis.pad_begin >= (kept.begin + 1) * axis.dilation) {
    ++kept.begin;
  }
  while (kept.end - kept.begin > 1 && is_useless(kept.end - 1) &&
         axis.pad_end >= (axis.kernel - kept.end + 1) * axis.dilation) {
    --kept.end;
  }
  return kept;
}

absl::Status CopyTaps(const Tensor& weights, std::span<const IndexRange> kept, Tensor& out) {
  MGE_ASSIGN_OR_RETURN(const Tensor held, weights.Held());
  const Shape& shape = held.shape();
  Ints strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  int64_t first = 0;
  for (size_t i = 0; i < kept.size(); ++i) first += kept[i].begin * strides[i + 2];
  CopyStrided(held, first, strides, out);
  return absl::OkStatus();
}

// Returns the weights of the kept taps. Those of a lazy tensor are lazy.
absl::StatusOr<Tensor> TakeTaps(const Tensor& weights, std::span<const IndexRange> kept, HostAllocator& allocator) {
  Shape shape = weights.shape();
  std::string taps;
  for (size_t i = 0; i < kept.size(); ++i) {
    shape[i + 2] = kept[i].end - kept[i].begin;
    taps += fmt::format("{}:{} ", kept[i].begin, kept[i].end);
  }
  const LazyBytes* lazy = weights.lazy();
  if (!lazy) {
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(weights.dtype(), shape, allocator));
    MGE_RETURN_IF_ERROR(CopyTaps(weights, kept, out));
    return out;
  }
  std::string key;
  if (!lazy->key().empty()) key = fmt::format("taps {}of {} {}", taps, ShapeText(weights.shape()), lazy->key());
  const std::vector<IndexRange> ranges(kept.begin(), kept.end());
  auto fill = [weights, ranges, shape](std::span<std::byte> to) -> absl::Status {
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(weights.dtype(), shape));
    MGE_RETURN_IF_ERROR(CopyTaps(weights, ranges, out));
    std::memcpy(to.data(), out.data(), to.size());
    return absl::OkStatus();
  };
  const int64_t bytes = Elements(shape) * ElementBytes(weights.dtype());
  return Tensor::Lazy(weights.dtype(), shape, std::make_shared<LazyBytes>(bytes, std::move(key), std::move(fill)));
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node& node = graph.node(id);
  const auto row = std::ranges::find_if(kConvolutions, [&](const Convolution& c) { return IsOp(node, c.op); });
  if (row == std::end(kConvolutions) || !IsConstant(graph, node.inputs[row->weights])) return false;
  const Value& x = graph.value(node.inputs[0]);
  const Tensor weights = graph.value(node.inputs[row->weights]).constant;
  if (!x.type.has_rank || x.type.dims.size() < 3 || x.type.dims.size() != weights.shape().size()) return false;
  if (std::any_of(x.type.dims.begin() + 2, x.type.dims.end(), [](int64_t n) { return n == kUnknownDim; })) return false;
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConv(node.attrs, x.type.dims, weights.shape()));
  std::vector<IndexRange> kept;
  Ints kernel, dilations;
  bool removes = false;
  for (WindowAxis& axis : g.window) {
    const IndexRange taps = KeptTaps(axis);
    removes |= taps.end - taps.begin < axis.kernel;
    axis.pad_begin -= taps.begin * axis.dilation;
    axis.pad_end -= (axis.kernel - taps.end) * axis.dilation;
    kernel.push_back(taps.end - taps.begin);
    dilations.push_back(kernel.back() == 1 ? 1 : axis.dilation);
    kept.push_back(taps);
  }
  if (!removes) return false;
  MGE_ASSIGN_OR_RETURN(Tensor taken, TakeTaps(weights, kept, allocator));
  std::vector<ValueId> inputs = node.inputs;
  inputs[row->weights] = AddFreshConstant(graph, graph.value(inputs[row->weights]).name, std::move(taken));
  Attributes attrs = graph.node(id).attrs;
  attrs.Set("kernel_shape", kernel);
  attrs.Set("dilations", dilations);
  SetPads(attrs, PadsOf(g.window));
  Replace(graph, id, std::string(row->op), std::move(inputs), std::move(attrs));
  return true;
}

}  // namespace

MGE_REWRITE(conv_padding_taps) = {
    .name = "conv_padding_taps",
    .doc = "Removes the outer taps of convolutions that read only padding, as in dilated convolutions of small images.",
    .apply = Apply};

}  // namespace mge::rewrite_conv_padding_taps
