// SPDX-License-Identifier: Apache-2.0
// Shared by the operators that run bodies: what flows into them, and types of values that are carried along.
#pragma once

#include <vector>

#include "core/ops/movement.h"

namespace mge {

// How many inputs of a body are formal ones (the others are captures).
int FormalInputs(const Graph& body);

// Types of a body's outputs when `count` of them, from `first_output`, are fed back into its inputs from
// `first_input`. Those inputs are widened until they hold for every iteration; so are the outputs returned.
absl::StatusOr<std::vector<ValueType>> InferCarried(InferContext& ctx, const Graph& body,
                                                    std::vector<ValueType> inputs, int first_input,
                                                    int first_output, int count);

// Returns true if a shape rule gave the error: the body's nodes do not fit these types and shapes, but might fit others.
bool IsShapeFault(const absl::Status& status);

// Wraps a value into an optional, or takes it out of one. kInvalidNode where that is impossible.
absl::StatusOr<HostValue> AsKind(HostValue value, ValueKind kind);

inline bool IsOptional(ValueKind kind) {
  return kind == ValueKind::kOptional || kind == ValueKind::kOptionalSequence;
}
inline bool IsSequence(ValueKind kind) {
  return kind == ValueKind::kSequence || kind == ValueKind::kOptionalSequence;
}

// The one element of a bool tensor.
absl::StatusOr<bool> ScalarBool(std::string_view name, const Tensor& tensor);

// An empty result of a known type: unknown sizes become 0. kInvalidNode if its element type is not known.
absl::StatusOr<Tensor*> EmptyOutput(EvalContext& ctx, int output);

// Tensors of one type and shape, stacked along a new first dimension; memory doubles as they come.
class Stack {
 public:
  absl::Status Append(EvalContext& ctx, std::string_view what, const Tensor& tensor);
  // Writes output `i`. With nothing appended, an empty one of the inferred type.
  absl::Status Finish(EvalContext& ctx, int output) const;

 private:
  Tensor buffer_;
  Shape element_;
  int64_t count_ = 0;
  int64_t capacity_ = 0;
};

}  // namespace mge
