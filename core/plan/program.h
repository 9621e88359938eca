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

#include "core/base/log.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/kernels/unable.h"
#include "core/plan/memory/share.h"
#include "core/plan/plan.h"
#include "core/plan/plan_cache.h"
#include "core/plugin/stop.h"

namespace mge {

struct SelectionTools;  // core/plan/kernels/selection.h
class Communicators;    // core/plan/communicator.h
class FirstShapes;      // core/plan/first_shapes.h
class KernelFamilies;   // core/plan/kernels/kernel_families.h
class StateMemory;      // core/plan/memory/state_memory.h
class FallbackLog;      // core/plan/fallback_log.h

// The choice of the kernels of convolutions on GPUs.
struct GpuConvolutions {
  int32_t mode = MGE_SELECT_HEURISTIC;    // MGE_SELECT_...
  uint64_t workspace_limit = UINT64_MAX;  // bytes per kernel
};

// The inputs of planning beside graph and shapes: devices and settings. Immutable while programs use it.
struct PlanContext {
  std::vector<Device*> devices;                 // in order of preference; never empty
  std::vector<std::shared_ptr<Device>> owners;  // keep the devices; may be empty if something else keeps them
  size_t split = 1;                             // number of devices that share the model; the rest compute what these cannot
  Device* host = nullptr;  // the built-in device; it runs the core's steps if every other device has queues
  uint32_t threads = 1;
  std::optional<int32_t> select_mode = {};  // MGE_SELECT_..., set by the user; nullopt: the mode of each device's backend
  uint64_t require = 0;                     // attributes that every chosen kernel must have
  uint64_t forbid = 0;                      // attributes that no chosen kernel may have
  bool only_deterministic = false;          // an operator whose only kernels are not deterministic is an error
  std::vector<std::string> kernel_restrictions = {};  // `require` and `forbid` as text, with the settings they come from
  std::shared_ptr<const SelectionTools> selection = nullptr;  // nullptr: kernels may be timed; times are not stored
  uint64_t workspace_limit = UINT64_MAX;                      // bytes per kernel
  std::optional<GpuConvolutions> gpu_convolutions = {};       // nullopt: they are chosen like other kernels
  bool in_place = true;
  bool bulk = true;                      // false: steps are operations of the engine (Plan::accesses)
  int32_t operation_steps = 1;           // the most steps of one operation, if `bulk` is false
  MatchRange match_range = {};           // for buffers that share memory
  std::optional<int32_t> num_temp = {};  // workspaces per device, and compute queues in use; nullopt: as many as help
  // The same for kernels without queues, if their steps are operations of the engine. nullopt: each has its own workspace.
  std::optional<int32_t> operation_lanes = {};
  bool host_compute = false;  // the core computes small elementwise nodes if their inputs are in host memory
  std::shared_ptr<FirstShapes> first_shapes = nullptr;  // the only shapes of the model's inputs; nullptr: all are allowed
  std::optional<int64_t> parallel_copy_elements =
      {};                                       // the core's copies of so many elements use threads; nullopt: by bytes
  bool peer_copies = true;                      // false: copies between GPUs go through host memory
  bool record_values = false;                   // fill Plan::values
  std::shared_ptr<FallbackLog> fallbacks = {};  // nullptr: fallbacks are not logged
  bool red_zones = false;                       // Plan::red_zones
  std::vector<std::string> skip;                // passes, rewrites and claims (BACKEND.NAME) to leave out
  std::vector<std::string> vetoes;              // a sentence for each rewrite in `skip` that a backend forbids
  PlanCacheLimits cache = {};                   // limits of each program's plan cache
  Logger logger = Logger();
  std::shared_ptr<SharedConstants> shared_constants;  // constants that plans on the same devices share; nullable
  std::shared_ptr<ConstantPlacing> placing = std::make_shared<ConstantPlacing>();
  std::shared_ptr<Communicators> communicators = nullptr;  // the session's rank in a group of ranks; nullptr: it is alone
  std::shared_ptr<StateMemory> states = nullptr;           // memory of the session's states; nullptr: there can be none
  std::shared_ptr<KernelFamilies> families = nullptr;  // kernels that plans for other shapes may be derived from; nullable
  std::shared_ptr<UnableKernels> unable = std::make_shared<UnableKernels>();
  // Calls body(i) for each i < count on the compute pool, in any order. Empty: work is done in the calling thread.
  std::function<void(uint64_t count, const std::function<void(uint64_t)>& body)> parallel_for = {};
  // Callback for every new plan of `program`; it may set plan.attachment. Receives the `stop` of PlanFor(), which may be
  // nullptr.
  std::function<absl::Status(Plan&, const Program& program, const StopControl*)> on_plan;
};

// Returns true if the device has queues. A device with queues has memory of its own.
inline bool HasQueues(const Device& device) { return device.queue_api() != nullptr; }

// Returns the device to which the core's own steps belong: the first device without queues, else the built-in one.
Device& HostStepDevice(const PlanContext& context);

// Returns true if one of the nodes is a convolution whose kernels PlanContext::gpu_convolutions chooses on this device.
bool IsTunedConvolution(const PlanContext& context, const Device& device, const Graph& graph, std::span<const NodeId> nodes);

// Returns the mode (MGE_SELECT_...) by which kernels of the device are chosen. `tuned` is IsTunedConvolution().
int32_t SelectModeOn(const PlanContext& context, const Device& device, bool tuned = false);

// Returns the constraints for kernels of the device: required and forbidden attributes, and the workspace limit.
mge_constraints ConstraintsOn(const PlanContext& context, const Device& device, bool tuned = false);

// Calls body(i) for each i < count, on the compute pool if the context has one. Exceptions become errors. Returns the error
// with the lowest i, so that the result does not depend on the threads.
absl::Status ForEachOnPool(const PlanContext& context, uint64_t count, const std::function<absl::Status(uint64_t)>& body);

// A graph and its plans. Thread-safe.
class Program {
 public:
  // Runs the passes that need no concrete shapes. Fails if the graph is invalid for every input, or with kBadSetting if
  // context->skip names an unknown pass, or if `stop` (nullable) is set. `part` names the program in warnings; it is empty
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
  // Evicts the least recently used plan that holds constants and has no user. Returns false if there is none.
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
  int64_t calls_ = 0;      // calls of PlanFor()
  double planning_s_ = 0;  // total planning time
  bool warned_of_eviction_ = false, warned_of_shapes_ = false;
  bool making_ = false;  // true while a thread creates a plan
  std::condition_variable made_;
};

// Creates a plan of a copy of `graph` whose inputs have these types, with outputs in these places (empty: host memory). If
// the plan does not fit into memory, calls `reclaim_memory` and tries again, until it fits or `reclaim_memory` returns false
// (it released nothing). Used by Program.
absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                std::span<const IoPlace> outputs,
                                                const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                const std::function<bool()>& reclaim_memory);

}  // namespace mge
