// SPDX-License-Identifier: Apache-2.0
#include "core/conform/backend_under_test.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/env/registry.h"
#include "core/env/setting_text.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"

namespace mge::conform {

absl::Status Broken(std::string_view what) { return absl::InternalError(Absl(what)); }
absl::Status NotOffered(std::string_view reason) { return absl::UnimplementedError(Absl(reason)); }
bool IsNotOffered(const absl::Status& status) { return status.code() == absl::StatusCode::kUnimplemented; }

absl::Status Answer(mge_code code, const mge_error& error, std::string_view what) {
  if (code == MGE_OK) return absl::OkStatus();
  if (code == MGE_RESOURCE_EXHAUSTED && !error.text.empty() && AllocationFailure::Happened()) return WithoutMemory(what);
  return Broken(fmt::format("{} failed: {} ({})", what, error.text.empty() ? "no text" : error.text, CodeName(code)));
}

absl::StatusOr<NoteReading> NoteOf(const std::string& path) {
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Broken("it cannot be read");
  NoteReading reading = ReadNote(file->fd.get());
  if (reading.code != VerdictCode::kOk) return Broken(reading.reason);
  return reading;
}

KitHost::KitHost(std::vector<std::string> settings) : inner_("under test", {}) {
  inner_.SetSettings(std::move(settings));
  if (absl::StatusOr<std::unique_ptr<Registry>> core = Registry::Create({}); core.ok()) {  // all defaults
    inner_.Attach(
        this, Logger(LogLevel::kSilent),
        [registry = std::shared_ptr<Registry>(*std::move(core))](std::string_view key) { return registry->CoreText(key); });
  }
  static constexpr auto Of = [](void* self) -> KitHost& { return *static_cast<KitHost*>(self); };
  static constexpr auto Inner = [](void* self) -> const mge_host& { return *Of(self).inner_.table(); };
  table_ = *inner_.table();
  table_.self = this;
  table_.fail = [](void* self, mge_error* error, mge_code code, const char* text, uint64_t size) {
    Within within(Side::kKit);
    return Inner(self).fail(Inner(self).self, error, code, text, size);
  };
  table_.log = [](void*, int32_t, const char*, uint64_t) {};
  table_.parallel_for = [](void*, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
    for (uint64_t i = 0; i < chunks; ++i) body(context, i);
  };
  table_.thread_count = [](void*) -> uint32_t { return 2; };
  table_.clock_ns = [](void* self) { return Inner(self).clock_ns(Inner(self).self); };
  table_.setting = [](void* self, uint32_t index, mge_text* out) {
    return Inner(self).setting(Inner(self).self, index, out);
  };
  table_.extension = [](void* self, const char* name, uint32_t version) {
    return Inner(self).extension(Inner(self).self, name, version);
  };
  table_.allocate = [](void* self, uint64_t bytes, uint64_t alignment) -> void* {
    if (!AllocationsSucceed::Here() && ++Of(self).requests_ == Of(self).fail_at_) return nullptr;
    return Inner(self).allocate(Inner(self).self, bytes, alignment);
  };
  table_.release = [](void* self, void* memory) { Inner(self).release(Inner(self).self, memory); };
  table_.core_setting = [](void* self, const mge_text* key, mge_text* out) {
    Within within(Side::kKit);
    return Inner(self).core_setting(Inner(self).self, key, out);
  };
  table_.blob_load = [](void* self, const void* key, uint64_t key_bytes, void* context,
                        void (*found)(void*, const void*, uint64_t)) -> mge_code {
    std::string blob;
    {
      Within within(Side::kKit);
      std::lock_guard lock(Of(self).blobs_mutex_);
      auto at = Of(self).blobs_.find(std::string(static_cast<const char*>(key), key_bytes));
      if (at == Of(self).blobs_.end()) return MGE_NOT_FOUND;
      blob = at->second;
    }
    found(context, blob.data(), blob.size());
    return MGE_OK;
  };
  table_.blob_store = [](void* self, const void* key, uint64_t key_bytes, const void* data, uint64_t bytes) -> mge_code {
    Within within(Side::kKit);
    std::lock_guard lock(Of(self).blobs_mutex_);
    Of(self).blobs_.insert_or_assign(std::string(static_cast<const char*>(key), key_bytes),
                                     std::string(static_cast<const char*>(data), bytes));
    return MGE_OK;
  };
}

BackendUnderTest::~BackendUnderTest() {
  if (device_ || started_) reporter_.At("closing and stopping");
  Close();
  Stop();
}

absl::Status BackendUnderTest::Prepare(Needs needs) {
  if (needs >= Needs::kTable) MGE_RETURN_IF_ERROR(Load());
  if (needs >= Needs::kStarted) MGE_RETURN_IF_ERROR(Start());
  if (needs >= Needs::kDevice) MGE_RETURN_IF_ERROR(Open());
  return absl::OkStatus();
}

absl::Status BackendUnderTest::Load() {
  if (plugin_) return absl::OkStatus();
  At("opening the library");
  before_ = HostState::Now();
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* text = dlerror();
    return Broken(fmt::format("it cannot be opened: {}", text ? text : "?"));
  }
  query_ = reinterpret_cast<mge_plugin_query_fn>(dlsym(library_, MGE_PLUGIN_QUERY_SYMBOL));
  if (!query_) return Broken("it does not export " MGE_PLUGIN_QUERY_SYMBOL);
  mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  mge_query_out out = {sizeof(out), 0, nullptr, {}};
  CountAllocationsOf(library_);
  At("asking for the table");
  if (mge_code code = query_(&in, &out); code != MGE_OK) {
    return Broken(fmt::format("it declines to work with this host: {} ({})", CopyText(out.reason), CodeName(code)));
  }
  if (!out.plugin) return Broken("it returns no table (NULL)");
  if (std::string why = WhyTableIsBad(*out.plugin); !why.empty()) return Broken(why);
  plugin_ = out.plugin;
  return absl::OkStatus();
}

absl::Status BackendUnderTest::Start() {
  if (started_) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(std::vector<std::string> values, Values());
  if (!host_) host_ = std::make_unique<KitHost>(std::move(values));
  At("starting");
  mge_error error;
  mge_code code = InBackend("starting", [&] { return plugin_->start(host_->table(), &error); });
  if (code == MGE_UNAVAILABLE && !AllocationFailure::Happened()) {
    std::string why = fmt::format("the backend cannot work on this machine: {}", TextOfBackend(code, error));
    reporter_.Fact("no_device", why);
    return NotOffered(why);
  }
  MGE_RETURN_IF_ERROR(Answer(code, error, "start"));
  started_ = true;
  At("listing devices");
  MGE_ASSIGN_OR_RETURN(DeviceList list, ListDevices(*plugin_));
  devices_ = std::move(list.devices);
  unusable_.clear();
  for (const DeviceDescription& d : devices_) {
    if (d.score == 0) unusable_ += fmt::format("{}device {}: {}", unusable_.empty() ? "" : "; ", d.index, d.reason);
  }
  std::erase_if(devices_, [](const DeviceDescription& d) { return d.score == 0; });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> BackendUnderTest::Values() const {
  absl::StatusOr<ResolvedSettings> resolved = ResolveSettings(*plugin_, given_);
  if (resolved.ok()) {
    if (!resolved->on_demand.empty()) reporter_.Fact("on_demand", resolved->on_demand);
    return std::move(resolved->values);
  }
  if (ErrorId(resolved.status()) != errors::kPluginRefused.id) return Broken(FormatError(resolved.status()));
  // A declaration is wrong, which the check settings.declared reports. The other checks use the default values.
  std::vector<std::string> values;
  for (uint64_t i = 0; i < plugin_->setting_count; ++i) {
    const mge_setting& row = *plugin_->settings[i];
    absl::StatusOr<std::string> plain = PlainSetting(row, CopyText(row.default_value));
    values.push_back(plain.ok() ? *plain : CopyText(row.default_value));
  }
  return values;
}

std::string BackendUnderTest::WhyNoDevice() const {
  if (!unusable_.empty()) return unusable_;
  for (uint64_t i = 0; i < plugin_->setting_count; ++i) {
    std::string key = CopyText(plugin_->settings[i]->key);
    if (MakesDevices(*plugin_->settings[i])) return fmt::format("it lists none; --set {}=2 requests two", key);
  }
  return "it lists none";
}

absl::Status BackendUnderTest::Open(size_t position) {
  if (devices_.empty()) {
    if (AllocationFailure::Happened()) return Broken("no usable device is listed; MGE_RESOURCE_EXHAUSTED is required");
    reporter_.Fact("no_device", WhyNoDevice());
    return NotOffered("the backend has no usable device on this machine");
  }
  position_ = position;
  At("opening a device");
  MGE_RETURN_IF_ERROR(Call("opening the device",
                           [&](mge_error* e) { return plugin_->device->open(devices_[position].index, &device_, e); }));
  At("working on a device");
  return device_ ? absl::OkStatus() : Broken("opening the device returned MGE_OK, but no device");
}

int64_t BackendUnderTest::device_memory_used() const {
  if (host_accessible()) return 0;  // host memory: all programs use it, and leaks of this process show in the heap
  uint64_t free = 0, total = 0;
  plugin_->memory->memory_info(device_, &free, &total);
  return total > free ? static_cast<int64_t>(total - free) : 0;
}

void BackendUnderTest::Close() {
  if (mge_device* device = std::exchange(device_, nullptr))
    InBackend("closing the device", [&] { plugin_->device->close(device); });
}

void BackendUnderTest::Stop() {
  if (std::exchange(started_, false)) InBackend("stopping", [&] { plugin_->stop(); });
}

absl::StatusOr<std::string> PlainSetting(const mge_setting& setting, std::string_view text) {
  SettingRow row;
  switch (setting.type) {
    case MGE_SETTING_BOOL: row.type = SettingType::kBool; break;
    case MGE_SETTING_INT: row.type = SettingType::kInt; break;
    case MGE_SETTING_DOUBLE: row.type = SettingType::kDouble; break;
    case MGE_SETTING_BYTES: row.type = SettingType::kBytes; break;
    default: return std::string(text);
  }
  MGE_ASSIGN_OR_RETURN(SettingValue value, ParseSetting(row, text));
  return PlainText(row, value);
}

absl::StatusOr<DeviceList> ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes) {
  DeviceList list;
  mge_device_sink sink = {sizeof(sink), 0, &list, [](void* self, const mge_device_info* info) {
                            Within within(Side::kKit);
                            auto& to = *static_cast<DeviceList*>(self);
                            if (!info || info->struct_size < sizeof(mge_device_info)) {
                              to.fault = "a device is described by a struct that is NULL or too short (struct_size)";
                              return;
                            }
                            const std::string wild = WhyDeviceInfoIsBad(*info);
                            if (to.fault.empty()) to.fault = wild;
                            auto text = [&](const mge_text& t) { return wild.empty() ? CopyText(t) : std::string(); };
                            to.devices.push_back({info->index,
                                                  text(info->class_name),
                                                  text(info->name),
                                                  text(info->fingerprint),
                                                  text(info->device_class),
                                                  text(info->reason),
                                                  info->score,
                                                  info->flags,
                                                  info->memory_total,
                                                  {},
                                                  info->max_allocation,
                                                  std::max(info->buffer_alignment, 64u),
                                                  std::max(info->compute_queues, 1u)});
                          }};
  MGE_RETURN_IF_ERROR(Call("listing devices", [&](mge_error* e) { return plugin.device->enumerate(&sink, e); }));
  for (size_t i = 0; i < list.devices.size() && list.fault.empty(); ++i) {
    const DeviceDescription& d = list.devices[i];
    auto bad = [&](std::string_view what) { list.fault = fmt::format("device {}: {}", d.index, what); };
    auto same_index = [&](const DeviceDescription& other) { return other.index == d.index; };
    if (std::any_of(list.devices.begin(), list.devices.begin() + static_cast<ptrdiff_t>(i), same_index))
      bad("another device has the same index");
    else if (d.flags & ~MGE_DEVICE_KNOWN_BITS)
      bad("unknown flags");
    else if (d.score > 100)
      bad("its score is above 100");
    else if (d.score == 0 && d.reason.empty())
      bad("it cannot be used, and gives no reason");
    else if (d.class_name.empty() || d.name.empty() || d.fingerprint.empty() || d.device_class.empty())
      bad("class, name, fingerprint or device class is empty");
    else if (classes && std::find(classes->begin(), classes->end(), d.class_name) == classes->end())
      bad(fmt::format("its class '{}' is not in the identity note", d.class_name));
  }
  return list;
}

}  // namespace mge::conform
