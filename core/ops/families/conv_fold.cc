// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_fold.h"

#include <algorithm>

#include "core/base/lazy_bytes.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace mge {
namespace {

constexpr TypeSet kFoldable = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

// The weights of a convolution as `rows` (dimension 0) x `columns` (dimension 1) x `inner` elements.
struct Weights {
  int64_t rows, columns, inner;
  int64_t rows_per_group;  // ConvTranspose: rows of one group, which has its own output channels; else 0

  int64_t Channel(int64_t row, int64_t column) const {
    return rows_per_group ? row / rows_per_group * columns + column : row;
  }
};

// Scales the weights by channel. Returns false if a result overflows T.
template <typename T>
bool Scale(const Weights& w, const T* in, std::span<const double> scale, T* out) {
  bool finite = true;
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t column = 0; column < w.columns; ++column) {
      const double factor = scale[w.Channel(row, column)];
      for (int64_t i = 0; i < w.inner; ++i, ++in, ++out) {
        *out = Rounded<T>(static_cast<double>(*in) * factor);
        finite &= std::isfinite(static_cast<double>(*out));
      }
    }
  }
  return finite;
}

// Calls Scale() with the elements of `in` and the memory `out`.
absl::StatusOr<bool> ScaleInto(const Weights& w, const Tensor& in, std::span<const double> scale, void* out) {
  MGE_ASSIGN_OR_RETURN(const Tensor held, in.Held());
  bool finite = true;
  DispatchFloating(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    finite = Scale<T>(w, held.Data<T>().data(), scale, static_cast<T*>(out));
  });
  return finite;
}

// Returns the scaled weights, or nullopt if they overflow. Those of a lazy tensor are lazy.
absl::StatusOr<std::optional<Tensor>> ScaledWeights(const Weights& w, const Tensor& in, std::span<const double> scale,
                                                    HostAllocator& allocator) {
  const LazyBytes* lazy = in.lazy();
  // Weights of float32 that such a factor takes beyond the limit of the type are above 1e32. They are not looked for.
  const double harmless = in.dtype() == DType::kF16 ? 1 : 1 << 20;
  const bool may_overflow = !std::ranges::all_of(scale, [&](double s) { return std::fabs(s) <= harmless; });
  Tensor out;
  if (!lazy || may_overflow) {
    MGE_ASSIGN_OR_RETURN(out, Tensor::Create(in.dtype(), in.shape(), lazy ? UnlimitedHostAllocator() : allocator));
    MGE_ASSIGN_OR_RETURN(const bool finite, ScaleInto(w, in, scale, out.mutable_data()));
    if (!finite) return std::nullopt;
  }
  if (!lazy) return out;
  const std::vector<double> factors(scale.begin(), scale.end());
  const XXH128_hash_t hash = XXH3_128bits(factors.data(), factors.size() * sizeof(double));
  std::string key;
  if (!lazy->key().empty()) {
    key = fmt::format("scaled {:x}{:016x} {}x{}x{}/{} {}", hash.high64, hash.low64, w.rows, w.columns, w.inner,
                      w.rows_per_group, lazy->key());
  }
  auto fill = [w, in, factors](std::span<std::byte> to) { return ScaleInto(w, in, factors, to.data()).status(); };
  return Tensor::Lazy(in.dtype(), in.shape(), std::make_shared<LazyBytes>(lazy->bytes(), std::move(key), std::move(fill)));
}

}  // namespace

const Node* FoldableConvolution(const Graph& graph, ValueId value, NodeId root, int64_t* channels) {
  const Node* conv = Producer(graph, value, "Conv");
  bool transposed = !conv;
  if (transposed) conv = Producer(graph, value, "ConvTranspose");
  if (!conv || !IsConstant(graph, conv->inputs[1])) return nullptr;
  if (conv->inputs.size() > 2 && conv->inputs[2] != kNone && !IsConstant(graph, conv->inputs[2])) return nullptr;
  const Tensor& weights = graph.value(conv->inputs[1]).constant;
  int64_t group = conv->attrs.Int("group");
  if (!kFoldable.Contains(weights.dtype()) || weights.rank() < 2 || group < 1) return nullptr;
  if (transposed && weights.shape()[0] % group != 0) return nullptr;
  *channels = transposed ? weights.shape()[1] * group : weights.shape()[0];
  return ServeOnly(graph, std::vector<ValueId>{value}, root) ? conv : nullptr;
}

absl::StatusOr<bool> FoldIntoConvolution(Graph& graph, NodeId root, const Node& convolution, std::span<const double> scale,
                                         std::span<const double> shift, HostAllocator& allocator) {
  const Node conv = convolution;  // a copy: adding nodes moves `convolution`
  const Value& w = graph.value(conv.inputs[1]);
  const Shape& shape = w.constant.shape();
  const DType dtype = w.constant.dtype();
  Weights weights = {shape[0], shape[1], 1, 0};
  for (size_t d = 2; d < shape.size(); ++d) weights.inner *= shape[d];
  if (conv.op == "ConvTranspose") weights.rows_per_group = std::max<int64_t>(shape[0] / conv.attrs.Int("group"), 1);

  std::vector<double> bias(scale.size(), 0.0);
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNone;
  if (has_bias) bias = Doubles(graph.value(conv.inputs[2]).constant);
  if (bias.size() != scale.size()) return false;
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * scale[c] + shift[c];

  MGE_ASSIGN_OR_RETURN(std::optional<Tensor> new_weights, ScaledWeights(weights, w.constant, scale, allocator));
  if (!new_weights) return false;
  MGE_ASSIGN_OR_RETURN(Tensor new_bias, Tensor::Create(dtype, {static_cast<int64_t>(bias.size())}, allocator));
  bool finite = true;
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t c = 0; c < bias.size(); ++c) {
      T rounded = new_bias.MutableData<T>()[c] = Rounded<T>(bias[c]);
      finite &= std::isfinite(static_cast<double>(rounded));
    }
  });
  if (!finite) return false;
  ValueId weights_id = AddFreshConstant(graph, w.name, *std::move(new_weights));
  std::string bias_name = has_bias ? graph.value(conv.inputs[2]).name : graph.value(conv.inputs[1]).name + ".bias";
  ValueId bias_id = AddFreshConstant(graph, bias_name, std::move(new_bias));
  Node& folded = graph.node(Replace(graph, root, conv.op, {conv.inputs[0], weights_id, bias_id}));
  folded.attrs = conv.attrs;
  folded.name = conv.name;
  folded.device = conv.device;
  return true;
}

}  // namespace mge
