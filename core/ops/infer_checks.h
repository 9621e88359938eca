// SPDX-License-Identifier: Apache-2.0
// Small checks that the shape rules and evaluators of convolution, pooling, quantization and signal
// share. All errors are kInvalidNode; whoever runs the rule adds the node's place.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/ops/op.h"

namespace mge {

// The present ones of these inputs have one element type (where it is known).
absl::Status SameElementTypes(InferContext& ctx, std::initializer_list<int> inputs);

// A type of known rank.
TensorType MakeType(DType dtype, Shape dims);

// A type of which only the elements are known.
TensorType UnrankedType(DType dtype);

// The named shape has `rank` dimensions.
absl::Status RequireRank(std::string_view name, std::span<const int64_t> shape, size_t rank);

// Two sizes agree; an unknown one agrees with everything.
absl::Status RequireSize(std::string_view name, int64_t size, int64_t wanted);

// The shape agrees with `wanted` in rank and in every known size.
absl::Status RequireShape(std::string_view name, std::span<const int64_t> shape,
                          std::span<const int64_t> wanted);

// A text attribute is one of these; the index of the one it is.
absl::StatusOr<int> ReadChoice(const Attributes& attrs, std::string_view name,
                               std::string_view fallback,
                               std::initializer_list<std::string_view> choices);

// The element type that an attribute such as output_datatype names by ONNX's number, if `allowed`
// holds it.
absl::StatusOr<DType> ReadDType(const Attributes& attrs, std::string_view name, DType fallback,
                                TypeSet allowed);

// The one element of a tensor of any integer type; kInvalidNode if it has not exactly one.
absl::StatusOr<int64_t> ScalarInt(std::string_view name, const Tensor& tensor);

// The one element of a tensor of any floating type.
absl::StatusOr<double> ScalarFloat(std::string_view name, const Tensor& tensor);

// Elements of a floating tensor as float32 or float64 (float64 stays itself): what
// reduced-precision types compute with. No copy where nothing changes.
absl::StatusOr<Tensor> ToComputeType(const Tensor& tensor, HostAllocator& allocator);

// Uninitialised scratch memory that counts towards the budget of the run.
template <typename T>
absl::StatusOr<Tensor> Scratch(EvalContext& ctx, int64_t count) {
  return Tensor::Create(kDTypeOf<T>, {count}, ctx.allocator());
}

}  // namespace mge
