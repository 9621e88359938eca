// SPDX-License-Identifier: Apache-2.0
// Registry: reads every setting of one runtime from its sources, records the origin of each value, and
// enforces its lifecycle.
//
//   MGE_ASSIGN_OR_RETURN(auto registry, Registry::Create({.environment = CaptureEnvironment()},
//                                                        logger));
//   ... find backends ...
//   MGE_RETURN_IF_ERROR(registry->CheckUnknown(names that cannot be loaded, names that may be started later));
//   registry->MarkRead();  // after this call, first-set settings cannot change
//   ... when a backend is opened: registry->RegisterBackend(name, rows), registry->CheckNamesOf(name) ...
//   int64_t threads = registry->snapshot()->Get<kThreads>();
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/env/environment.h"
#include "core/env/foreign_names.h"
#include "core/env/snapshot.h"

namespace mge {

// NAME=TEXT from a call or the command line. The name is a key, a variable or an alias. An empty
// text sets nothing.
struct Assignment {
  std::string name;
  std::string text;
  std::string option = {};  // the option as the user wrote it, for the origin: "--threads 2"; empty means "--set NAME=TEXT"
};

// The sources of values. Precedence: call > command line > environment > configuration
// files (a later file wins over an earlier one).
struct Sources {
  std::vector<Assignment> call = {};
  std::vector<Assignment> command_line = {};
  std::vector<std::string> config_files = {};  // from --config; if not empty, MGE_CONFIG is ignored
  Environment environment = {};
  // True: `environment` is the process's, and FollowEnvironment() reads it again.
  bool follows_environment = false;
};

// A setting that a backend declares. Its default and its limits are parsed like a user's text.
struct BackendSetting {
  std::string key;  // begins with the backend's name and a dot
  SettingType type = SettingType::kText;
  std::string default_value = {};
  std::string min = {};  // numbers, bytes and seconds only; empty means unlimited
  std::string max = {};
  std::vector<std::string> choices =
      {};  // for kChoice and kFlags; a value is the index in the list, or the sum of 1 << index
  std::string unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string doc = {};  // one sentence
};

// A foreign name of a setting, with values as its page spells them.
struct ForeignUse {
  ForeignName name;
  std::string allowed;
  std::string default_value;  // ours
  std::string page_default;   // that of the page if ours differs, else empty
  std::string meanings;       // the page's values in our words, "0 = off, 1 = static"; empty if they are the same
};

// A setting as `mge env` lists it.
struct SettingInfo {
  std::string key;
  std::string variable;
  std::vector<std::string> aliases;
  std::vector<ForeignUse> foreign;  // the names above that other systems define
  std::string type;
  std::string default_value;
  std::string value;
  std::string origin;
  std::string allowed;  // allowed values as text, such as a range; empty if all are allowed
  std::string unit;
  std::string lifecycle;  // "first-set" or "dynamic"
  bool unstable = false;  // a later version may change or remove it
  std::string doc;
  std::string owner;  // "core" or the backend's name
};

// Thread-safe. Writes each warning to the logger once.
class Registry {
 public:
  // Reads all sources. Errors: kBadSetting for a bad value, kConfigFile for an unusable file. Unknown names are kept for
  // RegisterBackend and CheckUnknown. The logger keeps its level unless log.level or log.override is set.
  static absl::StatusOr<std::unique_ptr<Registry>> Create(Sources sources, Logger logger = Logger());

  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  // Adds a backend's settings and reads their values from the sources. Returns the values in the
  // order of `rows` as text: booleans as 1 or 0, sizes in bytes, times in seconds, choices as
  // declared. Snapshot::Backend has them as typed values. Errors: kPluginRefused for a wrong
  // declaration, such as a key that does not begin with `name` or a default out of range;
  // kBadSetting and kConfigFile for a bad value in a source. On error nothing is added.
  absl::StatusOr<std::vector<std::string>> RegisterBackend(std::string_view name, std::vector<BackendSetting> rows);

  // Reports unknown names; call it when all backends have been found. An unknown variable causes a
  // warning with the nearest known name, or kUnknownSetting in strict mode. An unknown name in
  // another source fails with kUnknownSetting or kConfigFile. A setting of a backend in `absent`
  // (found, but it cannot be loaded) causes a warning that it has no effect. A setting of a backend
  // in plugin.skip is ignored. A setting of a backend in `waiting` (not opened yet) is kept for
  // RegisterBackend.
  absl::Status CheckUnknown(std::span<const std::string> absent = {}, std::span<const std::string> waiting = {});
  // Reports unknown names of a backend that has registered since, by the same rules.
  absl::Status CheckNamesOf(std::string_view backend);

  // Fixes the first-set settings: Set() fails for them afterwards.
  void MarkRead();

  // Reads the dynamic settings again if the process's variables have changed and the sources say so. First-set settings stay,
  // even if their variables changed. Fails like Create() for a bad value, and like CheckUnknown() for a new unknown name; then
  // no setting changes, and the next call fails again. Called by functions of the API, on the application's thread, since the C
  // library lets no other thread call setenv() meanwhile.
  absl::Status FollowEnvironment();

  // Sets a value by call. An empty text removes the value that an earlier call set. The value
  // applies to sessions and plans that are created later. A setting of a backend that has not been
  // opened yet is kept and checked by RegisterBackend. Errors: kSettingTooLate if the setting is
  // first-set and fixed, kUnknownSetting, kBadSetting.
  absl::Status Set(std::string_view name, std::string_view text);

  // Sets a value also if it is fixed. `function` must be the one that the setting's row names in
  // `instead`, such as "set_default_device".
  absl::Status SetThrough(std::string_view function, std::string_view name, std::string_view text);

  // A callback by which Set() reports the value of a backend's setting, as text in RegisterBackend's form. Set() holds the
  // registry's lock during the call, so the callback must not call the registry.
  using NotifyBackend = std::function<void(std::string_view backend, std::string_view key, std::string value)>;
  void set_tell_backend(NotifyBackend tell);

  std::shared_ptr<const Snapshot> snapshot() const;  // the current one; stays valid after changes and without the registry

  // Returns a snapshot with these values set by call, for one session. The registry does not change. Fails like Set(), and
  // with kSettingTooLate for first-set settings without `instead` and for settings of a backend, which apply to the whole
  // runtime.
  absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotWith(std::span<const Assignment> assignments);

  // Returns the value of a core setting by key, in RegisterBackend's form; nullopt if there is no such setting.
  std::optional<std::string> CoreText(std::string_view key) const;

  // Returns the value of a setting with this key, variable or alias, in the same form. Fails like Set() for an unknown name.
  absl::StatusOr<std::string> TextOf(std::string_view name) const;
  std::vector<SettingInfo> List() const;            // the core's in the table's order, then each backend's
  const Logger& logger() const { return logger_; }  // with the level from the settings

 private:
  struct State;
  absl::Status CheckNames(std::span<const std::string> absent, std::string_view only);
  explicit Registry(Logger logger);

  mutable std::mutex mutex_;
  std::unique_ptr<State> state_;
  NotifyBackend tell_backend_;
  Logger logger_;
};

}  // namespace mge
