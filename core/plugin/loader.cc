// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/loader.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/library_record.h"
#include "core/plugin/note.h"
#include "core/plugin/open_library.h"
#include "core/plugin/slow_start.h"
#include "core/plugin/start_record.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the verdict for an error of a backend: `fault`, unless the machine lacks a driver, a device or memory.
VerdictCode VerdictOn(mge_code code, VerdictCode fault) {
  if (code == MGE_UNAVAILABLE) return VerdictCode::kUnavailable;
  return code == MGE_RESOURCE_EXHAUSTED ? VerdictCode::kOutOfMemory : fault;
}

// Lists the devices of a started backend. Returns kOk, or another code with a reason.
std::pair<VerdictCode, std::string> EnumerateDevices(const mge_plugin& plugin, const std::vector<std::string>& classes,
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
std::unique_ptr<const BackendTables> Query(const boost::dll::shared_library& handle, const FoundPlugin& found,
                                           PluginFile& file) {
  auto refuse = [&](VerdictCode code, std::string reason, std::string fix) -> std::unique_ptr<const BackendTables> {
    SetVerdict(file, Verdict::kRefused, code, std::move(reason), std::move(fix));
    return nullptr;
  };
  // has() is called first, because get() throws for a missing symbol.
  if (!handle.has(MGE_PLUGIN_QUERY_SYMBOL)) {
    return refuse(VerdictCode::kNoEntry, "it does not export " MGE_PLUGIN_QUERY_SYMBOL,
                  "build it with MGE_PLUGIN_ENTRY of the SDK and export that symbol");
  }
  auto* query = &handle.get<std::remove_pointer_t<mge_plugin_query_fn>>(MGE_PLUGIN_QUERY_SYMBOL);
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

mge_code CallStart(const mge_plugin& plugin, const mge_host* host, mge_error& error) {
  return CallBackend(error, [&](mge_error* e) { return plugin.start(host, e); });
}

void CallStop(const mge_plugin& plugin) {
  mge_error ignored;
  CallBackend(ignored, [&](mge_error*) {
    plugin.stop();
    return MGE_OK;
  });
}

}  // namespace

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
    CallStop(plugin());
  }
  ReleaseLibrary(this, std::move(services_));
}

// One call of LoadBackend() or OpenLibrary(). Each step returns false if it fails, with the verdict in `file_`.
class BackendLoader {
 public:
  BackendLoader(const FoundPlugin& found, const StartContext& context, PluginFile& file)
      : found_(found), context_(context), file_(file) {
    file_ = found.file;
  }

  // Returns nullptr if `start` is false: then it only opens the library.
  std::shared_ptr<Backend> Load(bool start) {
    for (;;) {
      std::shared_ptr<Backend> backend(new Backend);
      ClaimedLibrary claimed = ClaimLibrary(found_, backend.get(), /*wait=*/start);
      if (claimed.backend) return start && Share(*claimed.backend) ? std::move(claimed.backend) : nullptr;
      if (claimed.lost) {
        SetVerdict(file_, Verdict::kRefused, VerdictCode::kStartFailed,
                   "the process was forked while it was being started or stopped by another thread",
                   "fork before other threads create runtimes, or execute a new program in the child (exec)");
      }
      if (!claimed.claim) return nullptr;
      SlowStart watch(context_.logger, found_.file);
      bool retry = false;
      if (!Open(claimed.claim, &retry)) {
        if (retry) continue;  // the library is open under another identity, and may be in use
        return nullptr;
      }
      if (!start || !Start(claimed.claim.library(), *backend)) return nullptr;
      claimed.claim.Publish(backend);
      return backend;
    }
  }

 private:
  // Checks the settings of this runtime against those with which another runtime has started the backend.
  bool Share(const Backend& backend) {
    const absl::StatusOr<std::vector<std::string>> values =
        ValuesOfSettings(backend.plugin(), backend.name(), context_.settings);
    if (!values.ok()) return CheckGivenSettings(file_, values.status()), false;
    if (*values != backend.services_->settings()) {
      context_.logger.Warning(
          "backend {} was started by another runtime of this process with other settings, which stay in effect",
          backend.name());
    }
    SetVerdict(file_, Verdict::kLoaded, VerdictCode::kOk, "");
    return true;
  }

  bool Refuse(VerdictCode code, std::string reason, std::string fix) {
    SetVerdict(file_, Verdict::kRefused, code, std::move(reason), std::move(fix));
    return false;
  }

  // Opens the file unless the library is open. The file must be the one that was checked, before and after that. Sets *retry
  // if the library must be claimed again.
  bool Open(LibraryClaim& claim, bool* retry) {
    if (!IsUnchanged()) return Refuse(VerdictCode::kUntrusted, "it changed after it was checked", "try again");
    absl::StatusOr<std::string> build = BuildOf(found_.file.path, found_.file.build_id);
    if (!build.ok()) return Refuse(VerdictCode::kUnreadable, PartsOf(build.status()).what, "make the file readable for you");
    build_ = *std::move(build);
    record_.emplace(context_.quarantine,
                    Quarantine::Entry{build_, found_.note.name, file_.path, "its start ended a process"});
    if (!claim.library().handle.is_loaded() && !OpenFile(claim, retry)) return false;
    if (claim.library().thrown.empty()) return true;
    CheckThrown(file_, claim.library().thrown);
    context_.logger.Warning("backend '{}' ({}) is refused: {}. {}", file_.name, file_.path, file_.reason, file_.fix);
    return false;
  }

  bool OpenFile(LibraryClaim& claim, bool* retry) {
    std::string thrown;
    boost::dll::shared_library handle = OpenLibraryFile(file_, thrown);
    if (!handle.is_loaded()) return false;
    switch (claim.SetHandle(std::move(handle), std::move(thrown))) {
      case LibraryClaim::Opened::kNew: break;
      case LibraryClaim::Opened::kSameBuild: *retry = true; return false;
      case LibraryClaim::Opened::kOtherBuild:
        return Refuse(VerdictCode::kOlderInUse,
                      "this process has already opened another build from the same path, which stays open until it ends",
                      "restart the process to use this build");
    }
    if (IsUnchanged()) return true;
    return Refuse(VerdictCode::kUntrusted, "it changed while it was being opened", "try again");
  }

  // Returns whether the file is the one that was checked.
  bool IsUnchanged() const { return IdentityOf(found_.file.path) == found_.identity; }

  // Starts the backend of an open library. Stops it again if it describes its devices wrongly.
  bool Start(Library& library, Backend& backend) {
    backend.tables_ = Query(library.handle, found_, file_);
    if (!backend.tables_) return false;
    const mge_plugin& plugin = backend.plugin();
    backend.name_ = found_.note.name;
    backend.version_ = found_.note.version;
    backend.path_ = found_.file.path;
    backend.build_ = build_;
    if (!Configure(backend)) return false;
    backend.services_->Attach(&backend, context_.logger, context_.core);
    bool started = false;
    absl::Cleanup undo = [&] {
      if (started) CallStop(plugin);
      library.Retire(std::move(backend.services_));
    };
    context_.logger.Info("starting backend {} ({})", backend.name(), file_.path);
    mge_error error;
    const mge_code code = CallStart(plugin, backend.host(), error);
    started = code == MGE_OK;
    if (!started) {
      CheckOutcome(file_, VerdictOn(code, VerdictCode::kStartFailed),
                   (code == MGE_UNAVAILABLE ? "" : "it does not start: ") + TextOfBackend(code, error));
      return false;
    }
    auto [verdict, reason] = EnumerateDevices(plugin, found_.note.classes, backend.devices_);
    backend.services_->Detach(&backend);
    if (verdict != VerdictCode::kOk) return CheckOutcome(file_, verdict, std::move(reason)), false;
    std::move(undo).Cancel();
    backend.started_in_ = getpid();
    SetVerdict(file_, Verdict::kLoaded, VerdictCode::kOk, "");
    return true;
  }

  // Creates the services of the backend, with its settings.
  bool Configure(Backend& backend) {
    backend.services_ = std::make_unique<HostServices>(backend.name_, context_.compute);
    backend.services_->SetBlobs(std::make_unique<BlobCache>(context_.blobs, backend.build_));
    absl::StatusOr<std::vector<std::string>> values = ValuesOfSettings(backend.plugin(), backend.name_, context_.settings);
    if (!values.ok()) return CheckGivenSettings(file_, values.status()), false;
    backend.services_->SetSettings(*std::move(values));
    return true;
  }

  const FoundPlugin& found_;
  const StartContext& context_;
  PluginFile& file_;
  std::string build_;
  std::optional<StartRecord> record_;  // while its code may run
};

std::shared_ptr<Backend> LoadBackend(const FoundPlugin& found, const StartContext& context, PluginFile& file) {
  return BackendLoader(found, context, file).Load(/*start=*/true);
}

bool OpenLibrary(const FoundPlugin& found, const StartContext& context) {
  PluginFile file;
  BackendLoader(found, context, file).Load(/*start=*/false);
  return file.code != VerdictCode::kOpenThrew;
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
  if (mge_code code = CallStart(*plugin, backend->host(), error); code != MGE_OK)
    return fail(VerdictOn(code, VerdictCode::kStartFailed), TextOfBackend(code, error));
  backend->started_in_ = getpid();
  auto [verdict, reason] = EnumerateDevices(*plugin, classes, backend->devices_);
  if (verdict != VerdictCode::kOk) return fail(verdict, reason);
  return backend;
}

}  // namespace mge
