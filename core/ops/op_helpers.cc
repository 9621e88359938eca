// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op_helpers.h"

#include <algorithm>

namespace mge {
namespace {

absl::Status InvalidAt(const Node& node, std::string what) {
  return Fail(errors::kInvalidNode, fmt::format("{}: {}", node.op, what), {.where = NodePlace(node)});
}

absl::Status UnsupportedAt(const Node& node, std::string what) {
  return Fail(errors::kUnsupportedFeature, fmt::format("{}: not implemented: {}", node.op, what),
              {.where = NodePlace(node)});
}

absl::StatusOr<TensorType> BroadcastType(InferContext& ctx) {
  TensorType out = ctx.input(0);
  out.symbols.clear();
  for (int i = 1; i < ctx.input_count(); ++i) {
    const TensorType& type = ctx.input(i);
    if (out.dtype == DType::kUndefined) {
      out.dtype = type.dtype;
    } else if (type.dtype != DType::kUndefined && type.dtype != out.dtype) {
      return ctx.Invalid(fmt::format("inputs have different types: {} and {}", DTypeName(out.dtype), DTypeName(type.dtype)));
    }
    if (!out.has_rank || !type.has_rank) {
      out.has_rank = false;
      out.dims.clear();
      continue;
    }
    absl::StatusOr<Shape> dims = BroadcastShapes(out.dims, type.dims);
    if (!dims.ok()) return ctx.Invalid(ErrorTitle(dims.status()));
    out.dims = *std::move(dims);
  }
  return out;
}

}  // namespace

absl::Status BadNode(std::string what) { return Fail(errors::kInvalidNode, std::move(what)); }

absl::Status InferContext::Invalid(std::string what) const { return InvalidAt(node(), std::move(what)); }
absl::Status InferContext::Unsupported(std::string what) const { return UnsupportedAt(node(), std::move(what)); }
absl::Status EvalContext::Invalid(std::string what) const { return InvalidAt(node(), std::move(what)); }
absl::Status EvalContext::Unsupported(std::string what) const { return UnsupportedAt(node(), std::move(what)); }

absl::Status SameTypeAsFirst(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0), ctx.input_kind(0));
  return absl::OkStatus();
}

absl::Status BroadcastInfer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(TensorType type, BroadcastType(ctx));
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status BroadcastBoolInfer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(TensorType type, BroadcastType(ctx));
  type.dtype = DType::kBool;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::StatusOr<Ints> NormalizeAxes(const Ints& axes, int64_t rank) {
  Ints out;
  if (axes.empty()) {
    for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (int64_t axis : axes) {
    MGE_ASSIGN_OR_RETURN(int64_t normal, NormalizeAxis(axis, rank));
    out.push_back(normal);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Shape BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out) {
  Shape strides(out.size(), 0);
  size_t lead = out.size() - shape.size();
  int64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[lead + i] = shape[i] == 1 ? 0 : n;
    n *= shape[i];
  }
  return strides;
}

bool NextIndex(std::span<const int64_t> shape, std::span<int64_t> index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

}  // namespace mge
