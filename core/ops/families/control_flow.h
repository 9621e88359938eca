// SPDX-License-Identifier: Apache-2.0
// Helpers of the operators that run bodies (If, Loop, Scan): kinds and types of values that enter and leave a body.
#pragma once

#include <vector>

#include "core/ops/families/movement.h"

namespace mge {

// Returns the number of formal inputs of a body. Its other inputs are captures.
int FormalInputs(const Graph& body);

// Infers the types of a body's outputs for a loop that feeds `count` of them back into its inputs. The fed-back outputs
// start at `first_output`, the inputs at `first_input`. Their types are widened until they are valid for every
// iteration. Returns the widened types.
absl::StatusOr<std::vector<ValueType>> InferCarried(InferContext& ctx, const Graph& body, std::vector<ValueType> inputs,
                                                    int first_input, int first_output, int count);

// Returns true if a shape rule caused the error. The body may then be valid for other types and shapes.
bool IsShapeFault(const absl::Status& status);

// Converts a value to `kind`: wraps it into an optional or unwraps it. Fails with kInvalidNode if the optional is
// empty.
absl::StatusOr<HostValue> AsKind(HostValue value, ValueKind kind);

inline bool IsOptional(ValueKind kind) { return kind == ValueKind::kOptional || kind == ValueKind::kOptionalSequence; }
inline bool IsSequence(ValueKind kind) { return kind == ValueKind::kSequence || kind == ValueKind::kOptionalSequence; }

// Returns the element of a bool tensor. Fails with kInvalidNode unless the tensor has exactly one element.
absl::StatusOr<bool> ScalarBool(std::string_view name, const Tensor& tensor);

// Allocates an empty output of the inferred type; unknown sizes become 0. Fails with kInvalidNode if the element type
// is unknown.
absl::StatusOr<Tensor*> EmptyOutput(EvalContext& ctx, int output);

// A buffer that collects tensors of one type and shape along a new first dimension. Its capacity doubles when it is
// full.
class Stack {
 public:
  // Appends a tensor. Fails with kInvalidNode if its type or shape differs from the first one. `what` is its name in
  // the error.
  absl::Status Append(EvalContext& ctx, std::string_view what, const Tensor& tensor);
  // Writes the stacked tensors to output `output`. If there are none, the output is empty and has the inferred type.
  absl::Status Finish(EvalContext& ctx, int output) const;

 private:
  Tensor buffer_;
  Shape element_;
  int64_t count_ = 0;
  int64_t capacity_ = 0;
};

}  // namespace mge
