// SPDX-License-Identifier: Apache-2.0
// A group of ranks within one run of a process: a thread per rank, on devices of any backends. mge.AllReduce sums through host
// memory, in the order of the ranks. mge.Exchange copies from rank to rank: directly where devices are linked, else through
// host memory.
//
// The group may be a part of a larger one, over several processes. Then mge.StartSum sums the arrays of this process, and
// leaves the sum over the processes to a thread of its own (sum_queue.h), for whose end mge.EndSum waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/element_range.h"
#include "core/base/tensor.h"
#include "core/kvstore/host_sum.h"
#include "core/kvstore/sum_queue.h"
#include "core/plan/communicator.h"
#include "core/plugin/stop.h"

namespace mge {

// Thread-safe. The devices must outlive it and its communicators.
class LocalGroup : public std::enable_shared_from_this<LocalGroup> {
 public:
  explicit LocalGroup(uint32_t ranks) : all_(ranks), operands_(ranks), direct_(ranks * ranks, false) {}
  // Set these before the first run.
  void SetSum(HostSum sum) { sum_ = std::move(sum); }
  // The groups of all processes.
  struct Outer {
    uint32_t first = 0, ranks = 0;  // the number of this group's first rank among those of all groups, and of all ranks
    // Replaces the elements by their sums over all groups. `bucket` is that of mge.StartSum; 0: another sum.
    std::function<absl::Status(Tensor& array, uint32_t bucket)> sum = nullptr;
    // Replaces this group's part of the elements by their sums, and changes the others. The part of group g is
    // [ends[g - 1], ends[g]).
    std::function<absl::Status(Tensor& array, std::span<const int64_t> ends, uint32_t bucket)> sum_parts = nullptr;
    // Lets `bytes` have the parts of all groups. The part of group g is [ends[g - 1], ends[g]).
    std::function<absl::Status(Tensor& bytes, std::span<const int64_t> ends)> gather = nullptr;
  };
  void SetOuter(Outer outer) {
    first_ = outer.first;
    all_ = outer.ranks;
    outer_ = std::move(outer);
  }
  void SetDirect(uint32_t from, uint32_t to) { direct_[from * ranks() + to] = true; }  // queues of `to` can copy from `from`
  uint32_t ranks() const { return static_cast<uint32_t>(operands_.size()); }
  uint32_t first() const { return first_; }    // the number of the first rank among those of all groups
  uint32_t all_ranks() const { return all_; }  // of all groups
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
  // The same in two steps. StartSum() returns when the arrays may change. The sums are valid until the next StartSum() of the
  // bucket. With `parts`, EndSum() returns this rank's parts of the sums (PartOfElements()).
  absl::Status StartSum(uint32_t rank, uint32_t bucket, bool parts, std::vector<Operand> mine);
  absl::StatusOr<std::span<const Tensor>> EndSum(uint32_t rank, uint32_t bucket);
  // Joins the parts of all ranks. `mine` are those of this rank, of arrays with `whole` elements (PartOfElements()). Waits until all
  // ranks have called it. Returns the parts of all arrays, which are valid until the rank's next call.
  struct Gathered {
    size_t array;
    int64_t begin;     // in the array, in elements
    const void* data;  // in host memory
    int64_t count;
  };
  absl::StatusOr<std::span<const Gathered>> Gather(uint32_t rank, std::vector<Operand> mine, std::span<const int64_t> whole);

  // Returns the facts of the sums over other groups. Call it between runs.
  struct Sums {
    size_t buckets = 0;
    uint64_t bytes = 0;
    double busy_us = 0, waited_us = 0;  // of all sums so far
  };
  Sums Facts() const;

  // ---- copies from rank to rank
  struct Path {
    uint32_t from, to;
    int64_t key;
    auto operator<=>(const Path&) const = default;
  };
  // Memory that one rank gives to another one to copy from. It must not change until it is released.
  struct Buffer {
    const void* data = nullptr;  // in host memory, or in that of `device` if `fence` is not null
    size_t bytes = 0;
    Device* device = nullptr;
    mge_fence* fence = nullptr;  // the data is there when it has reached `value`
    uint64_t value = 0;
  };
  // The end of the use of a buffer. Without a fence, it has ended.
  struct Released {
    mge_fence* fence = nullptr;
    uint64_t value = 0;
  };
  bool IsDirect(uint32_t from, uint32_t to) const { return direct_[from * ranks() + to]; }
  void Submit(const Path& path, const Buffer& buffer);
  // Waits for a buffer, and begins its use: the caller must call Release(). Fails with kCancelled after Abort().
  absl::StatusOr<Buffer> WaitForBuffer(const Path& path);
  void Release(const Path& path, const Released& released);
  // Returns the end of the use of a buffer, which it removes. After Abort(), a buffer that no rank uses yet has ended.
  Released WaitForRelease(const Path& path);

 private:
  struct Exchanged {
    Buffer buffer;
    bool in_use = false;  // the other rank will set `released`
    std::optional<Released> released;
  };
  // Waits until all ranks have called it. The last one calls `complete` before the others go on; all return its status.
  absl::Status Join(const std::function<absl::Status()>& complete);
  // The results of a sum.
  struct Summed {
    bool parts = false;
    std::vector<Tensor> sums;        // with `parts`, the parts of each rank of this group after those of the one before
    std::map<DType, Tensor> joined;  // all sums, one array per element type: few are to be summed over groups
    std::map<DType, std::vector<int64_t>> ends;  // with `parts`: of each group's part of `joined`
  };
  // Sums the arrays of all ranks of this group.
  absl::Status SumAll(Summed& out);
  absl::Status Place(Summed& out);
  // Calls visit(rank of all groups, array, its part) in the order in which the parts of sums lie in memory.
  void ForEachPart(const std::function<void(uint32_t, size_t, ElementRange)>& visit) const;
  absl::Status SumOverGroups(Summed& sum, uint32_t bucket);
  absl::Status GatherAll(std::span<const int64_t> whole);
  // Runs a job in queue_, after those that are there, and waits for it.
  absl::Status InQueue(SumQueue::Job job);
  absl::Status Aborted() const;

  HostSum sum_;
  uint32_t first_ = 0, all_;
  Outer outer_;
  StopControl stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t waiting_ = 0;                        // guarded by mutex_
  uint64_t joins_ = 0;                          // guarded by mutex_
  absl::Status result_ = {};                    // of the latest Join(); guarded by mutex_
  std::vector<std::vector<Operand>> operands_;  // by rank; each rank writes its own before Join()
  std::vector<bool> direct_;                    // by the rank that sends, then by the one that receives
  std::map<Path, Exchanged> buffers_;           // guarded by mutex_
  Summed whole_;                                // of Sum(); written by the last rank in Join()
  std::map<uint32_t, Summed> buckets_;          // of StartSum(); the same
  Tensor gathered_bytes_;                       // of Gather(); the same
  std::vector<Gathered> gathered_;              // the same
  SumQueue queue_;                              // the last member: its thread uses the others
};

}  // namespace mge
