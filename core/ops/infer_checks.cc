// SPDX-License-Identifier: Apache-2.0
#include "core/ops/infer_checks.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {

absl::Status SameElementTypes(InferContext& ctx, std::initializer_list<int> inputs) {
  int first = -1;
  for (int i : inputs) {
    if (!ctx.has_input(i) || ctx.input(i).dtype == DType::kUndefined) continue;
    if (first < 0) {
      first = i;
    } else if (ctx.input(i).dtype != ctx.input(first).dtype) {
      return ctx.Invalid(fmt::format("input {} has type {} but input {} has type {}; they must be the same", first,
                                     DTypeName(ctx.input(first).dtype), i, DTypeName(ctx.input(i).dtype)));
    }
  }
  return absl::OkStatus();
}

TensorType MakeType(DType dtype, Shape dims) {
  TensorType type;
  type.dtype = dtype;
  type.has_rank = true;
  type.dims = std::move(dims);
  return type;
}

TensorType UnrankedType(DType dtype) {
  TensorType type;
  type.dtype = dtype;
  return type;
}

absl::Status RequireRank(std::string_view name, std::span<const int64_t> shape, size_t rank) {
  if (shape.size() == rank) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("{} has shape {}; its rank must be {}", name, ShapeText(shape), rank));
}

absl::Status RequireSize(std::string_view name, int64_t size, int64_t wanted) {
  if (size == wanted || size == kUnknownDim || wanted == kUnknownDim) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("{} is {}; it must be {}", name, size, wanted));
}

absl::Status RequireShape(std::string_view name, std::span<const int64_t> shape, std::span<const int64_t> wanted) {
  bool same = shape.size() == wanted.size();
  for (size_t i = 0; same && i < shape.size(); ++i) {
    same = shape[i] == wanted[i] || shape[i] == kUnknownDim || wanted[i] == kUnknownDim;
  }
  if (same) return absl::OkStatus();
  return Fail(errors::kInvalidNode,
              fmt::format("{} has shape {}; it must be {}", name, ShapeText(shape), ShapeText(wanted)));
}

absl::StatusOr<int> ReadChoice(const Attributes& attrs, std::string_view name,
                               std::initializer_list<std::string_view> choices) {
  std::string text = attrs.Text(name);
  int i = 0;
  for (std::string_view choice : choices) {
    if (text == choice) return i;
    ++i;
  }
  return Fail(errors::kInvalidNode,
              fmt::format("attribute {} = \"{}\" is not one of {}", name, EscapeControl(text), fmt::join(choices, ", ")));
}

absl::StatusOr<DType> ReadDType(const Attributes& attrs, std::string_view name, TypeSet allowed, DType fallback) {
  int64_t code = attrs.Int(name, static_cast<int64_t>(fallback));
  if (code > 0 && code < kDTypeCount && allowed.Contains(static_cast<DType>(code))) return static_cast<DType>(code);
  return Fail(errors::kInvalidNode,
              fmt::format("attribute {} = {} is not an element type that the operator allows", name, code));
}

absl::StatusOr<int64_t> ScalarInt(std::string_view name, const Tensor& tensor) {
  std::vector<int64_t> values = tensor.elements() == 1 ? tensor.ToInts() : std::vector<int64_t>();
  if (values.size() == 1) return values[0];
  return Fail(errors::kInvalidNode, fmt::format("{} has shape {} and type {}; it must be one integer", name,
                                                ShapeText(tensor.shape()), DTypeName(tensor.dtype())));
}

absl::StatusOr<double> ScalarFloat(std::string_view name, const Tensor& tensor) {
  double value = 0;
  if (tensor.elements() == 1 && DispatchFloating(tensor.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        value = static_cast<Compute<T>>(tensor.Data<T>()[0]);
      })) {
    return value;
  }
  return Fail(errors::kInvalidNode, fmt::format("{} has shape {} and type {}; it must be one floating number", name,
                                                ShapeText(tensor.shape()), DTypeName(tensor.dtype())));
}

absl::StatusOr<Tensor> ToComputeType(const Tensor& tensor, HostAllocator& allocator) {
  if (tensor.dtype() != DType::kF16 && tensor.dtype() != DType::kBF16) return tensor;
  MGE_ASSIGN_OR_RETURN(Tensor wide, Tensor::Create(DType::kF32, tensor.shape(), allocator));
  std::span<float> out = wide.MutableData<float>();
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const T> in = tensor.Data<T>();
    for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  return wide;
}

}  // namespace mge
