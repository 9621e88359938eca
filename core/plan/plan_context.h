// SPDX-License-Identifier: Apache-2.0
// The inputs of planning beside graph and shapes: devices, settings, and what plans share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/env/snapshot.h"
#include "core/plan/first_shapes.h"
#include "core/plan/kernels/faulty_strategies.h"
#include "core/plan/kernels/kernel_families.h"
#include "core/plan/kernels/kernel_rules.h"
#include "core/plan/kernels/selection.h"
#include "core/plan/kernels/unable.h"
#include "core/plan/memory/device_constants.h"
#include "core/plan/plan.h"
#include "core/plan/progress.h"
#include "core/plugin/devices.h"
#include "core/plugin/stop.h"

namespace mge {

class Communicators;  // core/plan/communicator.h
class FallbackLog;    // core/plan/fallback_log.h
class Program;        // core/plan/program.h
class StateMemory;    // core/plan/memory/state_memory.h

// The services of a runtime for the planning of all its sessions. Immutable.
struct PlanServices {
  Device* host = nullptr;  // the built-in device; it runs the core's steps if every other device has queues
  Logger logger = Logger();
  SelectionTools selection = {};
  std::shared_ptr<FallbackLog> fallbacks = nullptr;             // nullptr: fallbacks are not logged
  std::shared_ptr<SharedConstants> shared_constants = nullptr;  // that plans on the same devices share; nullable
  // Calls body(i) for each i < count on `width` threads of the compute pool, in any order. Empty: work is done in the calling
  // thread.
  std::function<void(uint32_t width, uint64_t count, const std::function<void(uint64_t)>& body)> parallel_for = {};
  // Callback for every new plan of `program`; it may set plan.attachment. Receives the `stop` of PlanFor(), which may be
  // nullptr.
  std::function<absl::Status(Plan&, const Program& program, const StopControl*)> on_plan = {};
};

// The state that the plans of one session share. Thread-safe.
struct SessionCaches {
  ConstantPlacing placing = {};
  KernelFamilies families = {};  // kernels that plans for other shapes may be derived from
  UnableKernels unable = {};
  FaultyStrategies faulty_strategies = {};
  FirstShapes first_shapes = {};  // used if plan.static_input_shape is set
};

// The rewrites, passes and claims (BACKEND.NAME) to leave out.
struct SkippedNames {
  std::vector<std::string> names = {};
  std::vector<std::string> vetoes = {};  // a sentence for each rewrite in `names` that a backend forbids
  bool Has(std::string_view name) const;
};

// The context of a session's plans. Immutable while programs use it.
struct PlanContext {
  std::vector<Device*> devices;                 // in order of preference; never empty
  std::vector<std::shared_ptr<Device>> owners;  // keep the devices; may be empty if something else keeps them
  size_t split = 1;                             // number of devices that share the model; the rest compute what these cannot
  uint32_t threads = 1;                         // of the compute pool
  int engine_workers = 1;                       // threads of the engine for the steps of CPUs
  bool training = false;                        // the model is a training step

  std::shared_ptr<const Snapshot> settings;  // never nullptr
  KernelRules kernels;
  SkippedNames skip;

  std::shared_ptr<const PlanServices> services;  // never nullptr
  std::shared_ptr<SessionCaches> caches = std::make_shared<SessionCaches>();
  std::shared_ptr<Communicators> communicators = nullptr;  // the session's rank in a group of ranks; nullptr: it is alone
  std::shared_ptr<Progress> progress = nullptr;            // of loading and planning; nullptr: nobody wants to know
  std::shared_ptr<StateMemory> states = nullptr;           // memory of the session's states; nullptr: there can be none
};

// Returns true if the device has queues. A device with queues has memory of its own.
inline bool HasQueues(const Device& device) { return device.queue_api() != nullptr; }

// Returns the device to which the core's own steps belong: the first device without queues, else the built-in one.
Device& HostStepDevice(const PlanContext& context);

// Returns the most steps of a plan that are one operation of the engine; kAllSteps: a run is one operation.
int32_t StepsPerOperation(const PlanContext& context);

// Calls body(i) for each i < count, on the compute pool if the context has one. Exceptions become errors. Returns the error
// with the lowest i, so that the result does not depend on the threads.
absl::Status ForEachOnPool(const PlanContext& context, uint64_t count, const std::function<absl::Status(uint64_t)>& body);

}  // namespace mge
