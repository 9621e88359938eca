// SPDX-License-Identifier: Apache-2.0
// Runs of one candidate outside of any plan: with memory of its own from the device's pool, on a queue where the device has
// them. For measuring, so it is run as a plan would: what may be captured is, and is replayed from then on.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/candidate.h"
#include "core/plan/kernel.h"
#include "core/plugin/sync_queue.h"

namespace mge {

// A device's queue and stamps for the trials of one candidate, one after the other.
class TrialBench {
 public:
  // `stop` (nullable): of whoever waits for the trials; it outlives the bench.
  static absl::StatusOr<std::unique_ptr<TrialBench>> Create(Device& device, const StopControl* stop = nullptr);
  TrialBench(const TrialBench&) = delete;
  TrialBench& operator=(const TrialBench&) = delete;

  Device& device() { return device_; }
  mge_queue* queue() const { return queue_ ? queue_->handle() : nullptr; }  // nullptr on devices without queues
  const int32_t* cancel() const;                                            // for mge_run

  // Where the host reaches what a pool of the device gave; nullptr: nowhere.
  std::byte* HostAddressOf(const mge_reservation& memory) const;
  // Between host memory and what a pool of the device gave. Here and in Time() `owner` of the device's memory is kept for as
  // long as work that failed may still touch it.
  absl::Status ToDevice(std::shared_ptr<void> owner, const mge_reservation& to, const void* from, size_t bytes);
  absl::Status ToHost(std::shared_ptr<void> owner, void* to, const mge_reservation& from, size_t bytes);

  // Runs `launch` once and answers its microseconds: by stamps on the queue if the device takes them, else by the clock.
  // kTimeout if the queue does not finish within a minute. After an error the bench is of no further use.
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
  StopControl never_;  // where there is neither a stop nor a queue
  std::unique_ptr<SyncQueue> queue_;
  std::shared_ptr<Stamps> stamps_;  // nullptr where the clock does
  uint64_t began_ns_ = 0;
};

// What a trial reads: constants as the backend was given them, everything else plain; or bytes in the candidate's layout.
struct TrialInput {
  Tensor tensor = {};
  bool constant = false;
  std::optional<std::span<const std::byte>> laid = {};  // in place of the tensor
};

class Trial : public std::enable_shared_from_this<Trial> {
 public:
  // Prepares, packs and binds. The candidate has no ANY layouts. Errors are those of the backend, kOutOfMemory, kOverBudget.
  static absl::StatusOr<std::shared_ptr<Trial>> Create(TrialBench& bench, const mge_problem& problem,
                                                       const OwnedCandidate& candidate, std::span<const TrialInput> inputs);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  absl::StatusOr<double> Run();  // microseconds
  // From the next run on the step is replayed instead of launched, if it is capture-safe and the device can.
  void Capture();
  // Output number i of the last run, plain; and as it lies there: the bytes themselves where the host reaches them, for as long
  // as the trial is not run again.
  absl::StatusOr<Tensor> Output(size_t i);
  absl::StatusOr<std::shared_ptr<const std::byte>> Laid(size_t i);

  // Device memory that such a trial takes, before anything is prepared; with the reorders of opaque operands. UINT64_MAX: more
  // than can be counted.
  static absl::StatusOr<uint64_t> Bytes(const mge_problem& problem, const OwnedCandidate& candidate);

 private:
  Trial(TrialBench& bench, const OwnedCandidate& candidate)
      : bench_(bench), device_(bench.device()), candidate_(candidate) {}
  mge_code Launch();
  absl::Status SetUp(const mge_problem& problem, std::span<const TrialInput> inputs);
  absl::StatusOr<mge_slot> Take(uint64_t bytes);
  // Host memory to fill a slot from: its own, or what counts against the device's budget. Uninitialised.
  absl::StatusOr<std::shared_ptr<std::byte>> Stage(const mge_slot& slot, uint64_t bytes);
  absl::Status Fill(const mge_slot& slot, std::span<const std::byte> bytes);

  struct Operand {
    TensorType type;
    mge_slot slot;
    uint64_t bytes;
  };

  TrialBench& bench_;  // may be gone when the trial ends
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
  mge_run run_ = {};  // stays where it is: a record may point to it
  mge_error error_;
  void* record_ = nullptr;
};

}  // namespace mge
