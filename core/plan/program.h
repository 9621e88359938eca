// SPDX-License-Identifier: Apache-2.0
// A program: a graph and the plans made of it so far, one for each signature of inputs.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/plan.h"
#include "core/plan/plan_cache.h"
#include "core/plan/unable.h"
#include "core/plugin/stop.h"

namespace mge {

struct SelectionTools;  // core/plan/selection.h

// What a plan depends on beside graph and shapes. Immutable while programs use it.
struct PlanContext {
  std::vector<Device*> devices;  // in order of preference; never empty
  size_t split = 1;              // the model is divided among the first `split` of them; the others take what those cannot do
  Device* host = nullptr;        // the built-in device: steps of the core beside devices with queues
  uint32_t threads = 1;
  std::optional<int32_t> select_mode = {};  // MGE_SELECT_..., the user's; none: what each device's backend names
  uint64_t require = 0;  // attributes that every chosen kernel must have
  uint64_t forbid = 0;   // and those that none may have
  std::vector<std::string> guard = {};  // the same in words, with the settings that say so
  std::shared_ptr<const SelectionTools> selection = nullptr;  // nullptr: times are taken, and neither remembered nor frozen
  uint64_t workspace_limit = UINT64_MAX;
  bool in_place = true;
  bool guarded = false;           // Plan::guarded
  std::vector<std::string> skip;  // passes, rewrites and claims (BACKEND.NAME) to leave out
  PlanCacheLimits cache = {};     // of the plans that a program keeps
  Logger logger = Logger();
  std::shared_ptr<SharedConstants> shared_constants;  // of plans that use the same devices; nullable
  std::shared_ptr<UnableKernels> unable = std::make_shared<UnableKernels>();
  // Called once for every new plan; may set plan.attachment. With what PlanFor() was given to stop it.
  std::function<absl::Status(Plan&, const StopControl*)> on_plan;
};

// Whether the device has queues, and so memory of its own.
inline bool HasQueues(const Device& device) { return device.queue_api() != nullptr; }

// The device in whose name steps of the core run: the first without queues, else the built-in one.
Device& HostStepDevice(const PlanContext& context);

// How kernels of the device are chosen. MGE_SELECT_...
int32_t SelectModeOn(const PlanContext& context, const Device& device);

// What is asked of kernels of the device.
mge_constraints ConstraintsOn(const PlanContext& context, const Device& device);

class Program {
 public:
  // Runs the passes that need no concrete shapes. Fails where the graph is wrong whatever its inputs, and where the
  // context skips what does not exist. `part` names the program in warnings if it is a part of a model.
  static absl::StatusOr<std::shared_ptr<Program>> Create(Graph graph, std::shared_ptr<const PlanContext> context,
                                                         std::string part = {});

  // Returns a program that makes no plan: PlanFor() fails with `fault`.
  static std::shared_ptr<Program> Unfit(Graph graph, std::shared_ptr<const PlanContext> context, absl::Status fault);

  const Graph& graph() const { return graph_; }
  const PlanContext& context() const { return *context_; }
  const std::shared_ptr<const PlanContext>& shared_context() const { return context_; }

  // The plan for these inputs (in the order of graph().inputs()), from the cache or made now. Thread-safe; plans are made
  // one at a time. Input types must agree with the declared ones: kBadInput prints expected against got. `stop` (nullable)
  // ends what is waited for meanwhile: kernels that are timed, uploads, a plan that another thread makes.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs, const StopControl* stop = nullptr);

  // What PlanFor() answered last, for whomever; nullptr before.
  std::shared_ptr<const Plan> recent() const;
  // Those that are kept, the one used last first.
  std::vector<std::shared_ptr<const Plan>> plans() const;
  // Bytes of memory that its plans keep for their next runs.
  int64_t IdleBytes() const;

 private:
  Program(Graph graph, std::shared_ptr<const PlanContext> context, std::string part = {});
  absl::Status CheckInputs(std::span<const InputType> inputs) const;
  // Not under the lock.
  absl::StatusOr<std::shared_ptr<const Plan>> Make(std::span<const InputType> inputs, const StopControl* stop);
  // Forgets the plan used longest ago of those that hold constants and that nobody uses; whether there was one.
  bool Forget();
  // Warns, once each, of plans that are evicted and made again, and of runs that find no plan. Under the lock.
  void WarnOfPlanning(std::span<const InputType> inputs);

  Graph graph_;
  std::shared_ptr<const PlanContext> context_;
  const std::string part_;  // empty: the model
  absl::Status fault_;
  std::vector<std::string> pass_log_;
  mutable std::mutex mutex_;  // not held while a plan is made
  PlanCache cache_;
  int64_t calls_ = 0;      // of PlanFor()
  double planning_s_ = 0;  // in all
  bool warned_of_eviction_ = false, warned_of_shapes_ = false;
  bool making_ = false;  // a thread makes a plan
  std::condition_variable made_;
};

// Makes a plan of a copy of `graph` whose inputs have these types. Where it does not fit into memory, `make_room` is called for
// as long as it answers that something has been given up. Used by Program.
absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                const std::shared_ptr<const PlanContext>& context,
                                                const StopControl* stop, const std::function<bool()>& make_room);

}  // namespace mge
