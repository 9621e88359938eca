// SPDX-License-Identifier: Apache-2.0
// A recorder: observes one run and adds it to a profile.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/engine/run_observer.h"
#include "core/profile/profile.h"

namespace mge {

class Recorder : public RunObserver {
 public:
  // `width`: threads that the run may use; `pool_threads`: ComputePool::thread_count(). The run begins with the engine's first call.
  Recorder(std::shared_ptr<Profile> profile, uint32_t width, uint32_t pool_threads);

  // The run has ended well and is added to the profile; without it nothing is added.
  void Keep();

  void BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view body) override;
  void EndPlan() override;
  void BeginStep(int32_t step) override;
  void EndStep() override;
  void BeginPlanning() override;
  void EndPlanning() override;
  void BeginShare() noexcept override;
  void EndShare() noexcept override;
  void BeginChunk(uint32_t thread) noexcept override;
  void EndChunk(uint32_t thread) noexcept override;

 private:
  // A plan that has begun, with its step that has.
  struct Frame {
    int32_t plan;
    int32_t step = -1;
    int64_t begin = 0, step_begin = 0;
    int64_t nested = 0;  // of the step so far
  };
  // A thread within the step that has begun. Only that thread writes here; the pool orders it before the step's end.
  struct alignas(64) Slot {
    int depth = 0;  // chunks within chunks
    int64_t chunk_begin = 0;
    int64_t begin = -1, end = 0, busy = 0;
  };
  int32_t plan() const { return frames_.empty() ? -1 : frames_.back().plan; }
  void AddNested(int64_t ns);
  void TakeShares(ProfiledSpan& span);

  std::shared_ptr<Profile> profile_;
  ProfiledRun run_;
  std::vector<Frame> frames_;
  std::vector<Slot> slots_;  // of each thread, the run's own first
  int64_t planning_begin_ = 0;
  int64_t share_begin_ = 0;
  int64_t shared_ = 0;  // time of the step within BeginShare() and EndShare()
};

}  // namespace mge
