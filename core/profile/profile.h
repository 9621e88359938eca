// SPDX-License-Identifier: Apache-2.0
// A profile: the times of the steps of any number of runs.
//
// It holds copies of what names a step, because plans may go while the profile stays. Times are nanoseconds since the profile was
// made.
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

struct ProfiledStep {
  int32_t unit = 0;  // index in the plan
  Unit::Kind kind = Unit::Kind::kKernel;
  std::vector<std::string> nodes;  // names in the model; empty for what the planner added
  std::vector<std::string> ops;
  std::string label;    // the first node, or "reorder of x"
  std::string main_op;  // "reorder" or "copy" for what the planner added
  std::string device, queue, kernel;
  double estimated_us = -1;  // negative: there is no estimate
  double flops = -1, bytes = -1;  // of one call; negative: known only in the run
  bool operator==(const ProfiledStep&) const = default;
};

// A plan as a run saw it: the model's, or that of a body that a step of another plan runs.
struct ProfiledPlan {
  int32_t parent = -1;       // index of the other plan; -1: the model's
  int32_t parent_step = -1;  // in it; -1: the continuation, which runs after all steps
  std::string body = {};     // "then_branch", "continuation"; empty: the model's
  std::string device = {};
  std::vector<ProfiledStep> steps;
  bool operator==(const ProfiledPlan&) const = default;
};

// The part that a thread has in a step.
struct ThreadShare {
  uint32_t thread = 0;  // 0: the run's own; else a worker of the compute pool
  int64_t begin = 0, end = 0;
  int64_t busy = 0;  // less than end - begin where it waited
};

struct ProfiledSpan {
  enum class Kind { kPlan, kStep, kPlanning } kind = Kind::kStep;
  int32_t plan = 0;  // index; of the plan around it for kPlanning, -1 before the model's
  int32_t step = -1;
  int64_t begin = 0, end = 0;
  int64_t nested = 0;     // kStep: time of bodies and of planning them
  uint32_t first_share = 0, share_count = 0;  // kStep, in the calling thread
  int64_t own() const { return end - begin - nested; }
};

struct ProfiledRun {
  int64_t begin = 0, end = 0;
  uint32_t width = 1;    // threads that it may use
  int64_t caller = 0;    // the system's number of its thread
  std::vector<ProfiledSpan> spans;  // in the order in which they ended
  std::vector<ThreadShare> shares;
};

struct Recording {
  std::vector<ProfiledPlan> plans;
  std::vector<ProfiledRun> runs;
  uint64_t dropped = 0;  // runs beyond what a profile keeps
};

// Thread-safe.
class Profile {
 public:
  Profile() : begin_(std::chrono::steady_clock::now()) {}

  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
  }
  // The index of a plan that runs now, in this place.
  int32_t IndexOf(const std::shared_ptr<const Plan>& plan, int32_t parent, int32_t parent_step, std::string_view body);
  // The index of a plan that still lives, from any place in which it ran; -1 if it did not.
  int32_t Find(const Plan& plan) const;
  // Keeps a run, unless there are kMostSpans spans already.
  void Add(ProfiledRun run);

  Recording Read() const;
  void Reset();  // forgets all runs

  static constexpr size_t kMostSpans = size_t{1} << 20;

 private:
  struct Known {
    int32_t parent, parent_step;
    std::string body;
    std::weak_ptr<const Plan> plan;
    int32_t index;
  };
  const std::chrono::steady_clock::time_point begin_;
  mutable std::mutex mutex_;
  std::vector<Known> known_;
  Recording recording_;
  size_t spans_ = 0;
};

}  // namespace mge
