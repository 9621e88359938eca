// SPDX-License-Identifier: Apache-2.0
// A group of ranks within one run of a process: a thread per rank, on devices of any backends. mge.AllReduce sums through host
// memory, in the order of the ranks. mge.Exchange copies from rank to rank: directly where devices are linked, else through
// host memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/kvstore/host_sum.h"
#include "core/plan/communicator.h"
#include "core/plugin/stop.h"

namespace mge {

// Thread-safe. The devices must outlive it and its communicators.
class LocalGroup : public std::enable_shared_from_this<LocalGroup> {
 public:
  explicit LocalGroup(uint32_t ranks) : operands_(ranks), direct_(ranks * ranks, false) {}
  // Set these before the first run.
  void SetSum(HostSum sum) { sum_ = std::move(sum); }
  // Lets the sums of these ranks be summed over other groups too: `outer` replaces the elements by those sums.
  using OuterSum = std::function<absl::Status(Tensor& array)>;
  void SetOuter(OuterSum outer) { outer_ = std::move(outer); }
  void SetDirect(uint32_t from, uint32_t to) { direct_[from * ranks() + to] = true; }  // queues of `to` can copy from `from`
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
  absl::Status SumAll();
  // Lets sums_ be parts of one array per element type, so that few arrays are to be summed over other groups.
  absl::Status Place();
  absl::Status Aborted() const;

  HostSum sum_;
  OuterSum outer_;
  StopControl stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t waiting_ = 0;                        // guarded by mutex_
  uint64_t joins_ = 0;                          // guarded by mutex_
  absl::Status result_ = {};                    // of the latest Join(); guarded by mutex_
  std::vector<std::vector<Operand>> operands_;  // by rank; each rank writes its own before Join()
  std::vector<bool> direct_;                    // by the rank that sends, then by the one that receives
  std::map<Path, Exchanged> buffers_;           // guarded by mutex_
  std::map<DType, Tensor> joined_;              // the memory of sums_; written by the last rank in Join()
  std::vector<Tensor> sums_;                    // the same
};

}  // namespace mge
