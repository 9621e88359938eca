// SPDX-License-Identifier: Apache-2.0
// Registry: gathers every setting of one runtime from its sources, keeps each one's origin, and
// enforces its lifecycle.
//
//   MGE_ASSIGN_OR_RETURN(auto registry, Registry::Create({.environment = CaptureEnvironment()},
//   logger));
//   ... find backends; for each: registry->RegisterBackend(name, rows) ...
//   MGE_RETURN_IF_ERROR(registry->JudgeUnknown(names of backends that were found but not loaded));
//   registry->MarkRead();                                   // from here on first-set settings stay
//   as they are int64_t threads = registry->snapshot()->Get<kThreads>();
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/env/environment.h"
#include "core/env/snapshot.h"

namespace mge {

// NAME=TEXT from a call or the command line. The name is a key, a variable or an alias; an empty
// text sets nothing.
struct Assignment {
  std::string name;
  std::string text;
  std::string option =
      {};  // as the user wrote it, for the origin: "--threads 2"; empty means "--set NAME=TEXT"
};

// Everything that sets settings. Precedence: call > command line > environment > configuration
// files, of which a later one wins.
struct Sources {
  std::vector<Assignment> call = {};
  std::vector<Assignment> command_line = {};
  std::vector<std::string> config_files =
      {};  // of --config; if there are any, MGE_CONFIG is not read
  Environment environment = {};
};

// One setting that a backend declares. Texts are parsed as a user's would be.
struct BackendSetting {
  std::string key;  // begins with the backend's name and a dot
  SettingType type = SettingType::kText;
  std::string fallback = {};
  std::string min = {};  // numbers, bytes and seconds only; empty means unlimited
  std::string max = {};
  std::vector<std::string> choices =
      {};  // of kChoice and kFlags; a value is the place in the list, or the sum of 1 << place
  std::string unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string doc = {};  // one sentence
};

// One row of `mge env`.
struct SettingInfo {
  std::string key;
  std::string variable;
  std::vector<std::string> aliases;
  std::string type;
  std::string fallback;
  std::string value;
  std::string origin;
  std::string allowed;  // in words or as a range; empty if anything is
  std::string unit;
  std::string lifecycle;  // "first-set" or "dynamic"
  std::string doc;
  std::string owner;   // "core" or the backend's name
  std::string status;  // "built" or "later"
};

// Safe to use on several threads. Writes warnings to the logger, each once.
class Registry {
 public:
  // Reads all sources. Fails on a bad value (kBadSetting), on a file that cannot be used
  // (kConfigFile), and in strict mode on a setting whose effect is not built (kLaterSetting). Names
  // that it does not know wait for RegisterBackend and JudgeUnknown. The logger keeps its level
  // unless log.level or log.override is set.
  static absl::StatusOr<std::unique_ptr<Registry>> Create(Sources sources,
                                                          Logger logger = Logger());

  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  // Adds a backend's settings, reads what the sources say of them, and answers their values in the
  // order of `rows` as text: truth as 1 or 0, sizes in bytes, times in seconds, choices as
  // declared. Snapshot::Backend has them typed. Fails with kPluginRefused if the declaration is
  // wrong (a key that is not under `name`, one that is taken, a default outside of its range),
  // kBadSetting or kConfigFile if what a source says is; nothing is added then.
  absl::StatusOr<std::vector<std::string>> RegisterBackend(std::string_view name,
                                                           std::vector<BackendSetting> rows);

  // To be called when all backends that can be loaded are registered. A name that nobody knows is
  // then a typo: in the environment it is reported once with the nearest known name (in strict mode
  // an error, kUnknownSetting), elsewhere it is an error. Names under one of `absent`, backends
  // that were found but not loaded, are only said to have no effect; of those under a backend that
  // plugin.skip leaves out, nothing is said.
  absl::Status JudgeUnknown(std::span<const std::string> absent = {});

  // The runtime begins to read first-set settings.
  void MarkRead();

  // Sets a value by call; an empty text takes back what a call has set. Fails with kSettingTooLate
  // if the setting is first-set and read already, kUnknownSetting, kBadSetting, or in strict mode
  // kLaterSetting. Sessions and plans made later see it.
  absl::Status Set(std::string_view name, std::string_view text);

  // The same for the function that a row names as the way to change it later, such as
  // "set_default_device".
  absl::Status SetThrough(std::string_view function, std::string_view name, std::string_view text);

  // Whom Set() tells that a backend's setting has another value, as text like RegisterBackend's. Called under the registry's
  // lock.
  using TellBackend = std::function<void(std::string_view backend, std::string_view key, std::string value)>;
  void set_tell_backend(TellBackend tell);

  std::shared_ptr<const Snapshot> snapshot() const;  // shared: outlives changes and the registry

  // Returns a snapshot in which these are set by call, for one session. The registry does not change. Fails like Set(), and
  // with kSettingTooLate for first-set settings and those of a backend, which hold for the whole runtime.
  absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotWith(std::span<const Assignment> assignments);

  std::vector<SettingInfo> List() const;  // the core's in the table's order, then each backend's
  const Logger& logger() const { return logger_; }  // at the level that the settings ask for

 private:
  struct State;
  explicit Registry(Logger logger);

  mutable std::mutex mutex_;
  std::unique_ptr<State> state_;
  TellBackend tell_backend_;
  Logger logger_;
};

}  // namespace mge
