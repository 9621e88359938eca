// SPDX-License-Identifier: Apache-2.0
// Recorder: an observer that records one run and adds it to a profile.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/engine/run_observer.h"
#include "core/profile/profile.h"

namespace mge {

// The Share and Chunk functions may be called by several threads at a time, the others only by the run's calling thread.
class Recorder : public RunObserver {
 public:
  // `width` is the maximum number of threads of the run, `pool_threads` is ComputePool::thread_count(). The run's time
  // begins with the engine's first call.
  Recorder(std::shared_ptr<Profile> profile, uint32_t width, uint32_t pool_threads);

  // Ends the run and adds it to the profile. To be called if the run succeeded; without this call nothing is added.
  void Keep();

  void BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view body) override;
  void EndPlan() override;
  void BeginStep(int32_t step) override;
  void StepTime(double us) override { device_us_ = us; }
  void EndStep() override;
  void BeginPlanning() override;
  void EndPlanning() override;
  void BeginShare() noexcept override;
  void EndShare() noexcept override;
  void BeginChunk(uint32_t thread) noexcept override;
  void EndChunk(uint32_t thread) noexcept override;

 private:
  // A running plan and its running step (-1 if there is none).
  struct Frame {
    int32_t plan;
    Device* device;
    int32_t step = -1;
    int64_t begin = 0, step_begin = 0;
    int64_t nested = 0;  // time of bodies and planning in the step
  };
  // The work of one thread in the running step. Only that thread writes it. The pool synchronises it with the step's end.
  struct alignas(64) Slot {
    int depth = 0;  // nesting of chunks
    int64_t chunk_begin = 0;
    int64_t begin = -1, end = 0, busy = 0;
  };
  int32_t plan() const { return frames_.empty() ? -1 : frames_.back().plan; }
  void AddNested(int64_t ns);
  // Records the memory of the present plan's device, if the profile wants it.
  void SampleMemory(int64_t time);
  void TakeShares(ProfiledSpan& span);

  std::shared_ptr<Profile> profile_;
  ProfiledRun run_;
  std::vector<Frame> frames_;
  std::vector<Slot> slots_;  // one per thread, the calling thread first
  double device_us_ = -1;    // of the running step
  int64_t planning_begin_ = 0;
  int64_t share_begin_ = 0;
  int64_t shared_ = 0;  // time of the step between BeginShare() and EndShare()
};

}  // namespace mge
