// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/engine/memory_settings.h"
#include "core/engine/plan_services.h"
#include "core/engine/process_group.h"
#include "core/engine/select.h"
#include "core/env/backend_settings.h"
#include "core/plugin/context.h"
#include "core/plugin/transport.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Registers the settings that a backend declares, and reports unknown names that begin with its name. Returns the values of
// the settings in the same order.
absl::StatusOr<std::vector<std::string>> Declare(Registry& registry, std::string_view backend,
                                                 std::span<const mge_setting* const> rows) {
  MGE_ASSIGN_OR_RETURN(std::vector<std::string> values, registry.RegisterBackend(backend, DeclaredSettings(rows)));
  MGE_RETURN_IF_ERROR(registry.CheckNamesOf(backend));
  return values;
}

void PoolParallelFor(void* self, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  auto* pool = static_cast<ComputePool*>(self);
  pool->ParallelFor(chunks, pool->thread_count(), body, context);
}

EngineOptions EngineOptionsOf(const Snapshot& settings) {
  EngineOptions options;
  switch (settings.Get<kEngineType>()) {
    case EngineType::kNaive: options.kind = EngineKind::kNaive; break;
    case EngineType::kThreaded: options.kind = EngineKind::kThreaded; break;
    case EngineType::kThreadedPerDevice: options.kind = EngineKind::kThreadedPerDevice; break;
  }
  options.cpu_workers = static_cast<int>(settings.Get<kCpuWorkers>());
  options.priority_workers = static_cast<int>(settings.Get<kCpuPriorityWorkers>());
  options.gpu_workers = static_cast<int>(settings.Get<kGpuWorkers>());
  options.gpu_copy_workers = static_cast<int>(settings.Get<kGpuCopyWorkers>());
  return options;
}

uint32_t PoolThreads(void* self) { return static_cast<ComputePool*>(self)->thread_count(); }

// Returns the source of a request for devices, for errors.
std::string OriginOfDevice(std::string_view call, const Snapshot& settings) {
  return call.empty() ? settings.OriginOf<kDefaultDevice>().Describe()
                      : fmt::format("device '{}' of the session's options", call);
}

}  // namespace

absl::StatusOr<PluginSearch> PluginSearchOf(const RuntimeOptions& options, const Environment& environment,
                                            const Registry& registry) {
  std::shared_ptr<const Snapshot> settings = registry.snapshot();
  PluginSearch out;
  for (const std::string& path : options.plugin_directories) out.directories.push_back({path, "call"});
  for (const std::string& path : settings->Get<kPluginPath>()) {
    out.directories.push_back({path, settings->OriginOf<kPluginPath>().Describe()});
  }
  if (options.built_in_plugins) {
    if (std::string path = BuiltInPluginDirectory(); !path.empty()) out.directories.push_back({path, "built-in"});
  }
  out.rules.skip = settings->Get<kPluginSkip>();
  if (const std::string& list = settings->Get<kPluginAllow>(); !list.empty()) {
    MGE_ASSIGN_OR_RETURN(out.rules.allow, AllowList::Read(list));
  }
  if (std::string state = StateDirectory(environment); !state.empty()) {
    out.rules.quarantine = Quarantine(state + "/quarantine");
  }
  return out;
}

absl::StatusOr<std::shared_ptr<Runtime>> Runtime::Create(RuntimeOptions options) {
  std::shared_ptr<Runtime> runtime(new Runtime);
  runtime->pool_ = ComputePool::Shared();
  runtime->environment_ = options.sources.environment;
  const Environment& environment = runtime->environment_;
  MGE_ASSIGN_OR_RETURN(runtime->registry_, Registry::Create(std::move(options.sources), options.logger));
  Registry& registry = *runtime->registry_;
  std::shared_ptr<const Snapshot> settings = registry.snapshot();
  MGE_RETURN_IF_ERROR(
      ParseDeviceSpec(settings->Get<kDefaultDevice>(), settings->OriginOf<kDefaultDevice>().Describe()).status());

  MGE_ASSIGN_OR_RETURN(SelectionTools selection,
                       MakeSelection(*settings, UserCacheDirectory(environment), registry.logger()));

  DevicesOptions devices;
  MGE_ASSIGN_OR_RETURN(PluginSearch search, PluginSearchOf(options, environment, registry));
  std::string worker = options.worker;
  if (std::string built_in = BuiltInPluginDirectory(); worker.empty() && !built_in.empty()) {
    worker = built_in.substr(0, built_in.rfind('/')) + "/mge-worker";
  }
  selection.workers = MakeTimingWorkers(registry, std::move(worker), search.directories);
  devices.directories = std::move(search.directories);
  devices.rules = std::move(search.rules);
  devices.quarantine = devices.rules.quarantine;
  devices.start_limit = settings->Get<kPluginStartTimeout>();
  devices.compute = {runtime->pool_, runtime->pool_.get(), PoolParallelFor, PoolThreads};
  devices.settings = [&registry](std::string_view backend, std::span<const mge_setting* const> rows) {
    return Declare(registry, backend, rows);
  };
  devices.core = [&registry](std::string_view key) { return registry.CoreText(key); };
  devices.blobs = {settings->Get<kCacheDir>(), static_cast<uint64_t>(settings->Get<kCacheBytes>().count)};
  if (std::string cache = UserCacheDirectory(environment); devices.blobs.directory.empty() && !cache.empty()) {
    devices.blobs.directory = cache + "/mge/blobs";
  }
  devices.logger = registry.logger();
  MGE_RETURN_IF_ERROR(SetMemory(*settings, devices));
  MGE_ASSIGN_OR_RETURN(runtime->devices_, Devices::Create(std::move(devices)));

  registry.set_tell_backend([devices = runtime->devices_.get()](auto backend, auto key, std::string value) {
    devices->SetOfBackend(backend, key, std::move(value));
  });

  const std::vector<PluginFile> files = runtime->devices_->files();
  std::vector<std::string_view> found;
  for (const PluginFile& file : files) found.push_back(file.name);
  for (const std::string& name : settings->Get<kPluginSkip>()) {
    if (std::find(found.begin(), found.end(), name) != found.end()) continue;
    registry.logger().Warning("plugin.skip names '{}', and no backend that was found has that name.{}", name,
                              DidYouMean(Nearest(name, found)));
  }

  std::vector<std::string> absent, waiting;
  for (const PluginFile& file : files) {
    if (!file.name.empty()) (file.verdict == Verdict::kAccepted ? waiting : absent).push_back(file.name);
  }
  MGE_RETURN_IF_ERROR(registry.CheckUnknown(absent, waiting));
  registry.MarkRead();
  EngineOptions engine = EngineOptionsOf(*registry.snapshot());
  runtime->queue_limits_ = std::make_unique<QueueLimits>(engine.gpu_workers, engine.gpu_copy_workers);
  engine.fork_workers = [&registry] { return static_cast<int>(registry.snapshot()->Get<kForkWorkers>()); };
  runtime->engine_ = std::make_unique<DependencyEngine>(std::move(engine));
  runtime->plan_services_ = MakePlanServices(*runtime, std::move(selection));
  return runtime;
}

absl::StatusOr<std::shared_ptr<ProcessGroup>> Runtime::JoinProcesses(const Launch& launch,
                                                                     std::chrono::nanoseconds timeout) {
  std::lock_guard lock(processes_mutex_);
  if (!processes_) {
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport,
                         JoinTransport(devices_->transports(), launch.ranks, timeout, logger()));
    MGE_ASSIGN_OR_RETURN(processes_, ProcessGroup::Create(std::move(transport), launch.host, timeout));
  }
  return processes_;
}

uint32_t Runtime::Threads() const {
  int64_t threads = registry_->snapshot()->Get<kThreads>();
  if (threads == 0 && engine_->kind() == EngineKind::kNaive) return 1;
  return threads > 0 ? static_cast<uint32_t>(threads) : pool_->thread_count();
}

std::vector<std::string> Runtime::StartBackends() {
  std::vector<std::string> late = devices_->StartAll(registry_->snapshot()->Get<kPluginStartTimeout>());
  if (late.empty()) return late;
  for (const PluginFile& file : devices_->files()) {
    if (file.verdict == Verdict::kAccepted && !file.warning.empty()) {
      logger().Warning("backend '{}' ({}): {}", file.name, file.path, file.warning);
    }
  }
  return late;
}

absl::StatusOr<DeviceSpec> Runtime::Requested(std::string_view call, const Snapshot& settings) const {
  std::optional<DeviceSpec> fallback;
  if (settings.IsSet<kDefaultDevice>()) {
    MGE_ASSIGN_OR_RETURN(fallback, ParseDeviceSpec(settings.Get<kDefaultDevice>(), OriginOfDevice(call, settings)));
  }
  return RequestedDevices(call, fallback);
}

absl::StatusOr<Resolution> Runtime::ResolveDevice(std::string_view call, const Snapshot& settings) const {
  MGE_ASSIGN_OR_RETURN(const DeviceSpec spec, Requested(call, settings));
  return devices_->Resolve(spec, OriginOfDevice(call, settings));
}

void Runtime::WarnOfNeeds(const Snapshot& settings, NeedsOf part) {
  for (const std::string& sentence : UnmetNeeds(settings, part)) {
    std::lock_guard lock(needs_mutex_);
    if (needs_.insert(sentence).second) logger().Warning("{}", sentence);
  }
}

absl::Status Runtime::SetDefaultDevice(std::string_view spec) {
  MGE_RETURN_IF_ERROR(ParseDeviceSpec(spec, "set_default_device").status());
  return registry_->SetThrough("set_default_device", kDefaultDevice.key, spec);
}

}  // namespace mge
