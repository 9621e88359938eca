// SPDX-License-Identifier: Apache-2.0
#include "core/conform/backend_under_test.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/nearest.h"
#include "core/conform/allocations.h"
#include "core/env/backend_settings.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {

void Answer(const mge_error& result, std::string_view what) {
  if (result.code == MGE_OK) return;
  if (result.code == MGE_RESOURCE_EXHAUSTED && !result.text.empty() && AllocationFailure::Happened())
    throw EndedCheck{absl::ResourceExhaustedError(Absl(what))};
  const std::string_view text = result.text.empty() ? "no text" : std::string_view(result.text);
  Broken("{} failed: {} ({})", what, text, CodeName(result.code));
}

const void* ExtensionOf(const BackendUnderTest& tested, const char* name) {
  const auto extension = tested.plugin().extension;
  const void* table = extension ? extension(name, 1) : nullptr;
  if (!table) NotOffered(fmt::format("the backend does not offer the extension {}", name));
  return table;
}

NoteReading NoteOf(const std::string& path) {
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) Broken("it cannot be read");
  NoteReading reading = ReadNote(file->fd.get());
  if (reading.code != VerdictCode::kOk) Broken(reading.reason);
  return reading;
}

KitHost* KitHost::active_ = nullptr;

static std::string BytesAt(const void* data, uint64_t bytes) { return {static_cast<const char*>(data), bytes}; }

KitHost::KitHost(std::vector<std::string> settings)
    : inner_("under test", {.owner = {}, .thread_count = [](void*) -> uint32_t { return 2; }}) {
  active_ = this;
  inner_.SetSettings(std::move(settings));
  if (absl::StatusOr<std::unique_ptr<Registry>> core = Registry::Create({}); core.ok()) {  // all defaults
    inner_.Attach(
        this, Logger(LogLevel::kSilent),
        [registry = std::shared_ptr<Registry>(*std::move(core))](std::string_view key) { return registry->CoreText(key); });
  }
  table_ = *inner_.table();
  table_.allocate = [](void* self, uint64_t bytes, uint64_t alignment) -> void* {
    if (AllocationFailure::Refuses()) return nullptr;
    return active_->inner_.table()->allocate(self, bytes, alignment);
  };
  table_.blob_load = [](void*, const void* key, uint64_t key_bytes, void* context,
                        void (*found)(void*, const void*, uint64_t)) -> mge_code {
    std::unique_lock lock(active_->blobs_mutex_);
    auto at = active_->blobs_.find(BytesAt(key, key_bytes));
    if (at == active_->blobs_.end()) return MGE_NOT_FOUND;
    const std::string blob = at->second;
    lock.unlock();
    found(context, blob.data(), blob.size());
    return MGE_OK;
  };
  table_.blob_store = [](void*, const void* key, uint64_t key_bytes, const void* data, uint64_t bytes) -> mge_code {
    std::lock_guard lock(active_->blobs_mutex_);
    active_->blobs_.insert_or_assign(BytesAt(key, key_bytes), BytesAt(data, bytes));
    return MGE_OK;
  };
}

absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Sources& given, const Logger& logger) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Create(given, logger));
  const std::string backend = CopyText(plugin.name);
  const std::span<const mge_setting* const> declared(plugin.settings, plugin.setting_count);
  ResolvedSettings out;
  MGE_ASSIGN_OR_RETURN(out.values, registry->RegisterBackend(backend, DeclaredSettings(declared)));
  std::vector<SettingInfo> rows = registry->List();
  std::erase_if(rows, [&](const SettingInfo& row) { return row.owner != backend; });
  std::vector<std::string> keys;
  for (const SettingInfo& row : rows) keys.push_back(row.key);
  const std::string list = keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
  for (const auto& [name, text, option] : given.command_line) {
    if (std::ranges::any_of(rows, [&](const SettingInfo& row) { return row.key == name || row.variable == name; })) continue;
    return Fail(errors::kUnknownSetting,
                fmt::format("the backend {} has no setting \"{}\".{}", EscapeControl(backend), EscapeControl(name),
                            DidYouMean(Nearest(name, keys))),
                {.where = "command line", .fix = EscapeControl(fmt::format("it declares {}", list))});
  }
  MGE_RETURN_IF_ERROR(registry->CheckNamesOf(backend));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (declared[i]->type != MGE_SETTING_INT || rows[i].unit != "devices" || rows[i].default_value != "0") continue;
    out.device_setting = rows[i].key;
    if (rows[i].origin != "default") continue;
    out.values[i] = declared[i]->max == 1 ? "1" : "2";
    out.on_demand = fmt::format("{}={}", rows[i].key, out.values[i]);
  }
  return out;
}

BackendUnderTest::~BackendUnderTest() {
  if (device_ || started_) reporter_.At("closing and stopping");
  Close();
  Stop();
}

void BackendUnderTest::Prepare(Needs needs) {
  if (needs == Needs::kLives) return;
  if (needs >= Needs::kTable) Load();
  if (needs >= Needs::kStarted) Start();
  if (needs >= Needs::kDevice) Open();
}

void BackendUnderTest::Load() {
  if (plugin_) return;
  At("opening the library");
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) Broken("it cannot be opened: {}", dlerror());
  query_ = reinterpret_cast<mge_plugin_query_fn>(dlsym(library_, MGE_PLUGIN_QUERY_SYMBOL));
  if (!query_) Broken("it does not export " MGE_PLUGIN_QUERY_SYMBOL);
  CountAllocationsOf(library_);
  At("asking for the table");
  const auto [code, out] = Query();
  if (code != MGE_OK) Broken("it declines to work with this host: {} ({})", CopyText(out.reason), CodeName(code));
  if (!out.plugin) Broken("it returns no table (NULL)");
  if (std::string why = WhyTableIsBad(*out.plugin); !why.empty()) Broken(why);
  plugin_ = out.plugin;
}

std::pair<mge_code, mge_query_out> BackendUnderTest::Query(uint32_t major) const {
  const mge_query_in in = {sizeof(in), major, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  mge_query_out out = {sizeof(out), 0, nullptr, {}};
  const mge_code code = query_(&in, &out);
  return {code, out};
}

void BackendUnderTest::CreateHost() {
  absl::StatusOr<ResolvedSettings> resolved = ResolveSettings(*plugin_, given_);
  if (!resolved.ok()) Broken(FormatError(resolved.status()));  // the host does not start such a backend either
  if (!resolved->device_setting.empty())
    why_no_device_ += fmt::format("; --set {}=2 requests two", resolved->device_setting);
  if (!resolved->on_demand.empty()) reporter_.Fact("on_demand", resolved->on_demand);
  host_ = std::make_unique<KitHost>(std::move(resolved->values));
}

void BackendUnderTest::Start() {
  if (started_) return;
  if (!host_) CreateHost();
  At("starting");
  const mge_error result = Try("starting", plugin_->start, host_->table());
  if (result.code == MGE_UNAVAILABLE && !AllocationFailure::Happened()) {
    std::string why = fmt::format("the backend cannot work on this machine: {}", TextOfBackend(result.code, result));
    reporter_.Fact("no_device", why);
    NotOffered(why);
  }
  Answer(result, "start");
  started_ = true;
  At("listing devices");
  devices_ = ListDevices(*plugin_).devices;
  std::string unusable;
  for (const DeviceDescription& d : devices_) {
    if (d.score == 0) unusable += fmt::format("{}device {}: {}", unusable.empty() ? "" : "; ", d.index, d.reason);
  }
  if (!unusable.empty()) why_no_device_ = unusable;
  std::erase_if(devices_, [](const DeviceDescription& d) { return d.score == 0; });
}

void BackendUnderTest::Open() {
  if (devices_.empty()) {
    if (AllocationFailure::Happened()) Broken("no usable device is listed; MGE_RESOURCE_EXHAUSTED is required");
    reporter_.Fact("no_device", why_no_device_);
    NotOffered("the backend has no usable device on this machine");
  }
  At("opening a device");
  Call("opening the device", plugin_->device->open, devices_[0].index, &device_);
  At("working on a device");
  if (!device_) Broken("opening the device returned MGE_OK, but no device");
}

Owned<mge_device> BackendUnderTest::OpenAnother() const {
  if (devices_.size() < 2) NotOffered("the backend shows one device");
  return Make("second device", plugin_->device->close, plugin_->device->open, devices_[1].index);
}

int64_t BackendUnderTest::device_memory_used() const {
  if (host_accessible()) return 0;  // host memory: all programs use it, and leaks of this process show in the heap
  uint64_t free = 0, total = 0;
  plugin_->memory->memory_info(device_, &free, &total);
  return total > free ? static_cast<int64_t>(total - free) : 0;
}

void BackendUnderTest::Close() {
  if (mge_device* device = std::exchange(device_, nullptr)) InBackend("closing the device", plugin_->device->close, device);
}

void BackendUnderTest::Stop() {
  if (std::exchange(started_, false)) InBackend("stopping", plugin_->stop);
}

DeviceListing ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes) {
  DeviceListing list;
  Call("listing devices", [&](mge_error* error) { return mge::ListDevices(plugin, classes, &list, *error); });
  for (const DeviceDescription& d : list.devices) {
    const bool named = !d.class_name.empty() && !d.name.empty() && !d.fingerprint.empty() && !d.device_class.empty();
    const bool explained = d.score > 0 || !d.reason.empty();
    if (!list.fault.empty() || (named && explained)) continue;
    list.fault = fmt::format(
        "device {}: {}", d.index,
        named ? "it cannot be used, and gives no reason" : "its class, name, fingerprint or device class is empty");
  }
  return list;
}

}  // namespace mge::conform
