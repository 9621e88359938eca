// SPDX-License-Identifier: Apache-2.0
#include "core/engine/output_binding.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns true if the addresses of both tensors are of the same memory: that of one device, or of the host.
bool SameSpace(const Tensor& a, const Tensor& b) {
  const DeviceMemory *x = DeviceMemory::Of(a), *y = DeviceMemory::Of(b);
  const bool x_host = !x || x->on_host(), y_host = !y || y->on_host();
  return x_host || y_host ? x_host && y_host : &x->device() == &y->device();
}

bool Overlap(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const char *x = static_cast<const char*>(a.data()), *y = static_cast<const char*>(b.data());
  return x < y + b.bytes() && y < x + a.bytes() && SameSpace(a, b);
}

bool Overlap(const Tensor& a, const HostValue& b) {
  return Overlap(a, b.tensor) ||
         std::any_of(b.sequence.begin(), b.sequence.end(), [&](const Tensor& t) { return Overlap(a, t); });
}

// Returns true for a tensor whose elements can be copied as bytes.
bool IsPlain(const HostValue& value) {
  return value.kind == ValueKind::kTensor && value.tensor.defined() && value.tensor.dtype() != DType::kString;
}

absl::Status Shared(const std::string& output, std::string_view what, const std::string& other) {
  return Fail(errors::kBadInput, fmt::format("output '{}' is given the memory of {} '{}'", output, what, other),
              {.fix = "give it memory of its own"});
}

}  // namespace

bool SameMemory(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.data() == b.data() && a.bytes() == b.bytes() && DeviceMemory::OnHost(a) &&
         DeviceMemory::OnHost(b);
}

absl::Status CheckOwnMemory(const Plan& plan, std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                            size_t i) {
  const Tensor& given = outputs[i].tensor;
  for (size_t j = 0; j < i; ++j) {
    if (Overlap(given, outputs[j])) return Shared(plan.outputs[i].name, "output", plan.outputs[j].name);
  }
  for (size_t j = 0; j < inputs.size(); ++j) {
    if (static_cast<int32_t>(j) == plan.outputs[i].over_input && SameMemory(given, inputs[j].tensor)) continue;
    if (Overlap(given, inputs[j])) return Shared(plan.outputs[i].name, "input", plan.inputs[j].name);
  }
  return absl::OkStatus();
}

absl::Status CheckFits(const std::string& output, DType dtype, const Shape& shape, const Tensor& given) {
  if (given.dtype() == dtype && given.shape() == shape) return absl::OkStatus();
  return Fail(errors::kBadInput, fmt::format("the memory for output '{}' does not fit", output),
              {.what = fmt::format("expected {}{}, got {}{}", DTypeName(dtype), ShapeText(shape), DTypeName(given.dtype()),
                                   ShapeText(given.shape()))});
}

absl::Status HandOver(const Plan& plan, HostValue value, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                      size_t i, HostAllocator& allocator) {
  Tensor& to = outputs[i].tensor;
  const Tensor& from = value.tensor;
  auto shared = [&](const HostValue& v) { return Overlap(from, v); };
  const bool fits = to.dtype() == from.dtype() && to.shape() == from.shape();
  if (IsPlain(value) && to.defined() && (fits || !to.owner())) {
    MGE_RETURN_IF_ERROR(CheckFits(plan.outputs[i].name, from.dtype(), from.shape(), to));
  } else if (IsPlain(value) && (std::any_of(inputs.begin(), inputs.end(), shared) ||
                                std::any_of(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(i), shared))) {
    MGE_ASSIGN_OR_RETURN(to, Tensor::Create(from.dtype(), from.shape(), allocator));
  } else {
    outputs[i] = std::move(value);
    return absl::OkStatus();
  }
  if (from.bytes()) std::memcpy(to.mutable_data(), from.data(), static_cast<size_t>(from.bytes()));
  return absl::OkStatus();
}

}  // namespace mge
