// SPDX-License-Identifier: Apache-2.0
// Memory that the caller of a run provides for outputs.
#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plan/plan.h"

namespace mge {

// Returns whether both tensors are defined, in host memory, and have the same bytes of memory.
bool SameMemory(const Tensor& a, const Tensor& b);

// Checks that the memory of output number `i` overlaps no earlier output and no input, except that it may be the memory of the
// input BoundValue::over_input. The run writes it while it reads inputs and writes other outputs. Fails with kBadInput.
absl::Status CheckOwnMemory(const Plan& plan, std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                            size_t i);

// Checks that `given` has that type and shape. `output` is its name. Fails with kBadInput.
absl::Status CheckFits(const std::string& output, DType dtype, const Shape& shape, const Tensor& given);

// Stores `value` as output number `i`. The run has computed it in other memory.
// If the caller provided memory, copies the value there. If it does not fit, replaces a tensor that owns its memory, and
// fails with kBadInput for one that does not. Without memory of the caller, outputs[i] becomes the value itself. If the
// value shares memory with an input or an earlier output, outputs[i] becomes a copy, since the caller may write to outputs.
absl::Status HandOver(const Plan& plan, HostValue value, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                      size_t i, HostAllocator& allocator);

}  // namespace mge
