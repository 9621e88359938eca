// SPDX-License-Identifier: Apache-2.0
// Trials: runs of one candidate outside of any plan, for measuring. A trial has its own memory from the device's pool, and
// uses a queue if the device has queues. It can be captured and replayed, as a plan does with its segments.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/kernel/candidate.h"
#include "core/kernel/kernel.h"
#include "core/plugin/sync_queue.h"

namespace mge {

// A device's queue and time stamps for trials, which use them one after the other. Not thread-safe.
class TrialBench {
 public:
  // Opens the device and creates the queue. `stop` (nullable) ends waits for trials; it must outlive the bench.
  static absl::StatusOr<std::unique_ptr<TrialBench>> Create(Device& device, const StopControl* stop = nullptr);
  TrialBench(const TrialBench&) = delete;
  TrialBench& operator=(const TrialBench&) = delete;

  Device& device() { return device_; }
  mge_queue* queue() const { return queue_ ? queue_->handle() : nullptr; }  // nullptr if the device has no queues
  const int32_t* cancel() const;                                            // stop flag for mge_run::cancel

  // Returns the address by which the host accesses memory of the device's pool, or nullptr if it cannot.
  std::byte* HostAddressOf(const mge_reservation& memory) const;
  // Copies from host memory to memory of the device's pool, and waits. `owner` of the device's memory is kept alive while
  // work that failed may still use it.
  absl::Status ToDevice(std::shared_ptr<void> owner, const mge_reservation& to, const void* from, size_t bytes);
  // Copies from memory of the device's pool to host memory, and waits. The same applies to `owner`.
  absl::Status ToHost(std::shared_ptr<void> owner, void* to, const mge_reservation& from, size_t bytes);

  // Runs `launch` once and returns its time in microseconds: by stamps on the queue if the device has them, else by the
  // clock. Fails with kTimeout if the queue does not finish within a minute. After an error the bench must not be used. The
  // same applies to `owner`.
  template <typename F>
  absl::StatusOr<double> Time(std::shared_ptr<void> owner, F&& launch) {
    if (queue_) queue_->Uses(std::move(owner));
    MGE_RETURN_IF_ERROR(Begin());
    MGE_RETURN_IF_ERROR(launch());
    return End();
  }

 private:
  struct Stamps {
    explicit Stamps(const mge_profile_api& api) : api(api) {}
    ~Stamps();
    const mge_profile_api& api;
    mge_stamp *begin = nullptr, *end = nullptr;
  };
  TrialBench(Device& device, const StopControl* stop) : device_(device), stop_(stop) {}
  absl::Status Take(mge_stamp* stamp);
  absl::Status Begin();
  absl::StatusOr<double> End();

  Device& device_;
  const StopControl* stop_;
  StopControl never_;  // stop flag that is never set, if there is neither a stop nor a queue
  std::unique_ptr<SyncQueue> queue_;
  std::shared_ptr<Stamps> stamps_;  // nullptr: the clock is used
  uint64_t began_ns_ = 0;
};

// An input of a trial: a plain tensor, or bytes that have the candidate's layout already.
struct TrialInput {
  Tensor tensor = {};
  bool constant = false;
  std::optional<std::span<const std::byte>> laid = {};  // if set, used in place of the tensor
};

// A candidate with its memory, ready to run.
class Trial : public std::enable_shared_from_this<Trial> {
 public:
  // Prepares the kernel, packs constants, copies the inputs to the device and binds. The candidate must have no ANY layouts.
  // Fails with the backend's error, kOutOfMemory or kOverBudget.
  static absl::StatusOr<std::shared_ptr<Trial>> Create(TrialBench& bench, const mge_problem& problem,
                                                       const OwnedCandidate& candidate, std::span<const TrialInput> inputs);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Runs once and returns the time in microseconds.
  absl::StatusOr<double> Run();
  // Captures the step if it is capture-safe and the device can capture. Later runs then replay the record.
  void Capture();
  // Returns output number i of the last run as a plain tensor.
  absl::StatusOr<Tensor> Output(size_t i);
  // Returns the bytes of output number i in the candidate's layout. They may be the device's own bytes, which are valid
  // until the next run.
  absl::StatusOr<std::shared_ptr<const std::byte>> Laid(size_t i);

  // Returns the estimated device memory of such a trial, before its kernel is prepared. Includes reorders of opaque
  // operands. Returns UINT64_MAX if the sum overflows.
  static absl::StatusOr<uint64_t> Bytes(const mge_problem& problem, const OwnedCandidate& candidate);

 private:
  Trial(TrialBench& bench, const OwnedCandidate& candidate)
      : bench_(bench), device_(bench.device()), candidate_(candidate) {}
  mge_code Launch();
  absl::Status SetUp(const mge_problem& problem, std::span<const TrialInput> inputs);
  absl::StatusOr<mge_slot> Take(uint64_t bytes);
  // Returns host memory from which Fill() fills a slot: the slot's own if the host can access it, else new memory.
  // Uninitialised.
  absl::StatusOr<std::shared_ptr<std::byte>> Stage(const mge_slot& slot, uint64_t bytes);
  absl::Status Fill(const mge_slot& slot, std::span<const std::byte> bytes);

  struct Operand {
    TensorType type;
    mge_slot slot;
    uint64_t bytes;
  };

  TrialBench& bench_;  // may be destroyed before the trial; the destructor does not use it
  Device& device_;
  const OwnedCandidate candidate_;
  Pool* pool_ = nullptr;
  mge_prepared prepared_ = {};
  KernelHandle kernel_;
  void* state_ = nullptr;
  mge_step_fn fn_ = nullptr;
  std::unique_ptr<std::byte[]> args_;
  std::vector<mge_reservation> memory_;
  std::vector<void*> bases_;
  std::vector<Operand> outputs_;
  mge_run run_ = {};  // never moved: a record may point to it
  mge_error error_;
  void* record_ = nullptr;
};

}  // namespace mge
