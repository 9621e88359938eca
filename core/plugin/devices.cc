// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/devices.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/isa.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

std::string AsVariable(std::string key) {
  for (char& c : key) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return key;
}

// Returns the fix for a device that a setting of the backend would enable, or "". The setting is the number of devices, or
// NAME.gpu if the backend has devices but none is numbered as a GPU.
std::string HowToOffer(const Backend& backend, bool has_devices, const DeviceName& device) {
  const mge_plugin& plugin = backend.plugin();
  const bool gpu = device.cls == "gpu";
  for (uint64_t i = 0; i < plugin.setting_count; ++i) {
    const mge_setting& s = *plugin.settings[i];
    const std::string key = CopyText(s.key);
    if (gpu && has_devices && s.type == MGE_SETTING_BOOL && key == backend.name() + ".gpu") {
      return fmt::format("make the devices of {0} available as gpu: set {1}=true or MGE_{2}=1", backend.name(), key,
                         AsVariable(key));
    }
    if (!gpu && s.type == MGE_SETTING_INT && CopyText(s.unit) == "devices") {
      return fmt::format("set the number of devices: {0}={2} or MGE_{1}={2}", key, AsVariable(key),
                         std::max(device.number, 0) + 1);
    }
  }
  return {};
}

// Returns the key by which devices are numbered. Usable devices come first, so that the numbers 0..count-1 are usable.
auto NumberingKey(const Device* d) {
  return std::tuple(!d->usable(), d->backend().name(), d->description().fingerprint, d->description().index);
}
bool NumberedBefore(const Device* a, const Device* b) { return NumberingKey(a) < NumberingKey(b); }

// Returns whether `a` is preferred to `b` if both are the same hardware: by score, then backend name, then index.
bool Outranks(const Device* a, const Device* b) {
  return std::tuple(-static_cast<int64_t>(a->description().score), a->backend().name(), a->description().index) <
         std::tuple(-static_cast<int64_t>(b->description().score), b->backend().name(), b->description().index);
}

// Removes the devices that are the same hardware as a preferred device of the list. Returns the pairs (removed, preferred).
std::vector<std::pair<Device*, Device*>> RemoveTwins(std::vector<Device*>& list) {
  std::map<std::string, Device*> winners;
  for (Device* d : list) {
    const std::string& fingerprint = d->description().fingerprint;
    if (fingerprint.empty()) continue;
    Device*& winner = winners.emplace(fingerprint, d).first->second;
    if (Outranks(d, winner)) winner = d;
  }
  std::vector<std::pair<Device*, Device*>> losers;
  std::erase_if(list, [&](Device* d) {
    auto winner = winners.find(d->description().fingerprint);
    if (winner == winners.end() || winner->second == d) return false;
    losers.emplace_back(d, winner->second);
    return true;
  });
  return losers;
}

// Returns whether an earlier file has loaded a backend with this name. If so, sets the verdict of `file` to skipped.
bool IsTaken(std::span<const PluginFile> before, PluginFile& file) {
  auto first = std::find_if(before.begin(), before.end(), [&](const PluginFile& other) {
    return other.verdict == Verdict::kLoaded && other.name == file.name;
  });
  if (first == before.end()) return false;
  SetVerdict(
      file, Verdict::kSkipped, VerdictCode::kDuplicateName,
      fmt::format("backend '{}' is taken from '{}' (version {}), which comes first", file.name, first->path, first->version),
      "remove one of the two, or name this one's directory first in MGE_PLUGIN_PATH");
  return true;
}

// Returns the memory options that apply to a device.
MemoryOptions MemoryFor(const DevicesOptions& options, const DeviceDescription& device) {
  MemoryOptions memory = options.memory;
  if (device.flags & MGE_DEVICE_GPU) {
    if (!options.gpu_memory.pool.empty()) memory.pool = options.gpu_memory.pool;
    memory.keep_free_percent = options.gpu_memory.keep_free_percent;
    memory.numbers = options.gpu_memory.numbers;
  }
  for (const auto& [class_name, reserve] : options.reserve_of_class) {
    if (class_name != device.class_name) continue;
    memory.reserve = reserve;
    memory.needs_cuts = reserve != "none";
  }
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Devices>> Devices::Create(DevicesOptions options) {
  std::unique_ptr<Devices> out(new Devices);
  if (!options.memory.pool.empty() && !std::count(PoolNames().begin(), PoolNames().end(), options.memory.pool)) {
    return MakePool(options.memory.pool, options.memory.numbers, nullptr).status();
  }
  MGE_RETURN_IF_ERROR(ReservePolicy::Parse(options.memory.reserve).status());
  out->directories_ = options.directories;
  out->quarantine_ = options.rules.quarantine;
  out->host_table_ = std::make_unique<HostDevice>(options.reference_kernels);
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Backend> host,
                       Backend::FromTable(out->host_table_->plugin(), {"host"}, options.compute));
  out->backends_.push_back(host);
  Discovery discovery = DiscoverPlugins(options.directories, HostIsa(), options.rules);
  for (const FoundPlugin& found : discovery.accepted) {
    PluginFile row = found.file;
    std::shared_ptr<Backend> backend;
    if (!IsTaken(out->files_, row)) {
      backend = LoadBackend(found, options.compute, options.settings, options.logger, row);
    }
    out->files_.push_back(std::move(row));
    if (!backend) continue;
    out->files_.back().devices = static_cast<int>(backend->devices().size());
    backend->services().Attach(out.get(), options.logger);
    out->backends_.push_back(std::move(backend));
  }
  std::move(discovery.rejected.begin(), discovery.rejected.end(), std::back_inserter(out->files_));
  for (size_t i = 1; i <= out->backends_.size(); ++i) {  // the built-in one is listed last
    const std::shared_ptr<Backend>& backend = out->backends_[i % out->backends_.size()];
    for (const DeviceDescription& description : backend->devices()) {
      out->devices_.push_back(std::make_unique<Device>(backend, description, MemoryFor(options, description)));
    }
  }
  out->host_ = out->devices_.back().get();
  out->Number(options);
  return out;
}

Devices::~Devices() {
  while (!devices_.empty()) devices_.pop_back();
  while (!backends_.empty()) {
    backends_.back()->services().Detach(this);
    backends_.pop_back();
  }
}

void Devices::SetOfBackend(std::string_view backend, std::string_view key, std::string value) {
  for (const std::shared_ptr<Backend>& b : backends_) {
    if (b->name() == backend) b->Set(key, value);
  }
}

void Devices::Name(Device& device, std::string name, const DevicesOptions& options) const {
  device.name_ = std::move(name);
  uint64_t limit = options.memory_limit;
  for (const auto& [of, bytes] : options.memory_limits) {
    if (of == device.name_ || (!device.gpu_name_.empty() && of == device.gpu_name_)) limit = bytes;
  }
  device.budget_ = std::make_shared<Budget>(device.name_, limit);
}

void Devices::Number(const DevicesOptions& options) {
  std::map<std::string, std::vector<Device*>> classes;
  for (const auto& device : devices_) classes[device->class_name()].push_back(device.get());
  std::vector<std::pair<Device*, Device*>> twins;
  for (auto& [cls, list] : classes) {
    for (auto& pair : RemoveTwins(list)) twins.push_back(pair);
    for (Device* d : list) {
      if (d->Is(MGE_DEVICE_GPU)) gpus_.push_back(d);
    }
  }
  RemoveTwins(gpus_);
  std::sort(gpus_.begin(), gpus_.end(), NumberedBefore);
  for (size_t i = 0; i < gpus_.size(); ++i) gpus_[i]->gpu_name_ = fmt::format("gpu{}", i);
  for (auto& [cls, list] : classes) {
    std::sort(list.begin(), list.end(), NumberedBefore);
    for (size_t i = 0; i < list.size(); ++i) {
      list[i]->number_ = static_cast<int>(i);
      Name(*list[i], list[i] == host_ ? "host" : fmt::format("{}{}", cls, i), options);
    }
  }
  for (auto [loser, winner] : twins) {
    loser->number_ = -1;
    loser->reason_ =
        fmt::format("the same hardware is {}, driven by backend '{}'", winner->name(), winner->backend().name());
    Name(*loser, fmt::format("{}@{}", loser->class_name(), loser->backend().name()), options);
  }
  for (const auto& device : devices_) {
    device->host_budget_ = host_->budget_;
    device->host_allocator_ =
        std::make_unique<BudgetedHostAllocator>(device->Is(MGE_DEVICE_HOST_ACCESSIBLE) ? device->budget_ : host_->budget_);
  }
  for (const auto& [name, bytes] : options.memory_limits) {
    bool known = std::any_of(devices_.begin(), devices_.end(),
                             [&](const auto& d) { return d->name() == name || d->gpu_name() == name; });
    if (!known) options.logger.Warning("memory.limit names '{}', but there is no such device here", name);
  }
}

int Devices::gpu_count() const {
  return static_cast<int>(std::count_if(gpus_.begin(), gpus_.end(), [](const Device* d) { return d->usable(); }));
}

// ---------------------------------------------------------------- resolving names to devices

std::vector<Device*> Devices::BestFirst() const {
  std::vector<Device*> best = gpus_, others;
  for (const auto& d : devices_) {
    if (d->number() >= 0 && !d->Is(MGE_DEVICE_GPU) && d->class_name() != "cpu") others.push_back(d.get());
  }
  std::stable_sort(others.begin(), others.end(), Outranks);
  best.insert(best.end(), others.begin(), others.end());
  for (Device* d : OfClass("cpu")) best.push_back(d);
  std::erase_if(best, [](const Device* d) { return !d->usable() || d->Is(MGE_DEVICE_ONLY_BY_NAME); });
  return best;
}

std::vector<Device*> Devices::OfClass(std::string_view cls) const {
  if (cls == "gpu") return gpus_;
  if (cls == "multithread" || cls == "cpu_pinned") cls = "cpu";
  std::vector<Device*> out;
  for (const auto& d : devices_) {
    if (d->class_name() == cls && d->number() >= 0) out.push_back(d.get());
  }
  std::sort(out.begin(), out.end(), [](const Device* a, const Device* b) { return a->number() < b->number(); });
  return out;
}

bool Devices::KnowsClasses(const DeviceSpec& spec) const {
  auto known = [&](const DeviceName& name) {
    std::span<const std::string_view> well_known = WellKnownDeviceClasses();
    return std::find(well_known.begin(), well_known.end(), name.cls) != well_known.end() || !OfClass(name.cls).empty() ||
           std::any_of(files_.begin(), files_.end(), [&](const PluginFile& f) { return Contains(f.classes, name.cls); });
  };
  return std::all_of(spec.alternatives.begin(), spec.alternatives.end(),
                     [&](const auto& devices) { return std::all_of(devices.begin(), devices.end(), known); });
}

absl::Status Devices::Unusable(const DeviceName& name, std::string why, std::string_view where, std::string fix) const {
  const std::string wanted = name.Written();
  std::vector<std::string> others;
  for (const auto& d : devices_) {
    if (d->usable() && !d->Is(MGE_DEVICE_ONLY_BY_NAME) && d->name() != wanted) others.push_back(d->name());
  }
  if (others.empty() && fix.empty()) fix = "see `mge devices`";
  if (!others.empty()) {
    fix += fmt::format("{}choose an available device ({})", fix.empty() ? "" : "; or ", fmt::join(others, ", "));
  }
  if (Contains(others, "cpu0")) fix += fmt::format(", or allow a fallback: {},cpu0", wanted);
  return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be used", wanted),
              {.what = std::move(why), .where = std::string(where), .fix = std::move(fix)});
}

absl::Status Devices::NoSuchClass(const DeviceName& name, std::string_view where) const {
  std::string cls = name.cls == "multithread" || name.cls == "cpu_pinned" ? "cpu" : name.cls;
  const bool any = cls == "xpu";
  for (const PluginFile& file : files_) {
    if (file.code != VerdictCode::kOutOfMemory || !(any || Contains(file.classes, cls))) continue;
    return Fail(errors::kOutOfMemory, fmt::format("device '{}' cannot be used", name.Written()),
                {.what = fmt::format("{}: {}", file.path, file.reason), .where = std::string(where), .fix = file.fix});
  }
  std::string why = any ? "no backend offers a device that xpu may choose"
                        : fmt::format("no backend that drives devices of class '{}' is loaded", cls);
  std::string fix;
  for (const auto& d : devices_) {
    if (any && !d->usable()) why += fmt::format("; {}: {}", d->name(), d->reason());
  }
  for (const PluginFile& file : files_) {
    if (any && file.devices == 0)
      why += fmt::format("; backend '{}' is loaded and lists no device on this machine", file.name);
  }
  std::span<const std::string_view> known = WellKnownDeviceClasses();
  if (std::find(known.begin(), known.end(), cls) == known.end()) {
    std::vector<std::string> candidates(known.begin(), known.end());
    for (const auto& d : devices_) candidates.push_back(d->class_name());
    if (std::string_view nearest = Nearest(cls, candidates); !nearest.empty()) {
      DeviceName meant = name;
      meant.cls = nearest;
      meant.text.clear();
      // A short unknown class may be the class of a backend that is not installed. A long one is treated as a typing error.
      if (cls.size() > 3) {
        return Fail(errors::kBadDeviceName, fmt::format("'{}' does not name a device", name.Written()),
                    {.what = fmt::format("no backend offers devices of class '{}'.{}", cls, DidYouMean(meant.ToString())),
                     .where = std::string(where),
                     .fix = fmt::format("write {}, or see `mge devices`", meant.ToString())});
      }
      why += "." + DidYouMean(meant.ToString());
      fix = fmt::format("write {}", meant.ToString());
    }
  }
  std::string idle;
  for (const PluginFile& file : files_) {
    if (file.verdict != Verdict::kLoaded || !Contains(file.classes, cls)) continue;
    idle += fmt::format("{}backend '{}' is loaded and {}", idle.empty() ? "" : "; ", file.name,
                        file.devices == 0 ? "lists no device on this machine" : "finds no such device on this machine");
    for (const std::shared_ptr<Backend>& backend : backends_) {
      if (backend->name() != file.name) continue;
      const bool some =
          std::any_of(devices_.begin(), devices_.end(), [&](const auto& d) { return &d->backend() == backend.get(); });
      if (std::string how = HowToOffer(*backend, some, name); !how.empty()) fix = std::move(how);
    }
  }
  if (!idle.empty()) why = std::move(idle);
  int unknown = 0;  // files that were rejected before their device classes were known
  for (const PluginFile& file : files_) {
    if (file.verdict == Verdict::kLoaded) continue;
    bool nameless = file.classes.empty();
    if (nameless && unknown++ > 0) continue;
    if (nameless || (any ? !file.classes.empty() : Contains(file.classes, cls))) {
      why += fmt::format("; {} is {}: {}", file.path, VerdictName(file.verdict), file.reason);
      if (fix.empty()) fix = file.fix;
    }
  }
  if (unknown > 1) why += fmt::format("; {} more files were not loaded, see `mge plugins`", unknown - 1);
  if (fix.empty()) {
    std::vector<std::string> searched;
    for (const PluginDirectory& directory : directories_) searched.push_back(directory.path);
    fix = searched.empty() ? "install a backend for it, in a directory that MGE_PLUGIN_PATH names"
                           : fmt::format("install a backend for it (searched: {})", fmt::join(searched, ", "));
  }
  return Unusable(name, std::move(why), where, std::move(fix));
}

// Returns the devices that a name allows, best first. Returns at least one, or fails.
absl::StatusOr<std::vector<Device*>> Devices::Candidates(const DeviceName& name, std::string_view where) const {
  std::vector<Device*> group = name.cls == "xpu" ? BestFirst() : OfClass(name.cls);
  if (group.empty()) return NoSuchClass(name, where);
  // A CPU has one memory and one set of cores, so the id of a context such as cpu(3) selects no device.
  bool any = name.number == kLowestUsable || (name.context && group[0]->class_name() == "cpu");
  if (any) {
    std::string reasons;
    for (const Device* d : group) {
      if (!d->usable()) reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", d->name(), d->reason());
    }
    std::erase_if(group, [](const Device* d) { return !d->usable(); });
    if (group.empty()) return Unusable(name, std::move(reasons), where);
    return group;
  }
  if (name.cls == "xpu") {  // the number selects within the class of the best device
    const Device* best = group[0];
    std::erase_if(group, [&](const Device* d) {
      return best->gpu_name().empty() ? d->class_name() != best->class_name() : d->gpu_name().empty();
    });
  }
  if (static_cast<size_t>(name.number) >= group.size()) {
    return Unusable(name,
                    group.size() == 1 ? fmt::format("there is one device of this class, {}", group[0]->name())
                                      : fmt::format("there are {} devices of this class, numbered from 0", group.size()),
                    where);
  }
  Device* device = group[static_cast<size_t>(name.number)];
  if (!device->usable()) return Unusable(name, device->reason(), where, "remove this cause");
  return std::vector<Device*>{device};
}

absl::StatusOr<Device*> Devices::OpenFirst(const DeviceName& name, std::string_view where,
                                           std::vector<std::string>& passed_over) const {
  MGE_ASSIGN_OR_RETURN(std::vector<Device*> candidates, Candidates(name, where));
  absl::Status first;
  for (Device* device : candidates) {
    absl::Status opened = device->Open();
    if (opened.ok()) return device;
    passed_over.push_back(fmt::format("{}: {}", device->name(), PartsOf(opened).what));
    if (first.ok()) first = AddWhere(opened, where);
  }
  return first;
}

namespace {

DeviceUse Use(Device* device, const DeviceName& name) {
  return {.device = device, .threads = name.threads, .synchronous = name.synchronous, .pinned = name.cls == "cpu_pinned"};
}

}  // namespace

absl::StatusOr<DeviceUse> Devices::Locate(const DeviceName& name, std::string_view where) const {
  MGE_ASSIGN_OR_RETURN(std::vector<Device*> candidates, Candidates(name, where));
  return Use(candidates[0], name);
}

absl::StatusOr<DeviceUse> Devices::Find(const DeviceName& name, std::string_view where) const {
  std::vector<std::string> passed_over;
  MGE_ASSIGN_OR_RETURN(Device * device, OpenFirst(name, where, passed_over));
  return Use(device, name);
}

absl::StatusOr<Resolution> Devices::Resolve(const DeviceSpec& spec, std::string_view where) const {
  Resolution out;
  absl::Status first;
  for (const std::vector<DeviceName>& alternative : spec.alternatives) {
    std::vector<DeviceUse> uses;
    absl::Status failed;
    for (const DeviceName& name : alternative) {
      std::vector<std::string> unopened;
      absl::StatusOr<DeviceUse> use;
      if (!out.devices.empty()) {
        use = Locate(name, where);  // a fallback is opened when it is needed
      } else if (absl::StatusOr<Device*> opened = OpenFirst(name, where, unopened); opened.ok()) {
        use = Use(*opened, name);
        out.passed_over.insert(out.passed_over.end(), unopened.begin(), unopened.end());
      } else {
        use = opened.status();
      }
      if (!use.ok()) {
        failed = use.status();
        break;
      }
      uses.push_back(*use);
    }
    if (ErrorId(failed) == errors::kBadDeviceName.id) return failed;  // a typing error must not be hidden by a fallback
    if (!failed.ok()) {
      out.passed_over.push_back(fmt::format("{}: {}", DeviceSpec{{alternative}}.ToString(), PartsOf(failed).what));
      if (first.ok()) first = failed;
    } else if (out.devices.empty()) {
      out.devices = std::move(uses);
    } else {
      out.fallbacks.insert(out.fallbacks.end(), uses.begin(), uses.end());
    }
  }
  if (!out.devices.empty()) return out;
  if (spec.alternatives.size() == 1) return first;
  ErrorParts parts = PartsOf(first);
  return Fail(KindOf(first) == ErrorKind::kMemory ? errors::kOutOfMemory : errors::kDeviceUnusable,
              fmt::format("none of the devices '{}' can be used", spec.ToString()),
              {.what = fmt::format("{}", fmt::join(out.passed_over, "; ")), .where = parts.where, .fix = parts.fix});
}

absl::StatusOr<Resolution> Devices::Resolve(std::string_view text, std::string_view where) const {
  MGE_ASSIGN_OR_RETURN(DeviceSpec spec, ParseDeviceSpec(text, where));
  return Resolve(spec, where);
}

}  // namespace mge
