// SPDX-License-Identifier: Apache-2.0
// A group of ranks within one run of a process: a thread per rank, on devices of any backends. mge.AllReduce sums through host
// memory, in the order of the ranks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/tensor.h"
#include "core/kvstore/host_sum.h"
#include "core/plan/communicator.h"
#include "core/plugin/stop.h"

namespace mge {

// Thread-safe. The devices must outlive it and its communicators.
class LocalGroup : public std::enable_shared_from_this<LocalGroup> {
 public:
  LocalGroup(uint32_t ranks, HostSum sum) : sum_(std::move(sum)), operands_(ranks) {}
  uint32_t ranks() const { return static_cast<uint32_t>(operands_.size()); }
  std::shared_ptr<Communicators> RankOf(uint32_t rank);
  // Ends the waits of all ranks. Their steps fail, also later ones.
  void Abort() noexcept;
  // Returns the stop request that Abort() sets, for waits outside of this class.
  const StopControl& stop() const { return stop_; }

  // An array of one rank, in host memory.
  struct Operand {
    const void* data;
    DType dtype;
    int64_t elements;
  };
  // Sums the arrays of all ranks, one sum for each place in `mine`. Waits until all ranks have called it. Returns the sums,
  // which are valid until the rank's next call. Fails with kCancelled after Abort(), with kUnsupportedFeature for types that
  // cannot be summed here or arrays that differ between the ranks.
  absl::StatusOr<std::span<const Tensor>> Sum(uint32_t rank, std::vector<Operand> mine);

 private:
  // Waits until all ranks have called it. The last one calls `complete` before the others go on; all return its status.
  absl::Status Meet(const std::function<absl::Status()>& complete);
  absl::Status SumAll();
  absl::Status Aborted() const;

  const HostSum sum_;
  StopControl stop_;
  std::mutex mutex_;
  std::condition_variable all_met_;
  uint32_t waiting_ = 0;                        // guarded by mutex_
  uint64_t meetings_ = 0;                       // guarded by mutex_
  absl::Status result_ = {};                    // of the latest meeting; guarded by mutex_
  std::vector<std::vector<Operand>> operands_;  // by rank; each rank writes its own before a meeting
  std::vector<Tensor> sums_;                    // written by the last rank in a meeting
};

}  // namespace mge
