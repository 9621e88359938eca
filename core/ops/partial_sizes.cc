// SPDX-License-Identifier: Apache-2.0
#include "core/ops/partial_sizes.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mge {
namespace {

bool IsIndex(DType type) { return type == DType::kI64 || type == DType::kI32; }

// Returns the shape of a Reshape to `target`, of an input with the sizes `from`, or null if its rank is unknown.
Shape ReshapedTo(const Ints& target, /*nullable*/ const Shape* from, bool allow_zero) {
  Shape out;
  for (size_t i = 0; i < target.size(); ++i) {
    const bool copies = target[i] == 0 && !allow_zero;
    if (copies && from && i < from->size()) {
      out.push_back((*from)[i]);
    } else {
      out.push_back(copies || target[i] < 0 ? kUnknownDim : target[i]);
    }
  }
  return out;
}

}  // namespace

std::optional<Ints> PartialSizes::ElementsOf(const Graph& graph, ValueId v, std::span<const Tensor> known) const {
  if (v == kNone) return std::nullopt;
  const Value& value = graph.value(v);
  const auto at = static_cast<size_t>(v);
  const Tensor& tensor = value.role == Role::kConstant ? value.constant : known[at];
  if (tensor.defined()) {
    const bool small = IsIndex(tensor.dtype()) && tensor.rank() <= 1 && tensor.elements() <= kMaxRank;
    return small ? std::optional(tensor.ToInts()) : std::nullopt;
  }
  if (at < elements_.size() && !elements_[at].empty()) return elements_[at];
  // A vector of sizes of which nothing is known is still a part of a longer one.
  const TensorType& type = value.type;
  if (!IsIndex(type.dtype) || !type.has_rank || type.dims.size() > 1) return std::nullopt;
  const int64_t count = type.dims.empty() ? 1 : type.dims[0];
  return count >= 1 && count <= kMaxRank ? std::optional(Ints(static_cast<size_t>(count), kUnknown)) : std::nullopt;
}

std::optional<Ints> PartialSizes::ElementsOfOutput(const Graph& graph, const Node& node,
                                                   std::span<const Tensor> known) const {
  const auto is = [&](std::string_view op) { return node.op == op; };
  const auto input = [&](size_t i) {
    return i < node.inputs.size() ? ElementsOf(graph, node.inputs[i], known) : std::nullopt;
  };
  if (is("Shape")) {
    const TensorType& type = graph.value(node.inputs[0]).type;
    if (!type.has_rank) return std::nullopt;
    const auto rank = static_cast<int64_t>(type.dims.size());
    const auto place = [&](std::string_view name, int64_t absent) {
      const int64_t at = node.attrs.Int(name, absent);
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    Ints out;
    for (int64_t i = place("start", 0), end = place("end", rank); i < end; ++i) {
      const int64_t size = type.dims[static_cast<size_t>(i)];
      out.push_back(size == kUnknownDim ? kUnknown : size);
    }
    return out;
  }
  if (is("Concat")) {
    Ints out;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<Ints> part = input(i);
      if (!part || graph.value(node.inputs[i]).type.dims.size() != 1) return std::nullopt;
      out.insert(out.end(), part->begin(), part->end());
    }
    return out;
  }
  if (is("Gather")) {
    const std::optional<Ints> from = input(0), indices = input(1);
    if (!from || !indices || graph.value(node.inputs[0]).type.dims.size() != 1) return std::nullopt;
    Ints out;
    for (int64_t i : *indices) {
      if (i != kUnknown && i < 0) i += static_cast<int64_t>(from->size());
      out.push_back(i >= 0 && i < static_cast<int64_t>(from->size()) ? (*from)[static_cast<size_t>(i)] : kUnknown);
    }
    return out;
  }
  if (is("Slice")) {
    const std::optional<Ints> from = input(0), starts = input(1), ends = input(2);
    if (!from || !starts || !ends || graph.value(node.inputs[0]).type.dims.size() != 1) return std::nullopt;
    const bool one = starts->size() == 1 && ends->size() == 1 && (*starts)[0] != kUnknown && (*ends)[0] != kUnknown;
    const bool plain_steps = node.inputs.size() <= 4 || node.inputs[4] == kNone || input(4) == Ints{1};
    if (!one || !plain_steps) return std::nullopt;
    const auto size = static_cast<int64_t>(from->size());
    const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t first = place((*starts)[0]), last = std::max(first, place((*ends)[0]));
    return Ints(from->begin() + first, from->begin() + last);
  }
  const bool moves = is("Unsqueeze") || is("Squeeze") || is("Identity");
  if (is("Cast")) {
    const auto to = static_cast<DType>(node.attrs.Int("to"));
    std::optional<Ints> from = input(0);
    const auto fits = [&](int64_t i) { return to == DType::kI64 || i == kUnknown || std::in_range<int32_t>(i); };
    return from && IsIndex(to) && std::ranges::all_of(*from, fits) ? from : std::nullopt;
  }
  return moves ? input(0) : std::nullopt;
}

std::optional<Shape> PartialSizes::Learn(const Graph& graph, const Node& node, std::span<const Tensor> known) {
  if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == kNone || node.inputs.empty()) return std::nullopt;
  const ValueId y = node.outputs[0];
  if (node.op == "Reshape") {
    const std::optional<Ints> target = ElementsOf(graph, node.inputs[1], known);
    if (!target || graph.value(node.inputs[1]).type.dims.size() != 1) return std::nullopt;
    const TensorType& from = graph.value(node.inputs[0]).type;
    return ReshapedTo(*target, from.has_rank ? &from.dims : nullptr, node.attrs.Int("allowzero") != 0);
  }
  const TensorType& type = graph.value(y).type;
  if (!IsIndex(type.dtype) || !type.has_rank || type.dims.size() > 1 || known[static_cast<size_t>(y)].defined()) {
    return std::nullopt;
  }
  if (elements_.size() < known.size()) elements_.resize(known.size());
  Ints& elements = elements_[static_cast<size_t>(y)];
  elements = ElementsOfOutput(graph, node, known).value_or(Ints());
  if (elements.size() > static_cast<size_t>(kMaxRank)) elements.clear();
  return std::nullopt;
}

}  // namespace mge
