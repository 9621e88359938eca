// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/loader.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/needed.h"
#include "core/plugin/note.h"
#include "core/plugin/slow_start.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr size_t kMaxDevices = 1024;
constexpr uint32_t kMaxScore = 100;

// One library of the process. It is never unmapped, because threads, handlers and static objects of a driver may outlive
// stop().
struct Library {
  FileIdentity identity;
  std::string build_id;  // empty: unknown
  boost::dll::shared_library handle = {};
  std::weak_ptr<Backend> backend = {};
  std::string thrown = {};        // the text of the exception that its static objects threw, else ""
  const Backend* user = nullptr;  // set before the library is opened or started, reset after stop() has returned
  pid_t user_in = 0;              // the process that set `user`; threads of a parent process do not exist in a forked child
  std::unique_ptr<HostServices> retired = {};

  // Keeps the services, because static objects of the library may call the host when the process ends.
  void Retire(std::unique_ptr<HostServices> services) {
    services->Retire();
    retired = std::move(services);
  }
};

// The libraries of the process. No code of a backend runs while the mutex is held, so a slow start does not delay the
// loading of other backends.
struct Process {
  std::mutex mutex;
  std::condition_variable unused;  // notified when `user` of a library is reset
  std::list<Library> libraries;
};

// Returns the record of this process. It is not destroyed at exit, because other threads may still use backends. It needs no
// heap memory, because a destructor calls this function.
Process& TheProcess() {
  alignas(Process) static std::byte memory[sizeof(Process)];
  static Process* process = [] {
    auto* made = new (memory) Process;
    pthread_atfork([] { TheProcess().mutex.lock(); }, [] { TheProcess().mutex.unlock(); },
                   [] {
                     new (&TheProcess().unused) std::condition_variable;  // the waiting threads exist only in the parent
                     TheProcess().mutex.unlock();
                   });
    return made;
  }();
  return *process;
}
// Creates the record before there are threads. A process forked during its creation would wait for it forever.
[[maybe_unused]] const Process& made_at_load = TheProcess();

// Skips a file that this machine cannot use at present: no driver, no device, or no memory.
void CheckLack(PluginFile& file, VerdictCode code, std::string reason) {
  SetVerdict(file, Verdict::kSkipped, code, std::move(reason),
             code == VerdictCode::kUnavailable
                 ? "install the driver that it needs, if this machine has such a device"
                 : "end other programs, or raise the limit of this one (ulimit -v, its control group), and try again");
}

// Returns the text of the last failed dlopen() in English, also if the application has set another locale.
std::string DlopenError() {
  locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", nullptr));  // cannot fail for "C"
  const char* text = dlerror();
  uselocale(before);
  return text ? text : "";
}

// Converts the text of a failed dlopen() to a verdict, for example "libfoo.so.1: cannot open shared object file: No such
// file or directory". There is no error code, so the texts of glibc are compared.
void CheckOpenFailure(PluginFile& file, std::string text) {
  constexpr std::string_view kNoFile = ": cannot open shared object file: No such file";
  // The dynamic linker reports an existing file as missing if it has no memory for its name.
  const bool there = text.starts_with(fmt::format("{}{}", file.path, kNoFile)) && access(file.path.c_str(), F_OK) == 0;
  if (there || text.ends_with(ErrnoText(ENOMEM)) || text.ends_with("out of memory")) {
    return CheckLack(file, VerdictCode::kOutOfMemory, fmt::format("there is not enough memory to open it: {}", text));
  }
  constexpr std::string_view kNoSymbol = "undefined symbol: ";
  constexpr std::string_view kNoVersion = ": version `";
  if (size_t at = text.find(kNoFile); at != std::string::npos && !text.starts_with(file.path)) {
    std::string library = text.substr(0, at);
    const std::vector<std::string> own = ReadElfNeeds(file.path).value_or(ElfNeeds()).libraries;
    bool direct = std::find(own.begin(), own.end(), library) != own.end();
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingLibrary,
                      direct ? fmt::format("it needs the library {}, which is not found", library)
                             : fmt::format("a library that it needs ({}) needs {} in turn, which is not found",
                                           fmt::join(own, ", "), library),
                      fmt::format("install {}, or add its directory to the system's library path (ldconfig)", library));
  }
  if (size_t at = text.find(kNoSymbol); at != std::string::npos) {
    std::string who = text.substr(0, text.find(": "));
    std::string symbol = text.substr(at + kNoSymbol.size());
    symbol = symbol.substr(0, symbol.find_first_of(", ("));
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingSymbol,
                      fmt::format("{} needs the symbol {}, which no library provides", who, symbol),
                      "install the versions of its libraries that it was built with, or build it again");
  }
  if (text.find(kNoVersion) != std::string::npos) {
    return SetVerdict(file, Verdict::kRefused, VerdictCode::kMissingLibrary,
                      fmt::format("a library that it needs is too old: {}", text),
                      "install the versions of its libraries that it was built with, or build it again");
  }
  SetVerdict(file, Verdict::kRefused, VerdictCode::kNotOpened, fmt::format("it cannot be opened: {}", text),
             "install it again, or build it again for this system");
}

// Refuses a library whose static objects threw. The exception leaves the dynamic linker's lock with this thread, so other
// threads that open a library wait forever.
void CheckThrown(PluginFile& file, const std::string& thrown) {
  SetVerdict(
      file, Verdict::kRefused, VerdictCode::kOpenThrew, "while it was being opened, " + thrown,
      fmt::format("run `mge doctor` to put it into quarantine, or set MGE_PLUGIN_SKIP={} to leave it out; then restart "
                  "this process, in which other threads wait forever when they open a library",
                  file.name));
}

// Opens the file. If it cannot be opened, returns an empty handle and sets the verdict in `file`. If its static objects
// threw, returns a handle and sets `thrown` to the text of the exception.
boost::dll::shared_library Open(PluginFile& file, std::string& thrown) {
  namespace mode = boost::dll::load_mode;
  const std::filesystem::path path(file.path);
  boost::dll::shared_library handle;
  std::error_code code;
  mge_error error;
  CallBackend(error, [&](mge_error*) {
    handle.load(path, mode::rtld_now | mode::rtld_local, code);
    return MGE_OK;
  });
  if (error.code != MGE_OK) {  // the library is loaded only if its own code threw, else dlopen() or Boost.DLL did
    handle.load(path, mode::rtld_now | mode::rtld_local | static_cast<mode::type>(RTLD_NOLOAD), code);
    if (handle.is_loaded()) {
      thrown = TextOfBackend(error.code, error);
    } else {
      CheckLack(file, VerdictCode::kOutOfMemory, "it cannot be opened: " + TextOfBackend(error.code, error));
    }
  } else if (code) {
    const std::string text = DlopenError();
    CheckOpenFailure(file, EscapeControl(text.empty() ? code.message() : text));
  }
  return handle;
}

// The receiver of the devices that enumerate() reports.
struct DeviceCollector {
  DeviceListing& out;
  const std::vector<std::string>* classes;
  Deferred deferred = {};

  void Add(const mge_device_info* info) {
    auto& [devices, bad] = out;
    if (!bad.empty()) return;
    if (!info || info->struct_size < offsetof(mge_device_info, memory_total)) {
      bad = "it describes a device with a struct that is NULL or too short";
      return;
    }
    mge_device_info known = Widen(*info);
    if (bad = WhyDeviceInfoIsBad(known); !bad.empty()) return;
    DeviceDescription d = {.index = known.index,
                           .class_name = CopyText(known.class_name, 64),
                           .name = EscapeControl(CopyText(known.name, 256)),
                           .fingerprint = CopyText(known.fingerprint, 256),
                           .device_class = CopyText(known.device_class, 256),
                           .reason = OneLine(CopyText(known.reason)),
                           .score = known.score,
                           .flags = known.flags,
                           .memory_total = known.memory_total,
                           .driver = EscapeControl(CopyText(known.driver, 256)),
                           .max_allocation = known.max_allocation,
                           .buffer_alignment = std::max(known.buffer_alignment, 64u),
                           .compute_queues = std::clamp(known.compute_queues, 1u, 64u)};
    for (uint64_t i = 0; i < known.property_count; ++i) {
      d.properties.emplace_back(CopyText(known.properties[i]->key), EscapeControl(CopyText(known.properties[i]->value)));
    }
    auto declares = [&](std::string_view cls) {
      return !classes || std::find(classes->begin(), classes->end(), cls) != classes->end();
    };
    if (devices.size() >= kMaxDevices) {
      bad = fmt::format("it reports more than {} devices", kMaxDevices);
    } else if (classes && (!declares(d.class_name) || d.class_name == "gpu")) {
      bad = fmt::format("it reports a device of class '{}'; its identity note declares {}", EscapeControl(d.class_name),
                        fmt::join(*classes, ", "));
    } else if ((d.flags & MGE_DEVICE_GPU) && !declares("gpu")) {
      bad =
          "it reports a device as a GPU, but its identity note does not declare the "
          "class gpu";
    } else if (d.flags & ~MGE_DEVICE_KNOWN_BITS) {
      bad = fmt::format("it sets unknown flags of a device ({:#x})", d.flags & ~MGE_DEVICE_KNOWN_BITS);
    } else if (d.score > kMaxScore) {
      bad = fmt::format("it gives a device the score {}; the highest is {}", d.score, kMaxScore);
    } else if (std::any_of(devices.begin(), devices.end(), [&](const auto& o) { return o.index == d.index; })) {
      bad = fmt::format("it reports two devices with the index {}", d.index);
    } else {
      devices.push_back(std::move(d));
    }
  }
};

// Returns the verdict for an error of a backend: `fault`, unless the machine lacks a driver, a device or memory.
VerdictCode VerdictOn(mge_code code, VerdictCode fault) {
  if (code == MGE_UNAVAILABLE) return VerdictCode::kUnavailable;
  return code == MGE_RESOURCE_EXHAUSTED ? VerdictCode::kOutOfMemory : fault;
}

// Lists the devices of a started backend. Returns kOk, or another code with a reason.
std::pair<VerdictCode, std::string> Enumerate(const mge_plugin& plugin, const std::vector<std::string>& classes,
                                              std::vector<DeviceDescription>& out) {
  mge_error error;
  DeviceListing list;
  const mge_code code = ListDevices(plugin, &classes, &list, error);
  if (code == MGE_UNAVAILABLE) return {VerdictCode::kUnavailable, TextOfBackend(code, error)};
  if (code != MGE_OK)
    return {VerdictOn(code, VerdictCode::kBadDevice), "it cannot list its devices: " + TextOfBackend(code, error)};
  if (!list.fault.empty()) return {VerdictCode::kBadDevice, list.fault};
  for (DeviceDescription& d : list.devices) {
    if (d.score == 0 && d.reason.empty()) d.reason = "the backend gives no reason";
  }
  out = std::move(list.devices);
  return {VerdictCode::kOk, {}};
}

std::string AuthorFix(const PluginFile& file) {
  return fmt::format("report it to the author of backend '{}' (`mge sdk test FILE` says more), or remove the file",
                     file.name);
}

void CheckOutcome(PluginFile& file, VerdictCode code, std::string reason) {
  const bool lack = code == VerdictCode::kUnavailable || code == VerdictCode::kOutOfMemory;
  if (lack) return CheckLack(file, code, std::move(reason));
  SetVerdict(file, Verdict::kRefused, code, std::move(reason), AuthorFix(file));
}

// Calls the entry point of an open library and copies its tables. On failure returns nullptr and sets the verdict in `file`.
std::unique_ptr<const BackendTables> Query(const Library& library, const FoundPlugin& found, PluginFile& file) {
  auto refuse = [&](VerdictCode code, std::string reason, std::string fix) -> std::unique_ptr<const BackendTables> {
    SetVerdict(file, Verdict::kRefused, code, std::move(reason), std::move(fix));
    return nullptr;
  };
  // has() is called first, because get() throws for a missing symbol.
  if (!library.handle.has(MGE_PLUGIN_QUERY_SYMBOL)) {
    return refuse(VerdictCode::kNoEntry, "it does not export " MGE_PLUGIN_QUERY_SYMBOL,
                  "build it with MGE_PLUGIN_ENTRY of the SDK and export that symbol");
  }
  auto* query = &library.handle.get<std::remove_pointer_t<mge_plugin_query_fn>>(MGE_PLUGIN_QUERY_SYMBOL);
  mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  mge_query_out out = {sizeof(out), 0, nullptr, {nullptr, 0}};
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error*) { return query(&in, &out); });
  if (code == MGE_RESOURCE_EXHAUSTED) {
    CheckLack(file, VerdictCode::kOutOfMemory, "it cannot return its table: " + TextOfBackend(code, error));
    return nullptr;
  }
  if (code != MGE_OK) {
    if (error.text.empty()) error.text = CopyText(out.reason);
    return refuse(VerdictCode::kQueryRefused, "it declines to work with this host: " + TextOfBackend(code, error),
                  "build it again with the SDK of this host");
  }
  const mge_plugin* plugin = out.plugin;
  if (!plugin) return refuse(VerdictCode::kBadTable, "it returns no table (NULL)", AuthorFix(file));
  if (plugin->struct_size < offsetof(mge_plugin, settings)) {
    return refuse(VerdictCode::kBadTable,
                  fmt::format("its table has {} bytes (struct_size), which is too short; this host's table has {}",
                              plugin->struct_size, sizeof(mge_plugin)),
                  AuthorFix(file));
  }
  PluginNote claimed = found.note;
  claimed.abi_major = plugin->abi_major;
  claimed.abi_minor = plugin->abi_minor;
  claimed.header_hash = plugin->header_hash;
  if (std::string why = WhyAbiDiffers(claimed); !why.empty()) {
    return refuse(VerdictCode::kAbiMismatch, "its table contradicts its identity note: " + why,
                  "build it again with the SDK of this host");
  }
  auto tables = std::make_unique<BackendTables>();
  if (std::string why = tables->Read(*plugin); !why.empty()) {
    return refuse(VerdictCode::kBadTable, why, AuthorFix(file));
  }
  std::string name = CopyText(plugin->name), version = CopyText(plugin->version);
  if (name != found.note.name || version != found.note.version) {
    return refuse(VerdictCode::kBadTable,
                  fmt::format("its identity note says '{}' {}, its table says '{}' {}", found.note.name, found.note.version,
                              EscapeControl(name), EscapeControl(version)),
                  AuthorFix(file));
  }
  return tables;
}

absl::StatusOr<std::vector<std::string>> ValuesOfSettings(const mge_plugin& plugin, std::string_view name,
                                                          const DeclareSettings& declare) {
  if (declare) return declare(name, {plugin.settings, static_cast<size_t>(plugin.setting_count)});
  std::vector<std::string> values;
  for (uint64_t i = 0; i < plugin.setting_count; ++i) values.push_back(CopyText(plugin.settings[i]->default_value));
  return values;
}

// Refuses a backend because of a setting. The fix is the setting's own, because usually the user's value is wrong.
void CheckGivenSettings(PluginFile& file, const absl::Status& status) {
  ErrorParts parts = PartsOf(status);
  std::string reason = ErrorTitle(status);
  if (!parts.what.empty()) reason += ": " + parts.what;
  if (!parts.where.empty()) reason += fmt::format(" ({})", parts.where);
  SetVerdict(file, Verdict::kRefused, VerdictCode::kBadSetting, reason, parts.fix.empty() ? AuthorFix(file) : parts.fix);
}

mge_code Start(const mge_plugin& plugin, const mge_host* host, mge_error& error) {
  return CallBackend(error, [&](mge_error* e) { return plugin.start(host, e); });
}

void Stop(const mge_plugin& plugin) {
  mge_error ignored;
  CallBackend(ignored, [&](mge_error*) {
    plugin.stop();
    return MGE_OK;
  });
}

}  // namespace

mge_code ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes, DeviceListing* out,
                     mge_error& error) {
  DeviceCollector collector = {*out, classes};
  mge_device_sink sink = {sizeof(sink), 0, &collector, [](void* self, const mge_device_info* info) {
                            auto& to = *static_cast<DeviceCollector*>(self);
                            to.deferred.Run([&] { to.Add(info); });
                          }};
  const mge_code code = CallBackend(error, [&](mge_error* e) { return plugin.device->enumerate(&sink, e); });
  collector.deferred.Rethrow();
  return code;
}

std::string WhyTableIsBad(const mge_plugin& plugin) { return BackendTables().Read(plugin); }

void Backend::Set(std::string_view key, std::string value) {
  for (size_t i = 0; i < plugin().setting_count; ++i) {
    if (CopyText(plugin().settings[i]->key) == key) return services_->SetSetting(i, std::move(value));
  }
}

bool Backend::InForkedChild() const { return started_in_ != getpid(); }

bool Backend::Orphaned() const {
  return InForkedChild() && !std::all_of(devices_.begin(), devices_.end(),
                                         [](const DeviceDescription& d) { return d.flags & MGE_DEVICE_SURVIVES_FORK; });
}

Backend::~Backend() {
  if (!started_in_) return;
  // In a forked child the backend's threads do not exist, and stop() would wait for them. Threads of the parent may have held
  // locks of the services, and the library may have been started again with others.
  if (InForkedChild()) {
    (void)services_.release();
  } else {
    Stop(plugin());
  }
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  for (Library& library : process.libraries) {
    if (library.user != this) continue;
    library.user = nullptr;
    if (services_) library.Retire(std::move(services_));
  }
  process.unused.notify_all();
}

std::mutex& RecordMutex() { return TheProcess().mutex; }

std::shared_ptr<Backend> LoadBackend(const FoundPlugin& found, const StartContext& context, PluginFile& file) {
  return Backend::Load(found, context, /*start=*/true, file);
}

bool OpenLibrary(const FoundPlugin& found, const StartContext& context) {
  PluginFile file;
  Backend::Load(found, context, /*start=*/false, file);
  return file.code != VerdictCode::kOpenThrew;
}

// With `start` false, only opens the library, and returns nullptr.
std::shared_ptr<Backend> Backend::Load(const FoundPlugin& found, const StartContext& context, bool start, PluginFile& file) {
  const Logger& logger = context.logger;
  file = found.file;
  Process& process = TheProcess();
  std::shared_ptr<Backend> parents;  // before the lock, so that it is released without it: ~Backend() acquires it
  std::unique_lock lock(process.mutex);
  std::list<Library>::iterator library;
  std::shared_ptr<Backend> shared;
  for (;;) {
    library = std::find_if(process.libraries.begin(), process.libraries.end(),
                           [&](const Library& l) { return l.identity == found.identity; });
    if (library == process.libraries.end()) {
      library = process.libraries.insert(library, Library{found.identity, found.file.build_id});
    }
    shared = library->backend.lock();
    if (shared && shared->Orphaned()) {  // a runtime of the parent has it; this process starts the backend anew
      parents = std::move(shared);
      library->user = nullptr;
    }
    if (shared || !library->user) break;
    if (!start) return nullptr;  // another thread opens it
    if (library->user_in != getpid()) {
      SetVerdict(file, Verdict::kRefused, VerdictCode::kStartFailed,
                 "the process was forked while it was being started or stopped by another thread",
                 "fork before other threads create runtimes, or execute a new program in the child (exec)");
      return nullptr;
    }
    process.unused.wait(lock);
  }
  if (shared) {
    lock.unlock();  // ~Backend() of the last owner acquires the lock
    if (!start) return nullptr;
    absl::StatusOr<std::vector<std::string>> values = ValuesOfSettings(shared->plugin(), shared->name_, context.settings);
    if (!values.ok()) {
      CheckGivenSettings(file, values.status());
      return nullptr;
    }
    if (*values != shared->services_->settings()) {
      logger.Warning(
          "backend {} was started by another runtime of this process with other settings, which "
          "stay in effect",
          shared->name_);
    }
    SetVerdict(file, Verdict::kLoaded, VerdictCode::kOk, "");
    return shared;
  }
  std::shared_ptr<Backend> backend(new Backend);
  library->user = backend.get();
  library->user_in = getpid();
  lock.unlock();
  absl::Cleanup give_up = [&] {
    std::lock_guard again(process.mutex);
    library->user = nullptr;
    if (!library->handle.is_loaded()) process.libraries.erase(library);
    process.unused.notify_all();
  };
  if (IdentityOf(found.file.path) != found.identity) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUntrusted, "it changed after it was checked", "try again");
    return nullptr;
  }
  absl::StatusOr<std::string> build = BuildOf(found.file.path, found.file.build_id);
  if (!build.ok()) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUnreadable, PartsOf(build.status()).what,
               "make the file readable for you");
    return nullptr;
  }
  SlowStart watch(logger, found.file);
  if (!library->handle.is_loaded()) {
    std::string thrown;
    boost::dll::shared_library handle = Open(file, thrown);
    if (!handle.is_loaded()) return nullptr;
    lock.lock();
    // The dynamic linker identifies libraries by path, so dlopen() may return an older file of the same path.
    auto older = std::find_if(process.libraries.begin(), process.libraries.end(), [&](const Library& l) {
      return l.handle.is_loaded() && l.handle.native() == handle.native();
    });
    if (older == process.libraries.end()) {
      library->handle = std::move(handle);  // its code may have run, so it must never be unmapped
      library->thrown = std::move(thrown);
      lock.unlock();
    } else if (!older->build_id.empty() && older->build_id == found.file.build_id) {
      older->identity = found.identity;
      lock.unlock();
      std::move(give_up).Invoke();
      return Load(found, context, start, file);
    } else {
      lock.unlock();
      SetVerdict(file, Verdict::kRefused, VerdictCode::kOlderInUse,
                 "this process has already opened another build from the same path, which stays open until it ends",
                 "restart the process to use this build");
      return nullptr;
    }
    if (IdentityOf(found.file.path) != found.identity) {
      SetVerdict(file, Verdict::kRefused, VerdictCode::kUntrusted, "it changed while it was being opened", "try again");
      return nullptr;
    }
  }
  if (!library->thrown.empty()) {
    CheckThrown(file, library->thrown);
    logger.Warning("backend '{}' ({}) is refused: {}. {}", file.name, file.path, file.reason, file.fix);
    return nullptr;
  }
  if (!start) return nullptr;
  std::unique_ptr<const BackendTables> tables = Query(*library, found, file);
  if (!tables) return nullptr;
  const mge_plugin* plugin = &tables->plugin();

  backend->name_ = found.note.name;
  backend->version_ = found.note.version;
  backend->path_ = found.file.path;
  backend->build_ = *std::move(build);
  backend->tables_ = std::move(tables);
  backend->services_ = std::make_unique<HostServices>(backend->name_, context.compute);
  backend->services_->SetBlobs(std::make_unique<BlobCache>(context.blobs, backend->build_));
  absl::StatusOr<std::vector<std::string>> values = ValuesOfSettings(*plugin, backend->name_, context.settings);
  if (!values.ok()) {
    CheckGivenSettings(file, values.status());
    return nullptr;
  }
  backend->services_->SetSettings(*std::move(values));
  backend->services_->Attach(backend.get(), logger, context.core);

  bool started = false;
  absl::Cleanup undo = [&] {
    if (started) Stop(*plugin);
    library->Retire(std::move(backend->services_));
  };
  logger.Info("starting backend {} ({})", backend->name(), file.path);
  mge_error error;
  mge_code code = Start(*plugin, backend->host(), error);
  started = code == MGE_OK;
  if (!started) {
    CheckOutcome(file, VerdictOn(code, VerdictCode::kStartFailed),
                 (code == MGE_UNAVAILABLE ? "" : "it does not start: ") + TextOfBackend(code, error));
    return nullptr;
  }
  auto [verdict, reason] = Enumerate(*plugin, found.note.classes, backend->devices_);
  backend->services_->Detach(backend.get());
  if (verdict != VerdictCode::kOk) {
    CheckOutcome(file, verdict, std::move(reason));
    return nullptr;
  }
  SetVerdict(file, Verdict::kLoaded, VerdictCode::kOk, "");
  std::move(undo).Cancel();
  std::move(give_up).Cancel();
  backend->started_in_ = getpid();
  lock.lock();
  library->backend = backend;
  process.unused.notify_all();  // waiting threads can share the backend
  return backend;
}

absl::StatusOr<std::shared_ptr<Backend>> Backend::FromTable(const mge_plugin* plugin, std::vector<std::string> classes,
                                                            const ComputeFunctions& compute) {
  std::string name = CopyText(plugin->name);
  auto fail = [&](VerdictCode code, std::string why) {
    return Fail(code == VerdictCode::kOutOfMemory ? errors::kOutOfMemory : errors::kPluginRefused,
                fmt::format("the built-in backend '{}' does not start", name), {.what = std::move(why)});
  };
  auto tables = std::make_unique<BackendTables>();
  if (std::string why = tables->Read(*plugin); !why.empty()) return fail(VerdictCode::kBadTable, why);
  std::shared_ptr<Backend> backend(new Backend);
  backend->name_ = name;
  backend->version_ = CopyText(plugin->version);
  backend->path_ = "built-in";
  backend->tables_ = std::move(tables);
  backend->services_ = std::make_unique<HostServices>(name, compute);
  mge_error error;
  if (mge_code code = Start(*plugin, backend->host(), error); code != MGE_OK)
    return fail(VerdictOn(code, VerdictCode::kStartFailed), TextOfBackend(code, error));
  backend->started_in_ = getpid();
  auto [verdict, reason] = Enumerate(*plugin, classes, backend->devices_);
  if (verdict != VerdictCode::kOk) return fail(verdict, reason);
  return backend;
}

}  // namespace mge
