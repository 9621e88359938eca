// SPDX-License-Identifier: Apache-2.0
// Reads values of a run between its steps, for dumps and checks.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plan/plan.h"
#include "core/plugin/sync_queue.h"

namespace mge {

// Reads the values that a plan records (Plan::values). Used for one run at a time, by one thread.
class ValueReader {
 public:
  // `bases` and `dynamic` are those of the instance, which must outlive the reader.
  ValueReader(std::span<void* const> bases, std::span<const HostValue> dynamic) : bases_(bases), dynamic_(dynamic) {}

  // Sets the stop flag of the run, which must live until the run ends.
  void BeginRun(const StopControl& stop) { stop_ = &stop; }
  // Returns the address of a value in a slot.
  void* AddressOf(const RecordedValue& value) const;
  // Returns the bytes of a value in its layout. It must not be dynamic or constant.
  absl::StatusOr<std::vector<std::byte>> Bytes(const RecordedValue& value);
  // Returns the value as a plain tensor. Returns nullopt if it is not a tensor, or if its layout is opaque.
  absl::StatusOr<std::optional<Tensor>> Plain(const RecordedValue& value);
  // Waits, after a failed run, at most `patience` for the copies. Returns false if they have not ended.
  bool Over(std::chrono::nanoseconds patience);

 private:
  const std::span<void* const> bases_;
  const std::span<const HostValue> dynamic_;
  const StopControl* stop_ = nullptr;
  std::map<Device*, std::unique_ptr<SyncQueue>> queues_;
};

}  // namespace mge
