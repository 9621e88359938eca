// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/devices.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/isa.h"
#include "core/plugin/library_record.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

// Returns the key by which devices are numbered. Usable devices come first, so that the numbers 0..count-1 are usable.
auto NumberingKey(const std::shared_ptr<Device>& d) {
  return std::tuple(!d->usable(), d->backend().name(), d->description().fingerprint, d->description().index);
}
bool NumberedBefore(const std::shared_ptr<Device>& a, const std::shared_ptr<Device>& b) {
  return NumberingKey(a) < NumberingKey(b);
}

// Returns whether `a` is preferred to `b` if both are the same hardware: by score, then backend name, then index.
bool Outranks(const std::shared_ptr<Device>& a, const std::shared_ptr<Device>& b) {
  return std::tuple(-static_cast<int64_t>(a->description().score), a->backend().name(), a->description().index) <
         std::tuple(-static_cast<int64_t>(b->description().score), b->backend().name(), b->description().index);
}

// Removes the devices that are the same hardware as a preferred device of the list. Returns the pairs (removed, preferred).
std::vector<std::pair<Device*, Device*>> MergeDuplicates(std::vector<std::shared_ptr<Device>>& list) {
  std::map<std::string, std::shared_ptr<Device>> winners;
  for (const auto& d : list) {
    const std::string& fingerprint = d->description().fingerprint;
    if (fingerprint.empty()) continue;
    std::shared_ptr<Device>& winner = winners.emplace(fingerprint, d).first->second;
    if (Outranks(d, winner)) winner = d;
  }
  std::vector<std::pair<Device*, Device*>> losers;
  std::erase_if(list, [&](const auto& d) {
    auto winner = winners.find(d->description().fingerprint);
    if (winner == winners.end() || winner->second == d) return false;
    losers.emplace_back(d.get(), winner->second.get());
    return true;
  });
  return losers;
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
  if (!options.memory.pool.empty() && !std::count(PoolNames().begin(), PoolNames().end(), options.memory.pool)) {
    return MakePool(options.memory.pool, options.memory.numbers, nullptr).status();
  }
  MGE_RETURN_IF_ERROR(ReservePolicy::Parse(options.memory.reserve).status());
  std::unique_ptr<Devices> out(new Devices(std::move(options)));
  out->host_table_ = std::make_unique<HostDevice>(out->options_.reference_kernels);
  MGE_ASSIGN_OR_RETURN(out->host_backend_, Backend::FromTable(out->host_table_->plugin(), {"host"}, out->options_.compute));
  out->host_ = std::make_shared<Device>(out->host_backend_, out->host_backend_->devices()[0],
                                        MemoryFor(out->options_, out->host_backend_->devices()[0]));
  out->host_->name_ = "host";
  out->SetBudget(*out->host_);
  out->numbered_.push_back("host");
  out->backends_ =
      std::make_unique<Backends>(DiscoverPlugins(out->options_.directories, HostIsa(), out->options_.rules), out->options_);
  out->AddDevices();
  return out;
}

Devices::~Devices() {
  gpus_.clear();
  devices_.clear();
  backends_.reset();
}

std::vector<PluginFile> Devices::files() const {
  std::lock_guard lock(RecordMutex());
  return backends_->files();
}

void Devices::SetOfBackend(std::string_view backend, std::string_view key, std::string value) {
  std::vector<std::shared_ptr<Backend>> running;
  {
    std::lock_guard lock(RecordMutex());
    running = backends_->running();
  }
  for (const std::shared_ptr<Backend>& b : running) {
    if (b->name() == backend) b->Set(key, value);
  }
}

// ---------------------------------------------------------------- starting and numbering

bool Devices::LimitsGpus() const {
  return std::any_of(options_.memory_limits.begin(), options_.memory_limits.end(),
                     [](const auto& limit) { return limit.first.starts_with("gpu"); });
}

void Devices::Start(std::string_view cls) {
  backends_->Start(cls == "xpu" ? "" : cls);
  if (LimitsGpus() && backends_->Shares(cls, "gpu")) backends_->Start("gpu");  // a limit needs the numbers of all GPUs
  AddDevices();
  if (cls != "gpu") return;
  std::set<std::string> classes;  // GPUs are numbered after their own classes
  {
    std::lock_guard lock(RecordMutex());
    for (const auto& [backend, list] : devices_) {
      for (const auto& d : list) {
        if (d->Is(MGE_DEVICE_GPU) && !absl::c_linear_search(numbered_, d->class_name())) classes.insert(d->class_name());
      }
    }
  }
  for (const std::string& own : classes) backends_->Start(own);
  if (!classes.empty()) AddDevices();
}

std::vector<std::string> Devices::StartAll(std::chrono::duration<double> limit) {
  std::vector<std::string> late = backends_->StartAll(limit);
  AddDevices();
  return late;
}

void Devices::AddDevices() {
  std::vector<std::string> warnings;
  {
    std::lock_guard lock(RecordMutex());
    for (const std::shared_ptr<Backend>& backend : backends_->running()) {
      const bool known =
          std::any_of(devices_.begin(), devices_.end(), [&](const auto& entry) { return entry.first == backend.get(); });
      if (known) continue;
      List& list = devices_.emplace_back(backend.get(), List()).second;
      for (const DeviceDescription& d : backend->devices()) {
        list.push_back(std::make_shared<Device>(backend, d, MemoryFor(options_, d)));
      }
    }
    Number(warnings);
  }
  for (const std::string& text : warnings) options_.logger.Warning("{}", text);
}

void Devices::SetBudget(Device& device) const {
  uint64_t limit = options_.memory_limit;
  for (const auto& [of, bytes] : options_.memory_limits) {
    if (of == device.name_ || (!device.gpu_name_.empty() && of == device.gpu_name_)) limit = bytes;
  }
  device.budget_ = std::make_shared<Budget>(device.name_, limit);
  device.host_budget_ = host_->budget_;
  device.host_allocator_ =
      std::make_unique<BudgetedHostAllocator>(device.Is(MGE_DEVICE_HOST_ACCESSIBLE) ? device.budget_ : host_->budget_);
}

// Numbers the devices of a class. If two devices are the same hardware, one gets no number.
void Devices::NumberClass(const std::string& cls, List& added) {
  List list;
  for (const auto& [backend, devices] : devices_) {
    for (const auto& d : devices) {
      if (d->class_name() == cls) list.push_back(d);
    }
  }
  added.insert(added.end(), list.begin(), list.end());
  const std::vector<std::pair<Device*, Device*>> twins = MergeDuplicates(list);
  std::sort(list.begin(), list.end(), NumberedBefore);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i]->number_ = static_cast<int>(i);
    list[i]->name_ = fmt::format("{}{}", cls, i);
  }
  for (auto [loser, winner] : twins) {
    loser->number_ = -1;
    loser->name_ = fmt::format("{}@{}", cls, loser->backend().name());
    loser->reason_ =
        fmt::format("the same hardware is {}, driven by backend '{}'", winner->name(), winner->backend().name());
  }
  numbered_.push_back(cls);
}

void Devices::NumberGpus() {
  List list;
  for (const auto& [backend, devices] : devices_) {
    for (const auto& d : devices) {
      if (d->Is(MGE_DEVICE_GPU) && d->number() >= 0) list.push_back(d);
    }
  }
  MergeDuplicates(list);
  std::sort(list.begin(), list.end(), NumberedBefore);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i]->gpu_name_ = fmt::format("gpu{}", i);
    list[i]->gpu_named_.store(true, std::memory_order_release);
  }
  gpus_ = std::move(list);
  gpus_numbered_ = true;
}

// Numbers the classes whose backends have all been started. Appends a warning for each name in memory.limit that turns out
// to have no device.
void Devices::Number(std::vector<std::string>& warnings) {
  List added;
  bool all_numbered = true;  // the classes of all GPUs
  for (const auto& [backend, list] : devices_) {
    for (const auto& d : list) {
      const std::string& cls = d->class_name();
      const bool done = absl::c_linear_search(numbered_, cls);
      const bool waits = d->Is(MGE_DEVICE_GPU) && LimitsGpus() && !backends_->Settled("gpu");
      if (done && d->name().empty()) {
        d->name_ = fmt::format("{}@{}", cls, d->backend().name());
        d->reason_ = "its backend started after the devices of its class had been numbered";
      } else if (!done && !waits && backends_->Settled(cls)) {
        NumberClass(cls, added);
      } else if (!done && d->Is(MGE_DEVICE_GPU)) {
        all_numbered = false;
      }
    }
  }
  if (!gpus_numbered_ && all_numbered && backends_->Settled("gpu")) NumberGpus();
  for (const auto& d : added) SetBudget(*d);
  for (const auto& [name, bytes] : options_.memory_limits) {
    if (absl::c_linear_search(absent_, name)) continue;
    const absl::StatusOr<DeviceName> parsed = ParseDeviceName(name);
    const std::string_view cls = parsed.ok() ? ClassOf(*parsed) : std::string_view();
    if (!cls.empty() && (cls == "gpu" ? !gpus_numbered_ : !backends_->Settled(cls))) continue;  // not known yet
    const List known = Known();
    if (std::any_of(known.begin(), known.end(), [&](const auto& d) { return d->name() == name || d->gpu_name() == name; })) {
      continue;
    }
    absent_.push_back(name);
    warnings.push_back(fmt::format("memory.limit names '{}', but there is no such device here", name));
  }
}

Devices::List Devices::Known() const {
  List out;
  for (const std::shared_ptr<Backend>& backend : backends_->running()) {
    for (const auto& [of, list] : devices_) {
      if (of != backend.get()) continue;
      std::copy_if(list.begin(), list.end(), std::back_inserter(out),
                   [&](const auto& d) { return absl::c_linear_search(numbered_, d->class_name()); });
    }
  }
  out.push_back(host_);
  return out;
}

std::vector<std::shared_ptr<Device>> Devices::all() const {
  std::lock_guard lock(RecordMutex());
  return Known();
}

int Devices::gpu_count() {
  Start("gpu");
  std::lock_guard lock(RecordMutex());
  return static_cast<int>(std::count_if(gpus_.begin(), gpus_.end(), [](const auto& d) { return d->usable(); }));
}

std::shared_ptr<Device> Devices::Alive(const std::shared_ptr<Device>& device) {
  const bool reopens = device->Is(MGE_DEVICE_REOPENABLE) && device->handle() && !device->Orphaned();
  if (!reopens || ErrorId(device->Health()) != errors::kDeviceLost.id) return device;
  std::shared_ptr<Device> lost, next;  // `lost` is destroyed after the lock is released, unless sessions hold it
  std::lock_guard lock(RecordMutex());
  for (auto& [backend, list] : devices_) {
    for (auto& d : list) {
      if (d->name() != device->name()) continue;
      if (d != device) return d;  // another thread has replaced it
      lost = d;
      next = d = device->Successor();
    }
  }
  std::replace(gpus_.begin(), gpus_.end(), lost, next);
  return next;
}

// ---------------------------------------------------------------- resolving names to devices

std::vector<std::shared_ptr<Device>> Devices::BestFirst() const {
  List best = gpus_, others;
  for (const auto& d : Known()) {
    if (d->number() >= 0 && !d->Is(MGE_DEVICE_GPU) && d->class_name() != "cpu") others.push_back(d);
  }
  std::stable_sort(others.begin(), others.end(), Outranks);
  best.insert(best.end(), others.begin(), others.end());
  for (const auto& d : OfClass("cpu")) best.push_back(d);
  std::erase_if(best, [](const auto& d) { return !d->usable() || d->Is(MGE_DEVICE_ONLY_BY_NAME); });
  return best;
}

std::vector<std::shared_ptr<Device>> Devices::OfClass(std::string_view cls) const {
  if (cls == "gpu") return gpus_;
  List out;
  for (const auto& d : Known()) {
    if (d->class_name() == cls && d->number() >= 0) out.push_back(d);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->number() < b->number(); });
  return out;
}

bool Devices::KnowsClasses(const DeviceSpec& spec) const {
  std::lock_guard lock(RecordMutex());
  const std::vector<PluginFile>& files = backends_->files();
  auto known = [&](const DeviceName& name) {
    std::span<const std::string_view> well_known = WellKnownDeviceClasses();
    return std::find(well_known.begin(), well_known.end(), name.cls) != well_known.end() ||
           !OfClass(ClassOf(name)).empty() || std::any_of(files.begin(), files.end(), [&](const PluginFile& f) {
             return absl::c_linear_search(f.classes, name.cls);
           });
  };
  return std::all_of(spec.alternatives.begin(), spec.alternatives.end(),
                     [&](const auto& devices) { return std::all_of(devices.begin(), devices.end(), known); });
}

absl::Status Devices::Unusable(const DeviceName& name, std::string why, std::string_view where, std::string fix) const {
  const std::string wanted = name.Written();
  // Other devices of the class if there are some, else devices of any class.
  std::vector<std::string> others;
  for (const auto& d : OfClass(ClassOf(name))) {
    const std::string& own = name.cls == "gpu" && !d->gpu_name().empty() ? d->gpu_name() : d->name();
    if (d->usable() && own != wanted) others.push_back(own);
  }
  const bool of_class = !others.empty();
  for (const auto& d : Known()) {
    if (of_class) break;
    if (d->usable() && !d->Is(MGE_DEVICE_ONLY_BY_NAME) && d->name() != wanted) others.push_back(d->name());
  }
  if (others.empty() && fix.empty()) fix = "see `mge devices`";
  if (!others.empty()) {
    fix += fmt::format("{}choose an available device ({})", fix.empty() ? "" : "; or ", fmt::join(others, ", "));
  }
  if (!of_class && absl::c_linear_search(others, "cpu0")) fix += fmt::format(", or allow a fallback: {},cpu0", wanted);
  return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be used", wanted),
              {.what = std::move(why), .where = std::string(where), .fix = std::move(fix)});
}

// Returns the devices that a name allows, best first. Returns at least one, or fails.
absl::StatusOr<std::vector<std::shared_ptr<Device>>> Devices::CandidatesLocked(const DeviceName& name,
                                                                               std::string_view where) const {
  List group = name.cls == "xpu" ? BestFirst() : OfClass(ClassOf(name));
  if (group.empty()) return NoSuchClass(name, where);
  // A CPU has one memory and one set of cores, so the id of a context such as cpu(3) selects no device.
  bool any = name.number == kLowestUsable || (name.context && group[0]->class_name() == "cpu");
  if (any) {
    std::string reasons;
    for (const auto& d : group) {
      if (!d->usable()) reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", d->name(), d->reason());
    }
    std::erase_if(group, [](const auto& d) { return !d->usable(); });
    if (group.empty()) return Unusable(name, std::move(reasons), where);
    return group;
  }
  if (name.cls == "xpu") {  // the number selects within the class of the best device
    const std::shared_ptr<Device> best = group[0];
    std::erase_if(group, [&](const auto& d) {
      return best->gpu_name().empty() ? d->class_name() != best->class_name() : d->gpu_name().empty();
    });
  }
  if (static_cast<size_t>(name.number) >= group.size()) {
    return Unusable(name,
                    group.size() == 1 ? fmt::format("there is one device of this class, {}", group[0]->name())
                                      : fmt::format("there are {} devices of this class, numbered from 0", group.size()),
                    where);
  }
  const std::shared_ptr<Device> device = group[static_cast<size_t>(name.number)];
  if (!device->usable()) return Unusable(name, device->reason(), where, "remove this cause");
  return List{device};
}

absl::StatusOr<std::vector<std::shared_ptr<Device>>> Devices::Candidates(const DeviceName& name, std::string_view where) {
  Start(ClassOf(name));
  auto find = [&] {
    std::lock_guard lock(RecordMutex());
    return CandidatesLocked(name, where);
  };
  absl::StatusOr<List> list = find();
  if (!list.ok()) {
    Start("cpu");  // the error then names cpu0 as another choice
    return find();
  }
  for (std::shared_ptr<Device>& device : *list) device = Alive(device);
  return list;
}

absl::StatusOr<std::shared_ptr<Device>> Devices::OpenFirst(const DeviceName& name, std::string_view where,
                                                           std::vector<std::string>& passed_over) {
  MGE_ASSIGN_OR_RETURN(List candidates, Candidates(name, where));
  absl::Status first;
  for (const std::shared_ptr<Device>& device : candidates) {
    absl::Status opened = device->Open();
    if (opened.ok()) return device;
    passed_over.push_back(fmt::format("{}: {}", device->name(), PartsOf(opened).what));
    if (first.ok()) first = AddWhere(opened, where);
  }
  return first;
}

namespace {

DeviceUse Use(const std::shared_ptr<Device>& device, const DeviceName& name) {
  return {.device = device.get(),
          .threads = name.threads,
          .synchronous = name.synchronous,
          .stream = name.stream,
          .pinned = name.cls == "cpu_pinned" ? name.number : kNoPinned,
          .owner = device};
}

}  // namespace

absl::StatusOr<DeviceUse> Devices::Locate(const DeviceName& name, std::string_view where) {
  MGE_ASSIGN_OR_RETURN(List candidates, Candidates(name, where));
  return Use(candidates[0], name);
}

absl::StatusOr<DeviceUse> Devices::Find(const DeviceName& name, std::string_view where) {
  std::vector<std::string> passed_over;
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, OpenFirst(name, where, passed_over));
  return Use(device, name);
}

absl::StatusOr<Resolution> Devices::Resolve(const DeviceSpec& spec, std::string_view where) {
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
      } else if (absl::StatusOr<std::shared_ptr<Device>> opened = OpenFirst(name, where, unopened); opened.ok()) {
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

absl::StatusOr<Resolution> Devices::Resolve(std::string_view text, std::string_view where) {
  MGE_ASSIGN_OR_RETURN(DeviceSpec spec, ParseDeviceSpec(text, where));
  return Resolve(spec, where);
}

}  // namespace mge
