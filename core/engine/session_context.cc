// SPDX-License-Identifier: Apache-2.0
#include "core/engine/session_context.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/static_memory.h"
#include "core/plan/communicator.h"
#include "core/plan/memory/state_memory.h"
#include "core/plan/passes/veto.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Sets the devices of `out`: those that share the model, then those that compute what the first ones cannot.
absl::Status SetDevices(const Resolution& found, PlanContext& out) {
  auto add = [&](const DeviceUse& use) -> absl::Status {
    Device* device = use.device;
    if (!device->Is(MGE_DEVICE_HOST_ACCESSIBLE) && !device->queue_api()) {
      return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be used", device->name()),
                  {.what = "the host cannot reach its memory, and its backend has no queues that copy"});
    }
    if (std::find(out.devices.begin(), out.devices.end(), device) != out.devices.end()) return absl::OkStatus();
    out.devices.push_back(device);
    out.owners.push_back(use.owner);
    return absl::OkStatus();
  };
  for (const DeviceUse& use : found.devices) MGE_RETURN_IF_ERROR(add(use));
  out.split = out.devices.size();
  for (const DeviceUse& use : found.fallbacks) MGE_RETURN_IF_ERROR(add(use));
  return absl::OkStatus();
}

// Returns the number of threads of a session: the option's, else the device's, else the runtime's.
uint32_t ThreadsOf(const Runtime& runtime, const SessionOptions& options, const DeviceUse& first) {
  if (options.threads > 0) return static_cast<uint32_t>(options.threads);
  if (first.threads > 0) return static_cast<uint32_t>(first.threads);
  return first.synchronous ? 1 : runtime.Threads();
}

// Returns the session's place in a group of ranks, or nullptr if it is alone.
absl::StatusOr<std::shared_ptr<Communicators>> CommunicatorsOf(const Snapshot& settings) {
  CollectiveGroup group;
  group.ranks = static_cast<uint32_t>(settings.Get<kCollectiveRanks>());
  group.rank = static_cast<uint32_t>(settings.Get<kCollectiveRank>());
  group.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(settings.Get<kCollectiveTimeout>());
  if (group.rank >= group.ranks) {
    return Fail(errors::kBadSetting,
                fmt::format("collective.rank is {}, but the group has {} ranks", group.rank, group.ranks),
                {.where = settings.OriginOf<kCollectiveRank>().Describe(),
                 .fix = "set collective.ranks to the number of ranks, and collective.rank to a number below it"});
  }
  if (group.ranks == 1) return nullptr;
  absl::StatusOr<CollectiveId> id = ParseCollectiveId(settings.Get<kCollectiveId>());
  if (!id.ok()) return AddWhere(id.status(), settings.OriginOf<kCollectiveId>().Describe());
  group.id = *id;
  return std::make_shared<BackendCommunicators>(group);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PlanContext>> MakePlanContext(Runtime& runtime, const SessionOptions& options,
                                                                   std::shared_ptr<const Snapshot> settings,
                                                                   const Resolution& found) {
  auto out = std::make_shared<PlanContext>();
  out->services = runtime.plan_services();
  MGE_RETURN_IF_ERROR(SetDevices(found, *out));
  const DeviceUse& first = found.devices.front();
  out->threads = ThreadsOf(runtime, options, first);
  if (first.threads > 0) runtime.pool().Reserve(out->threads);
  out->engine_workers = runtime.engine().cpu_workers();
  out->training = options.training;
  MGE_ASSIGN_OR_RETURN(out->kernels, KernelRules::Of(*settings, out->devices, out->services->selection.replay != nullptr));
  std::vector<std::string> skip = settings->Get<kPlanSkip>();
  skip.insert(skip.end(), options.skip.begin(), options.skip.end());
  MGE_ASSIGN_OR_RETURN(out->skip, WithVetoes(std::move(skip), out->devices, *settings));
  MGE_RETURN_IF_ERROR(CheckPools(*settings, out->devices, runtime.logger()));
  out->states = std::make_shared<StateMemory>();
  out->progress = options.progress;
  out->communicators = options.communicators;
  if (!out->communicators) {
    MGE_ASSIGN_OR_RETURN(out->communicators, CommunicatorsOf(*settings));
  }
  out->settings = std::move(settings);
  return std::shared_ptr<const PlanContext>(std::move(out));
}

}  // namespace mge
