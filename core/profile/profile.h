// SPDX-License-Identifier: Apache-2.0
// A profile: the times of the steps of any number of runs.
//
// It has copies of the steps' descriptions, because the profile may outlive the plans. Times are nanoseconds since the
// creation of the profile.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"

namespace mge {

// The description of a step.
struct ProfiledStep {
  int32_t unit = 0;  // index of the unit in the plan
  Unit::Kind kind = Unit::Kind::kKernel;
  std::vector<std::string> nodes;  // names in the model; empty for steps that the planner added
  std::vector<std::string> ops;
  std::string label;    // the name of the first node, or text such as "reorder of x"
  std::string main_op;  // "reorder" or "copy" for steps that the planner added
  std::string device, queue, kernel;
  bool waits = false;             // it waits for another queue before it begins
  double estimated_us = -1;       // negative: there is no estimate
  double flops = -1, bytes = -1;  // work of one call; negative: unknown before the run
  bool operator==(const ProfiledStep&) const = default;
};

// The description of a plan: the model's plan, or the plan of a body that a step of another plan runs.
struct ProfiledPlan {
  int32_t parent = -1;       // index of the other plan; -1: this is the model's plan
  int32_t parent_step = -1;  // the step of the other plan; -1: the continuation, which runs after all steps
  std::string body = {};     // "then_branch", "continuation" and so on; empty for the model's plan
  std::string device = {};
  std::vector<ProfiledStep> steps;
  bool operator==(const ProfiledPlan&) const = default;
};

// The work of one thread in a step.
struct ThreadShare {
  uint32_t thread = 0;  // 0: the calling thread of the run; else a worker of the compute pool
  int64_t begin = 0, end = 0;
  int64_t busy = 0;  // time of work; end - begin includes waiting
};

// The time of a plan, of a step, or of planning within a run.
struct ProfiledSpan {
  enum class Kind { kPlan, kStep, kPlanning } kind = Kind::kStep;
  int32_t plan = 0;  // index; for kPlanning, of the outer plan, or -1 for planning of the model
  int32_t step = -1;
  int64_t begin = 0, end = 0;
  int64_t nested = 0;                         // kStep: time of the step's bodies and of their planning
  double device_us = -1;                      // kStep: the device's time, by its stamps; negative: unknown
  uint32_t first_share = 0, share_count = 0;  // kStep in the calling thread: range in ProfiledRun::shares
  int64_t own() const { return end - begin - nested; }
};

// The memory of a device at one time: the bytes charged to its budget, by all users.
struct MemorySample {
  int64_t time = 0;
  uint64_t bytes = 0;
  std::string device;
};

struct ProfiledRun {
  int64_t begin = 0, end = 0;
  uint32_t width = 1;               // maximum number of threads
  int64_t caller = 0;               // thread id (gettid) of the calling thread
  std::vector<ProfiledSpan> spans;  // in the order in which they ended
  std::vector<ThreadShare> shares;
  std::vector<MemorySample> memory;  // at the ends of steps and plans; empty unless Profile::samples_memory()
};

struct Recording {
  std::vector<ProfiledPlan> plans;
  std::vector<ProfiledRun> runs;
  uint64_t dropped = 0;  // number of runs that were not kept, see Profile::Add
};

// Removes the times of all steps but copies and those that wait for another queue.
void KeepOnlyWaits(Recording& recording);

// Removes the times of steps that compute operators of the model, or of those that the planner added, unless they are kept.
void KeepSteps(Recording& recording, bool operators, bool added);

// A profile. Thread-safe.
class Profile {
 public:
  explicit Profile(bool samples_memory = false)
      : samples_memory_(samples_memory), begin_(std::chrono::steady_clock::now()) {}

  bool samples_memory() const { return samples_memory_; }
  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
  }
  // Returns the index of a plan that runs as this body of this step. Adds the plan if it is not known.
  int32_t IndexOf(const std::shared_ptr<const Plan>& plan, int32_t parent, int32_t parent_step, std::string_view body);
  // Returns an index of an existing plan, whatever step it ran for, or -1 if it did not run.
  int32_t Find(const Plan& plan) const;
  // Adds a run. If the profile already has kMaxSpans spans, only counts the run in `dropped`.
  void Add(ProfiledRun run);

  Recording Read() const;  // returns a copy
  void Reset();            // removes all runs

  static constexpr size_t kMaxSpans = size_t{1} << 20;

 private:
  struct Known {
    int32_t parent, parent_step;
    std::string body;
    std::weak_ptr<const Plan> plan;
    int32_t index;
  };
  const bool samples_memory_;
  const std::chrono::steady_clock::time_point begin_;
  mutable std::mutex mutex_;
  std::vector<Known> known_;
  Recording recording_;
  size_t spans_ = 0;
};

}  // namespace mge
