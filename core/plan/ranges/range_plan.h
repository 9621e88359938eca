// SPDX-License-Identifier: Apache-2.0
// A range plan: the decisions of one plan, from which plans for other sizes are derived.
//
// A text of another length, a longer key-value cache or a wider image needs other arguments for some kernels, but no other
// decision. So the graph, its groups, kernels, layouts, order and offsets are decided once, for the largest sizes of a range.
// Each size of the range then gets a plan that shares all of this. Algorithm, for new sizes:
//   1. Sets the sizes in the graph (range_graph.h). Units that read or write a changed value are stale.
//   2. Asks the backend again whether it offers the chosen kernel for a stale unit, with the same layouts and in-place pairs,
//      and makes the kernel, from the one for other shapes if the backend can (kernel_families.h).
//   3. Checks that what the unit writes fits where the plan for the largest sizes has placed it.
//   4. Binds the stale units. The steps of the others stay.
// If one of these says no, these sizes get a plan of their own, made by all stages.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/plan/bind.h"
#include "core/plan/memory/device_constants.h"
#include "core/plan/planner.h"
#include "core/plan/ranges/range_graph.h"

namespace mge {

// The decisions for one range of sizes. Not thread-safe. Plans that it has made may outlive it.
class RangePlan {
 public:
  // Makes the decisions for `largest`, the types of the inputs at the upper ends of the ranges. `graph` must not have sizes
  // yet. `text` describes the ranges for listings. Fails with absl::StatusCode::kUnimplemented and the reason if such a plan cannot
  // serve other sizes: it has states, bodies, random numbers, or values of unknown shape. Fails like PlanGraph().
  static absl::StatusOr<std::unique_ptr<RangePlan>> Create(std::unique_ptr<RangeGraph> graph,
                                                           std::span<const InputType> largest, std::string text,
                                                           const std::shared_ptr<const PlanContext>& context,
                                                           const StopControl* stop, const ReclaimMemory& reclaim_memory);

  // Returns a plan for these sizes. The plan that it returned last gives up the memory kept for its next run, which this one can
  // then use. Fails with absl::StatusCode::kUnimplemented and the reason if these sizes need a plan of their own, if `stop`
  // (nullable) is set, or if the sizes are wrong for the model.
  absl::StatusOr<std::shared_ptr<Plan>> Derive(std::span<const InputType> inputs, const StopControl* stop);

  // Returns the number of runs after which a plan for a single size has saved the time that it takes to make it. `more_work` is
  // the work that the graph has more than one for a single size, as a share. All times are estimates. INT64_MAX: it saves nothing.
  int64_t RunsUntilExact(double more_work) const;

 private:
  // Steps that were bound together, with their kernels. Plans share them.
  struct Piece {
    BoundSteps bound;
    std::vector<KernelHandle> kernels;
  };

  RangePlan(std::unique_ptr<RangeGraph> graph, std::shared_ptr<const PlanContext> context);
  // Lets large constants stay in memory, if all of them are few bytes. A kernel for another size would read or compute them again,
  // only to be described.
  void KeepConstants();
  void IndexUnits();
  // Marks the units that use changed values. Fails if a packed constant has changed.
  absl::Status MarkStale();
  // Returns whether a stale unit has the problem of the earlier unit that had its problem for the largest sizes.
  bool HasProblemOfEarlier(size_t u) const;
  // Sets the kernel of a stale unit: that of an earlier unit with the same problem, or a new one. Fails if it has other needs than
  // the first one.
  absl::Status Renew(size_t u, Piece& piece);
  // Makes the kernel of a stale unit. Fails if the backend does not offer it for these sizes as it did.
  absl::StatusOr<mge_prepared> Remake(size_t u, Piece& piece);
  // Fails if an output of a stale unit does not fit into its buffer.
  absl::Status CheckFit(size_t u) const;
  absl::Status BindStale(const std::shared_ptr<Piece>& piece, const StopControl* stop);
  void UpdateTypes(std::vector<BoundValue>& bound, const std::vector<ValueId>& values) const;
  // `piece` has what was bound for this plan.
  std::shared_ptr<Plan> Assemble(const Piece& piece) const;

  std::unique_ptr<RangeGraph> graph_;
  std::shared_ptr<const PlanContext> context_;
  std::shared_ptr<const Plan> base_;        // for the largest sizes
  std::unique_ptr<ConstantReader> reader_;  // keeps the constants that backends see in memory; nullptr: they are too large
  PlanStages stages_;
  // By unit: the kernels of base_, which packed the constants. Those of stages_ are the ones made last, and are gone if they
  // were made for sizes that did not fit.
  std::vector<PreparedKernel> first_kernels_;
  std::vector<int32_t> uses_;  // by value
  // By unit: the first unit with the same problem for the largest sizes, as the layers of a decoder have; -1: none.
  std::vector<int32_t> earlier_;
  std::vector<std::vector<int32_t>>
      units_of_value_;                          // those that use it; copies of outputs follow the units of the schedule
  std::vector<int32_t> constant_of_value_;      // index into Plan::constants; -1: none
  std::vector<int32_t> step_of_unit_;           // index into Plan::steps; -1: none
  std::vector<bool> stale_;                     // by unit: its step is for other sizes than the graph's
  std::vector<std::shared_ptr<Piece>> pieces_;  // by unit; nullptr: the step is that of base_
  // The parts of the plan for the sizes of the last call.
  std::vector<Step> steps_;
  std::vector<BoundValue> inputs_, outputs_;
  std::vector<ConstantBase> constants_;
  std::vector<mge_kernel*> states_;
  std::weak_ptr<const Plan> latest_;  // the plan that was derived last
  bool served_ = false;               // true: a plan was derived
  bool unfit_ = false;                // true: a packed constant depends on the sizes
};

}  // namespace mge
