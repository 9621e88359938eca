// SPDX-License-Identifier: Apache-2.0
// Sums of arrays over the processes of a training.
//
// Algorithm: each process sums one part of the array. It receives that part from all others, adds in the order of the ranks,
// and sends the result to all others. Each process sends and receives 2 (n - 1) / n times the bytes of the array, as in a
// ring. For a small array, the number of rounds counts more than the bytes: then each process receives all arrays, and sums all
// elements. If several hosts have several processes each, those of a host sum first (sum_path.h). All processes have the same
// bits, again in each run. Headers go first, so that processes that compute different steps notice it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/element_range.h"
#include "core/base/tensor.h"
#include "core/engine/process_group.h"
#include "core/kvstore/host_sum.h"
#include "core/kvstore/sum_path.h"

namespace mge {

// A step of a training, which must be the same in all processes.
struct ProcessStep {
  int64_t number = 0;    // of the runs of the session, or the position in its random numbers
  int64_t examples = 0;  // of the whole batch
};

// One call at a time.
class ProcessSum {
 public:
  ProcessSum(std::shared_ptr<ProcessGroup> group, HostSum sum);

  // Replaces the elements of `array`, of a type that HostSum adds, by the sums over all processes. Fails with kRankFailed,
  // also if a process is at another step or has another number of elements. `step` is null if an earlier call has compared it,
  // and the number of elements follows from it. `path`: nullopt chooses the fastest one; all processes must give the same.
  // Requires: kHosts only if shape() has several hosts.
  absl::Status AllReduce(Tensor& array, const ProcessStep* step, const GroupWait& wait,
                         std::optional<SumPath> path = std::nullopt);
  // Replaces the part of this process, which is [ends[rank - 1], ends[rank]) of the elements, by the sums over all processes. It
  // has the same bits as after AllReduce() on one host. The other elements stay. `step` as above. Fails with kRankFailed.
  absl::Status ReduceScatter(Tensor& array, std::span<const int64_t> ends, const ProcessStep* step, const GroupWait& wait);
  // Lets the bytes of each process be those of all. The part of process r is [ends[r - 1], ends[r]). Fails with kRankFailed.
  absl::Status AllGather(Tensor& bytes, std::span<const int64_t> ends, const GroupWait& wait);

  // The hosts, if all have the same number of processes; else one host for each process.
  const GroupShape& shape() const { return shape_; }

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
  // Sums so many elements of the arrays of all ranks into `to`, which may be one of them.
  void Add(DType dtype, std::span<const void* const> arrays, void* to, int64_t elements);
  // Returns the number of elements that are summed at once. One thread sums pieces that stay in its cache until they are copied.
  int64_t PieceFor(int64_t elements) const;
  absl::Status SumWhole(Tensor& array, const GroupWait& wait);
  // Ranks that share a range of elements: each member has a part, in the order of the members. This rank is a member.
  struct Team {
    std::span<const uint32_t> members;
    std::vector<ElementRange> parts;
    size_t IndexOf(uint32_t rank) const;
  };
  static Team EvenTeam(std::span<const uint32_t> members, ElementRange range);
  // Sums the elements of this rank's part over the team.
  absl::Status SumPart(Tensor& array, const Team& team, const GroupWait& wait);
  // Sends this rank's part to the team, and receives the others.
  absl::Status GatherParts(Tensor& array, const Team& team, const GroupWait& wait);
  absl::Status SumOverHosts(Tensor& array, const GroupWait& wait);

  const std::shared_ptr<ProcessGroup> group_;
  const HostSum sum_;
  const uint32_t channel_;
  GroupShape shape_;
  std::vector<uint32_t> all_, local_, peers_;  // all ranks; those of this host; those with the same place on their hosts
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace mge
