// SPDX-License-Identifier: Apache-2.0
// A program: a graph and the plans created for it so far, one for each signature of inputs.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/plan.h"
#include "core/plan/plan_cache.h"
#include "core/plan/plan_context.h"
#include "core/plugin/stop.h"

namespace mge {

class RangePlans;  // core/plan/ranges/range_plans.h

// A graph and its plans. Thread-safe.
class Program {
 public:
  // Runs the passes that need no concrete shapes. Fails if the graph is invalid for every input, or with kBadSetting if
  // context->skip has an unknown pass, or if `stop` (nullable) is set. `part` names the program in warnings; it is empty
  // for a whole model.
  static absl::StatusOr<std::shared_ptr<Program>> Create(Graph graph, std::shared_ptr<const PlanContext> context,
                                                         std::string part = {}, const StopControl* stop = nullptr);

  // Returns a program whose PlanFor() always fails with `fault`.
  static std::shared_ptr<Program> Unfit(Graph graph, std::shared_ptr<const PlanContext> context, absl::Status fault);

  const Graph& graph() const { return graph_; }
  // Returns whether the shapes of its plans are those of the model: it is a whole model, not a body or a continuation, and
  // the graph declares the shapes of all inputs.
  bool HasFixedShapes() const;
  const PlanContext& context() const { return *context_; }
  const std::shared_ptr<const PlanContext>& shared_context() const { return context_; }

  // Returns the plan for these inputs, which are in the order of graph().inputs(). Creates it if the cache has none. Plans
  // are created one at a time. Fails with kBadInput if a type disagrees with the declared one. Fails with kCancelled or
  // kTimeout if `stop` (nullable) is set while it measures, uploads, or waits for another thread's plan. `outputs` are the
  // places of the outputs; empty: plain host memory. The places must be on devices with queues of the context.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs, const StopControl* stop = nullptr,
                                                      std::span<const IoPlace> outputs = {});

  // Returns the most recently used plan if it fits these inputs and outputs, else nullptr. `created` is the place of outputs
  // that are not defined. Takes no lock and allocates nothing.
  std::shared_ptr<const Plan> RecentPlanFor(std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                                            const IoPlace& created) {
    return cache_.FindRecent(inputs, outputs, created);
  }

  // Returns the plan that was used last by any caller, or nullptr if there is none.
  std::shared_ptr<const Plan> recent() const;
  // Returns the plans in the cache, the most recently used one first.
  std::vector<std::shared_ptr<const Plan>> plans() const;
  // Returns the bytes of memory that the plans keep for their next runs.
  int64_t IdleBytes() const;

 private:
  Program(Graph graph, std::shared_ptr<const PlanContext> context, std::string part = {});
  absl::Status CheckInputs(std::span<const InputType> inputs) const;
  // Creates a plan. The caller must not hold mutex_.
  absl::StatusOr<std::shared_ptr<const Plan>> Make(std::span<const InputType> inputs, std::span<const IoPlace> outputs,
                                                   const StopControl* stop);
  // Evicts the least recently used plan that holds constants and has no user, or the ranges. Returns false if there is none.
  bool Forget();
  // Warns, once each, about plans that are evicted and created again, and about runs that find no plan. Holds mutex_.
  void WarnOfPlanning(std::span<const InputType> inputs);

  Graph graph_;
  std::shared_ptr<const PlanContext> context_;
  const std::string part_;  // empty: the model
  absl::Status fault_;
  std::vector<std::string> pass_log_;
  mutable std::mutex mutex_;  // not held while a plan is created
  PlanCache cache_;
  std::unique_ptr<RangePlans> ranges_;  // used by the thread that creates a plan; nullptr: there are none
  int64_t calls_ = 0;                   // calls of PlanFor()
  int64_t derived_ = 0;                 // plans that a range plan made
  double planning_s_ = 0;               // total planning time
  bool warned_of_eviction_ = false, warned_of_shapes_ = false;
  bool making_ = false;  // true while a thread creates a plan
  std::condition_variable made_;
};

}  // namespace mge
