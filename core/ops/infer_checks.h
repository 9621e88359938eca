// SPDX-License-Identifier: Apache-2.0
// Checks that the shape rules and evaluators of several operators share (convolution, pooling, quantization, signals).
// Unless a comment says otherwise, they fail with kInvalidNode. The caller of the rule adds the node's name to the
// error.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/ops/op.h"

namespace mge {

// Checks that the present inputs among `inputs` have one element type. Unknown types are ignored.
absl::Status SameElementTypes(InferContext& ctx, std::initializer_list<int> inputs);

// Returns a type of known rank.
TensorType MakeType(DType dtype, Shape dims);

// Returns a type of unknown rank.
TensorType UnrankedType(DType dtype);

// Checks that the shape has `rank` dimensions. `name` is its name in the error.
absl::Status RequireRank(std::string_view name, std::span<const int64_t> shape, size_t rank);

// Checks that the two sizes are equal. An unknown size equals every size.
absl::Status RequireSize(std::string_view name, int64_t size, int64_t wanted);

// Checks that the shape equals `wanted` in rank and in every known size.
absl::Status RequireShape(std::string_view name, std::span<const int64_t> shape, std::span<const int64_t> wanted);

// Returns the index in `choices` of a text attribute's value.
absl::StatusOr<int> ReadChoice(const Attributes& attrs, std::string_view name,
                               std::initializer_list<std::string_view> choices);

// Returns the element type of an attribute that holds ONNX's number for one, such as output_datatype. `fallback` is the value
// if an optional attribute is absent. Fails if `allowed` does not contain it, and with kUnsupportedType if MGE does not
// implement it.
absl::StatusOr<DType> ReadDType(const Attributes& attrs, std::string_view name, TypeSet allowed,
                                DType fallback = DType::kUndefined);

// Returns the element of an integer tensor of any type. Fails unless the tensor has exactly one element.
absl::StatusOr<int64_t> ScalarInt(std::string_view name, const Tensor& tensor);

// Returns the element of a floating tensor of any type. Fails unless the tensor has exactly one element.
absl::StatusOr<double> ScalarFloat(std::string_view name, const Tensor& tensor);

// Returns float16 and bfloat16 tensors as float32, the type in which they are computed. Returns other tensors without a
// copy.
absl::StatusOr<Tensor> ToComputeType(const Tensor& tensor, HostAllocator& allocator);

// Allocates uninitialised scratch memory, which counts towards the memory limit of the run.
template <typename T>
absl::StatusOr<Tensor> Scratch(EvalContext& ctx, int64_t count) {
  return Tensor::Create(kDTypeOf<T>, {count}, ctx.allocator());
}

}  // namespace mge
