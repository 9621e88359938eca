// SPDX-License-Identifier: Apache-2.0
// Memory that the caller of a run gives for its outputs.
#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plan/plan.h"

namespace mge {

// Output number `i` is written while others are, and while inputs are read: its memory, where it has some, is its own. kBadInput.
absl::Status CheckOwnMemory(const Plan& plan, std::span<const HostValue> inputs, std::span<const HostValue> outputs, size_t i);

// Whether `given` can take such a tensor. kBadInput.
absl::Status CheckFits(const std::string& output, DType dtype, const Shape& shape, const Tensor& given);

// Hands over output number `i`, which a run has made elsewhere: into the caller's memory where there is some, but a tensor that
// owns its memory is replaced where that does not fit, as only the run tells what does; else the value itself; of tensors that share memory with inputs or other outputs a copy, as the caller may write to what he gets.
absl::Status HandOver(const Plan& plan, HostValue value, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                      size_t i, HostAllocator& allocator);

}  // namespace mge
