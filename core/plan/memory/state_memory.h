// SPDX-License-Identifier: Apache-2.0
// The memory of a session's states: values that steps update, and that keep their elements from one run to the next. All
// plans of the session share it. A state lives in the memory of the session's first device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/memory/device_constants.h"
#include "core/plan/plan_context.h"
#include "core/plugin/device.h"

namespace mge {

// The states of a session, and the counter of its random numbers. Thread-safe. The devices must outlive it.
class StateMemory {
 public:
  // Returns the address of a state on the device, for the steps of the device. At the first call, allocates the memory and
  // copies the state's first elements there: those of its initializer, or zeros. Fails with kOverBudget, kOutOfMemory, or
  // kInvalidGraph if another plan knows the state with another type.
  absl::StatusOr<void*> AddressOf(Device& device, const Value& state, const StopControl* stop);
  // Returns a copy of a state's elements. No run may be using the state. Returns an undefined tensor if no run has used it yet.
  // Fails with kOverBudget, kOutOfMemory or the error of the device.
  absl::StatusOr<Tensor> Read(const std::string& name, const StopControl* stop);
  // Copies elements of the state's type, in host memory, to the state. Otherwise like AddressOf(). No run may be using the state.
  absl::Status Write(Device& device, const Value& state, const Tensor& elements, const StopControl* stop);
  // Returns the number of the first Philox block for a run. Each run has 2^32 blocks of its own.
  uint64_t NextRunBlocks() { return runs_.fetch_add(1, std::memory_order_relaxed) << 32; }
  // The number of runs that have drawn random numbers.
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  void set_runs(uint64_t runs) { runs_.store(runs, std::memory_order_relaxed); }

 private:
  struct State {
    TensorType type;
    Device* device = nullptr;
    std::shared_ptr<ConstantBlock> block;  // on a device with memory of its own
    Tensor host;                           // else
    void* address = nullptr;
  };
  std::mutex mutex_;                     // guards states_
  std::map<std::string, State> states_;  // by name
  std::atomic<uint64_t> runs_{0};        // runs that draw random numbers
};

// Returns the states of a plan with their addresses. Creates those that no other plan of the session has used. Fails like
// StateMemory::AddressOf().
absl::StatusOr<std::vector<StateBase>> BindStates(const Graph& graph, const MemoryPlan& memory, const PlanContext& context,
                                                  const StopControl* stop);

}  // namespace mge
