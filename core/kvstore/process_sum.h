// SPDX-License-Identifier: Apache-2.0
// Sums of arrays over the processes of a training.
//
// Algorithm: each process sums one part of the array. It receives that part from all others, adds in the order of the ranks,
// and sends the result to all others. Each process sends and receives 2 (n - 1) / n times the bytes of the array, as in a
// ring, and all have the same bits, again in each run. A header goes with each part, so that processes that compute different
// steps notice it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/tensor.h"
#include "core/engine/process_group.h"
#include "core/kvstore/host_sum.h"

namespace mge {

// A step of a training, which must be the same in all processes.
struct ProcessStep {
  int64_t number = 0;    // of the runs of the session, or the position in its random numbers
  int64_t examples = 0;  // of the whole batch
};

// One call at a time.
class ProcessSum {
 public:
  ProcessSum(std::shared_ptr<ProcessGroup> group, HostSum sum)
      : group_(std::move(group)), sum_(std::move(sum)), channel_(group_->NewChannel()) {}

  // Replaces the elements of `array`, of a type that HostSum adds, by the sums over all processes. Fails with kRankFailed,
  // also if a process is at another step or has another number of elements. `step` is null if an earlier call has compared it,
  // and the number of elements follows from it.
  absl::Status AllReduce(Tensor& array, const ProcessStep* step, const GroupWait& wait);
  // Lets the bytes of each process be those of all. The part of process r is [ends[r - 1], ends[r]). Fails with kRankFailed.
  absl::Status AllGather(Tensor& bytes, std::span<const int64_t> ends, const GroupWait& wait);

 private:
  struct Header {
    int64_t step, examples, elements, dtype;
    bool operator==(const Header&) const = default;
  };
  // The memory of exchanges, which must outlive them.
  struct Memory {
    std::vector<Header> headers;  // by rank
    Tensor array, parts, sum;
  };
  // Exchanges headers with all processes, and compares them.
  absl::Status Compare(const Header& mine, const GroupWait& wait);
  absl::Status CompareHeaders() const;

  const std::shared_ptr<ProcessGroup> group_;
  const HostSum sum_;
  const uint32_t channel_;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace mge
