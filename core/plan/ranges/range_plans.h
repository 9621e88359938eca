// SPDX-License-Identifier: Apache-2.0
// The range plans of a program: which sizes vary, in which ranges, and whether a range serves them as well as one size.
//
// A model whose inputs always have the same few sizes is best served by a plan for each of them. So ranges begin when a program
// has seen three signatures. Algorithm, for a signature that has no plan:
//   1. The sizes that differ between the signatures seen so far vary. Each has a range: a step of a geometric scale
//      (SizeRange). A range with one size, such as 1, is that size. Sizes near the largest one keep their distance from it, so
//      that the largest sizes of the ranges do not contradict each other: a decoder has a cache of n and a mask of n + 1.
//   2. Looks for a range plan that contains the sizes, and derives a plan from it (range_plan.h).
//   3. If there is none, makes one. The passes have run with unknown sizes once for each set of sizes that vary.
//   4. Passes for a single size may leave less work, and its kernels may be faster. Then the plan of a range serves as many runs of
//      one signature as a plan of its own needs to save the time of its making. If that is less than one run, the range is not used.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/plan/ranges/range_plan.h"

namespace mge {

// The sizes from `first` to `last`.
struct SizeRange {
  int64_t first, last;
  // Returns the range that contains the size. The ranges follow each other. Their last size is at most 1.25 times the first.
  static SizeRange Of(int64_t size);
  bool Has(int64_t size) const { return first <= size && size <= last; }
};

// The range plans of one program, at most kKept. Not thread-safe.
class RangePlans {
 public:
  // Returns the range plans for plans with this context, or nullptr if the settings leave no room for them: plan.ranges is off,
  // each choice of a kernel must depend on its problem only, or choices are recorded or replayed.
  static std::unique_ptr<RangePlans> For(const PlanContext& context);

  // Returns a plan for a signature without one. Returns nullptr if it needs a plan of its own; `why` is then the reason, unless too
  // few signatures were seen. `graph` and `context` are always those of the program. Fails if `stop` (nullable) is set.
  absl::StatusOr<std::shared_ptr<Plan>> PlanFor(const Graph& graph, std::span<const InputType> inputs,
                                                std::span<const IoPlace> outputs,
                                                const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                const ReclaimMemory& reclaim_memory, std::string* why);

  // Counts a run with this plan. Returns true if PlanFor() returned the plan, and it has had so many runs that a plan of its own
  // saves time: once, then never again. Thread-safe.
  bool CountRun(const Plan& plan);
  // Lets the next PlanFor() return nullptr, so that the signature gets a plan of its own.
  void SkipNext() { skips_ = true; }

  // Forgets the ranges, so that their constants can be released. Returns false if there were none. May be called while a plan
  // is made.
  bool Forget();

 private:
  static constexpr int kFirstWithRanges = 3;  // the signature with which ranges begin
  static constexpr size_t kKept = 16;
  static constexpr size_t kMaxCounted = 1024;  // plans whose runs are counted
  static constexpr int kRefusals = 4;  // a range plan that refuses more often than it serves, and so often, is not used

  using Types = std::vector<InputType>;  // of all inputs; kUnknownDim for a size that varies
  // The pattern of a set of sizes that vary, or the reason why it is not used.
  struct Pattern {
    Types types;
    std::shared_ptr<const RangePattern> made = nullptr;
    std::string why = {};
    double more_work = 0;           // than for a single size, as a share
    std::string_view more_op = {};  // the operator of most of it
  };
  struct Range {
    Types first, last;
    std::unique_ptr<RangePlan> plan;  // nullptr: these sizes need plans of their own
    std::string why = {};             // the reason
    int64_t runs = 0;                 // of one signature, before it gets a plan of its own; INT64_MAX: no limit
    std::string why_limited = {};     // the reason for a limit
    int served = 0, refused = 0;
  };

  // Notes the sizes of a signature. Begins anew if the earlier ones had other kinds of inputs.
  void Note(std::span<const InputType> inputs);
  // Returns the pattern for these types and the branches that `inputs` select. It does not serve other sizes if it has a reason.
  // Fails if `stop` is set.
  absl::StatusOr<Pattern*> PatternFor(const Graph& graph, std::span<const InputType> inputs, Types types,
                                      const PlanContext& context, const StopControl* stop);
  static std::string MoreWorkText(const Pattern& pattern);
  Range* Find(std::span<const InputType> inputs);
  absl::StatusOr<Range*> Make(const Graph& graph, std::span<const InputType> inputs,
                              const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                              const ReclaimMemory& reclaim_memory);

  bool skips_ = false;
  std::mutex mutex_;                               // protects left_
  std::unordered_map<const Plan*, int64_t> left_;  // the runs that are left, by plan with a limit
  int seen_ = 0;
  Types seen_types_;  // of the signatures seen; kUnknownDim for a size that differs between them
  std::list<Pattern> patterns_;
  std::list<Range> ranges_;  // the one used last comes first
};

}  // namespace mge
