// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a model and runs it once with limited memory. The mutation tests and the fuzz harness use it.
#pragma once

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/onnx/reader.h"
#include "core/ops/interpreter.h"

namespace mge {

// An allocator that fails once the total of all allocations, freed ones included, exceeds a limit. This limits time, too.
class BoundedAllocator : public HostAllocator {
 public:
  explicit BoundedAllocator(int64_t bytes) : left_(bytes) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > left_) return Fail(errors::kOverBudget, "over the budget of the test");
    left_ -= bytes;
    return UnlimitedHostAllocator().Allocate(bytes);
  }

 private:
  int64_t left_;
};

// Returns a tensor of small numbers that differ from each other.
inline absl::StatusOr<Tensor> SmallNumbers(DType dtype, const Shape& shape, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, shape, allocator));
  if (dtype == DType::kString) return out;
  if (out.bytes() > 0) std::memset(out.mutable_data(), 0, static_cast<size_t>(out.bytes()));
  DispatchNumeric(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int i = 0;
    for (T& v : out.MutableData<T>()) v = static_cast<T>(static_cast<float>(i++ % 5));
  });
  return out;
}

// Reads, verifies, infers types and runs. Unknown dimensions of inputs become 1. Returns the first error.
// Sets `*promise_kept` to false if the error is kInternal or the reader returned an ill-formed graph.
inline absl::Status ReadAndRun(Bytes bytes, bool* promise_kept) {
  *promise_kept = true;
  constexpr int64_t kBudget = 32 << 20;
  constexpr auto kTime = std::chrono::seconds(2);
  BoundedAllocator allocator(kBudget);
  onnx::ReadOptions options;
  options.allocator = &allocator;
  options.max_nodes = 10'000;
  options.max_expansions = 10'000;
  auto check = [&](absl::Status status) {
    int id = ErrorId(status);
    if (!status.ok() && (id == 0 || id == errors::kInternal.id)) *promise_kept = false;
    return status;
  };
  auto model = onnx::ReadModelBytes(bytes, nullptr, options);
  if (!model.ok()) return check(model.status());
  if (absl::Status status = VerifyGraph(model->graph); !status.ok()) {
    *promise_kept = false;
    return status;
  }
  MGE_RETURN_IF_ERROR(check(InferTypes(model->graph)));
  std::vector<HostValue> inputs;
  for (ValueId id : model->graph.inputs()) {
    const Value& value = model->graph.value(id);
    HostValue input;
    input.kind = value.kind;
    input.present = false;
    if (value.kind == ValueKind::kTensor) {
      Shape shape = value.type.dims;
      for (int64_t& d : shape) d = d < 0 ? 1 : d;
      auto tensor = SmallNumbers(value.type.dtype, shape, allocator);
      if (!tensor.ok()) return check(tensor.status());
      input.tensor = *std::move(tensor);
    }
    inputs.push_back(std::move(input));
  }
  auto deadline = std::chrono::steady_clock::now() + kTime;
  int steps = 0;
  auto stop = [&] {
    bool enough = ++steps > 10'000 || std::chrono::steady_clock::now() > deadline;
    return enough ? Fail(errors::kTimeout, "enough") : absl::OkStatus();
  };
  return check(Interpret(model->graph, std::move(inputs), allocator, stop).status());
}

}  // namespace mge
