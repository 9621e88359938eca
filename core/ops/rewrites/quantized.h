// SPDX-License-Identifier: Apache-2.0
// Helpers of the rewrites of quantized models: tensors that pass a QuantizeLinear or DequantizeLinear with constant scales.
#pragma once

#include <algorithm>
#include <limits>

#include "core/ops/rewrites/pattern.h"

namespace mge {

// The operands of a QuantizeLinear or DequantizeLinear.
struct Quantization {
  ValueId data = kNone;  // the integers
  ValueId scale = kNone, zero = kNone;
  DType type = DType::kUndefined;
  int64_t axis = 0;  // as the attribute; with one scale it has no meaning

  bool Is8Bit() const { return type == DType::kU8 || type == DType::kI8; }
};

inline bool HasOneElement(const Graph& graph, ValueId constant) { return graph.value(constant).constant.elements() == 1; }

// Reads a node whose scale and zero point are constants of float32 and of the integers' type. All scales are positive.
inline std::optional<Quantization> FindQuantization(const Graph& graph, const Node& node, ValueId data) {
  Quantization q = {data, node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : kNone, graph.value(data).type.dtype,
                    node.attrs.Int("axis")};
  if (node.attrs.Int("block_size") != 0 || node.attrs.Int("precision") != 0) return std::nullopt;
  if (!IsConstant(graph, q.scale) || graph.value(q.scale).constant.dtype() != DType::kF32) return std::nullopt;
  if (q.zero != kNone && (!IsConstant(graph, q.zero) || graph.value(q.zero).constant.dtype() != q.type)) return std::nullopt;
  const auto is_scale = [](float s) { return s > 0 && s < std::numeric_limits<float>::infinity(); };
  if (!std::ranges::all_of(graph.value(q.scale).constant.Data<float>(), is_scale)) return std::nullopt;
  return q;
}

// Returns the integers of a float32 value that a DequantizeLinear produces.
inline std::optional<Quantization> FindDequantized(const Graph& graph, ValueId value) {
  const Node* node = Producer(graph, value, "DequantizeLinear");
  if (!node || graph.value(value).type.dtype != DType::kF32) return std::nullopt;
  return FindQuantization(graph, *node, node->inputs[0]);
}

// Returns the result of a QuantizeLinear of float32 with one scale.
inline std::optional<Quantization> FindQuantized(const Graph& graph, const Node& node) {
  if (!IsOp(node, "QuantizeLinear") || graph.value(node.inputs[0]).type.dtype != DType::kF32) return std::nullopt;
  std::optional<Quantization> q = FindQuantization(graph, node, node.outputs[0]);
  return q && HasOneElement(graph, q->scale) ? q : std::nullopt;
}

inline double ScaleAt(const Graph& graph, const Quantization& q, int64_t i) {
  const Tensor& scale = graph.value(q.scale).constant;
  return scale.Data<float>()[scale.elements() == 1 ? 0 : i];
}
// Returns the zero points: one, or one per scale.
inline std::vector<int64_t> ZerosOf(const Graph& graph, const Quantization& q) {
  return q.zero == kNone ? std::vector<int64_t>{0} : graph.value(q.zero).constant.ToInts();
}

// Returns whether two quantizations have the same type, one equal scale and one equal zero point.
inline bool SameQuantization(const Graph& graph, const Quantization& a, const Quantization& b) {
  return a.type == b.type && HasOneElement(graph, a.scale) && HasOneElement(graph, b.scale) &&
         ScaleAt(graph, a, 0) == ScaleAt(graph, b, 0) && ZerosOf(graph, a)[0] == ZerosOf(graph, b)[0];
}

// Returns the zero point of 8-bit integers, or a new constant of zeros with the shape of the scale if there is none.
inline ValueId ZeroOf(Graph& graph, const Quantization& q) {
  if (q.zero != kNone) return q.zero;
  const Shape& shape = graph.value(q.scale).constant.shape();
  const std::vector<int8_t> zeros(static_cast<size_t>(Elements(shape)));
  const Tensor tensor = Tensor::Of<int8_t>(shape, zeros);
  return AddFreshConstant(graph, graph.value(q.data).name + ".zero", tensor.Within(q.type, shape, tensor.data()));
}

// Returns the lowest or highest integer of an 8-bit type.
inline int64_t LimitOf(DType type, bool high) {
  const int64_t low = type == DType::kI8 ? -128 : 0;
  return high ? low + 255 : low;
}

// Returns the largest distance between 8-bit integers and their zero points.
inline int64_t LargestOf(const Graph& graph, const Quantization& q) {
  int64_t largest = 0;
  for (int64_t zero : ZerosOf(graph, q)) {
    largest = std::max({largest, zero - LimitOf(q.type, false), LimitOf(q.type, true) - zero});
  }
  return largest;
}
// Returns a limit of the sums of `count` products of such integers. A sum fits into int32 if the limit is below 2^31.
inline double LargestSum(const Graph& graph, const Quantization& a, const Quantization& b, int64_t count) {
  return static_cast<double>(count) * static_cast<double>(LargestOf(graph, a)) * static_cast<double>(LargestOf(graph, b));
}
inline constexpr double kMaxInt32 = 2147483647.0;

// The operands of a Conv of 8-bit integers with a constant filter.
struct ConvOperands {
  Quantization x, w;
  int64_t channels = 0;
  double largest_sum = 0;
};
// Finds them if the data has one scale, the filter one or one per channel, and all sums fit into int32.
inline std::optional<ConvOperands> FindConvOperands(const Graph& graph, const Node& conv) {
  const std::optional<Quantization> x = FindDequantized(graph, conv.inputs[0]), w = FindDequantized(graph, conv.inputs[1]);
  if (!x || !w || !x->Is8Bit() || !w->Is8Bit() || !HasOneElement(graph, x->scale) || !IsConstant(graph, w->data)) return {};
  const Tensor& filter = graph.value(w->data).constant;
  if (filter.rank() < 3 || filter.elements() == 0) return {};
  ConvOperands out = {*x, *w, filter.shape()[0]};
  if (!HasOneElement(graph, w->scale) && (w->axis != 0 || graph.value(w->scale).constant.shape() != Shape{out.channels})) {
    return {};
  }
  out.largest_sum = LargestSum(graph, *x, *w, filter.elements() / out.channels);
  return out.largest_sum <= kMaxInt32 ? std::optional(out) : std::nullopt;
}

// The operands of a product of 8-bit integers.
struct ProductOperands {
  Quantization a, b;
};
// Finds them if a has one scale, b one or one per column of a matrix, and all sums fit into int32. `transposed`: the rows of b
// are the columns of the product.
inline std::optional<ProductOperands> FindProductOperands(const Graph& graph, const Node& product, bool transposed) {
  const std::optional<Quantization> a = FindDequantized(graph, product.inputs[0]),
                                    b = FindDequantized(graph, product.inputs[1]);
  if (!a || !b || !a->Is8Bit() || !b->Is8Bit() || !HasOneElement(graph, a->scale)) return {};
  const TensorType& type = graph.value(b->data).type;
  if (!type.has_rank || type.dims.empty()) return {};
  const auto rank = static_cast<int64_t>(type.dims.size());
  const int64_t depth = rank == 1 ? type.dims[0] : type.dims[static_cast<size_t>(transposed ? rank - 1 : rank - 2)];
  if (depth == kUnknownDim || LargestSum(graph, *a, *b, depth) > kMaxInt32) return {};
  const int64_t axis = b->axis < 0 ? b->axis + rank : b->axis;
  if (!HasOneElement(graph, b->scale) && (rank != 2 || axis != (transposed ? 0 : 1))) return {};
  return ProductOperands{*a, *b};
}

// Returns the value that reaches a QuantizeLinear through a Relu or Clip that cannot change its result, because the integers
// saturate at the same limits or before. Returns `value` itself if there is no such node.
inline ValueId BeforeClip(const Graph& graph, ValueId value, const Quantization& q) {
  double low = 0, high = std::numeric_limits<double>::infinity();
  const Node* clip = Producer(graph, value, "Relu");
  if (!clip) {
    clip = Producer(graph, value, "Clip");
    if (!clip) return value;
    low = -high;
    for (size_t i = 1; i < clip->inputs.size(); ++i) {
      if (clip->inputs[i] == kNone) continue;
      std::optional<double> limit = ConstantNumber(graph, clip->inputs[i]);
      if (!limit) return value;
      (i == 1 ? low : high) = *limit;
    }
  }
  const double scale = ScaleAt(graph, q, 0), zero = static_cast<double>(ZerosOf(graph, q)[0]);
  auto rounded = [&](double v) { return std::nearbyint(static_cast<float>(v) / static_cast<float>(scale)) + zero; };
  const bool saturates = rounded(low) <= static_cast<double>(LimitOf(q.type, false)) &&
                         rounded(high) >= static_cast<double>(LimitOf(q.type, true));
  return saturates ? clip->inputs[0] : value;
}

// Returns whether only `root` needs the value, through at most one Relu or Clip whose result is `last`.
inline bool ServesOnlyThrough(const Graph& graph, ValueId value, ValueId last, NodeId root) {
  if (value == last) return ServeOnly(graph, std::vector<ValueId>{value}, root);
  return ServeOnly(graph, std::vector<ValueId>{value, last}, root);
}

// Returns the scales times `factor`. With several, appends `ones` dimensions of one element and puts one before.
inline absl::StatusOr<Tensor> ScaledBy(const Graph& graph, const Quantization& q, float factor, int64_t ones,
                                       HostAllocator& allocator) {
  const Tensor& scale = graph.value(q.scale).constant;
  Shape shape;
  if (scale.elements() != 1) {
    shape = scale.shape();
    if (ones > 0) shape.insert(shape.begin(), 1);
    shape.insert(shape.end(), static_cast<size_t>(ones), 1);
  }
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, std::move(shape), allocator));
  for (int64_t i = 0; i < out.elements(); ++i) out.MutableData<float>()[i] = factor * scale.Data<float>()[i];
  return out;
}

// Returns the numbers of a constant of float32, or of constant integers after a DequantizeLinear. Returns an empty list for
// other values.
inline std::vector<double> ConstantFloats(const Graph& graph, ValueId value) {
  std::vector<double> numbers;
  if (std::optional<Quantization> q = FindDequantized(graph, value)) {
    if (!IsConstant(graph, q->data)) return numbers;
    const std::vector<int64_t> integers = graph.value(q->data).constant.ToInts();
    if (!HasOneElement(graph, q->scale) &&
        graph.value(q->scale).constant.elements() != static_cast<int64_t>(integers.size())) {
      return numbers;
    }
    const std::vector<int64_t> zeros = ZerosOf(graph, *q);
    for (size_t i = 0; i < integers.size(); ++i) {
      const int64_t zero = zeros[zeros.size() == 1 ? 0 : i];
      numbers.push_back(static_cast<double>(integers[i] - zero) * ScaleAt(graph, *q, static_cast<int64_t>(i)));
    }
  } else if (IsConstant(graph, value) && graph.value(value).constant.dtype() == DType::kF32) {
    for (float number : graph.value(value).constant.Data<float>()) numbers.push_back(number);
  }
  return numbers;
}

// Returns whether a QuantizeLinear reads the value, directly or through a Relu or Clip. Another rewrite may then replace both.
inline bool IsQuantizedNext(const Graph& graph, ValueId result) {
  std::vector<ValueId> open = {result};
  for (size_t i = 0; i < open.size(); ++i) {
    const bool found = graph.AnyReader(open[i], [&](NodeId id) {
      const Node& node = graph.node(id);
      if (IsOp(node, "Relu") || IsOp(node, "Clip")) open.push_back(node.outputs[0]);
      return IsOp(node, "QuantizeLinear");
    });
    if (found) return true;
  }
  return false;
}

}  // namespace mge
