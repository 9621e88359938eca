// SPDX-License-Identifier: Apache-2.0
// Runtimes, inboxes, and backends as files; part of mge.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mge/mge.h"
#include "mge/namespace.hpp"
#include "mge/result.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

inline std::string_view Version() { return mge_version(); }                           // of the loaded library
inline int VersionNumber() { return mge_version_number(); }                           // MGE_VERSION of the loaded library
inline std::string_view DtypeName(mge_dtype dtype) { return mge_dtype_name(dtype); }  // "float32"

class Inbox;

// Options of a runtime; see mge_runtime_options.
struct RuntimeOptions {
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  std::vector<std::string> command_line = {};
  std::vector<std::string> config_files = {};
  std::vector<std::string> plugin_directories = {};
  bool built_in_plugins = true;
  bool environment = true;
  // Receives messages (level: 0 debug .. 3 error), on any thread. Without it, they go to stderr.
  std::function<void(int level, std::string_view message)> log = nullptr;
  const Inbox* log_inbox = nullptr;  // keeps messages, in place of `log`
};

namespace internal {

// Texts as C has them. It points into `from`.
class Texts {
 public:
  explicit Texts(const std::vector<std::string>& from) {
    for (const std::string& text : from) pointers_.push_back(text.c_str());
  }
  const char* const* data() const { return pointers_.empty() ? nullptr : pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  std::vector<const char*> pointers_;
};

// A mge_release_fn for a new std::function<void()>, which it deletes.
inline void CallOnce(void* release) {
  const std::unique_ptr<std::function<void()>> call(static_cast<std::function<void()>*>(release));
  if (*call) (*call)();
}

inline const char* TextOrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
inline std::string_view TextOrEmpty(const char* text) { return text ? text : ""; }

// The options as a C struct, without the log. It points into `options`.
class RawOptions {
 public:
  explicit RawOptions(const RuntimeOptions& options)
      : settings_(options.settings),
        command_line_(options.command_line),
        config_files_(options.config_files),
        plugin_directories_(options.plugin_directories) {
    mge_runtime_options_init(&raw);
    raw.settings = settings_.data();
    raw.setting_count = settings_.size();
    raw.command_line = command_line_.data();
    raw.command_line_count = command_line_.size();
    raw.config_files = config_files_.data();
    raw.config_file_count = config_files_.size();
    raw.plugin_directories = plugin_directories_.data();
    raw.plugin_directory_count = plugin_directories_.size();
    raw.no_built_in_plugins = !options.built_in_plugins;
    raw.no_environment = !options.environment;
  }
  const mge_runtime_options* get() const { return &raw; }
  mge_runtime_options raw;

 private:
  Texts settings_, command_line_, config_files_, plugin_directories_;
};

}  // namespace internal

// A message of a runtime.
struct Message {
  int level;  // 0 debug .. 3 error
  std::string text;
};

// How far a stage of a load or of planning is; see SessionOptions::progress.
struct StageProgress {
  std::string stage;
  uint64_t done, total;
};

// Keeps ended runs (RunOptions::inbox), messages and progress until the program takes them; see mge_inbox. Takes runs in mge.hpp.
class Inbox : public internal::Owner<mge_inbox, mge_inbox_release> {
 public:
  using Owner::Owner;
  static Result<Inbox> Create() { return internal::Take<Inbox>(mge_inbox_create); }
  // For poll(): readable while the inbox is not empty. Do not read from it.
  int descriptor() const { return mge_inbox_descriptor(get()); }
  // Takes the oldest message, if there is one.
  std::optional<Message> TakeMessage() {
    int32_t level = 0;
    mge_string* text = nullptr;
    if (!mge_inbox_take_message(get(), &level, &text)) return std::nullopt;
    const internal::Owner<mge_string, mge_string_release> owner(text);
    return Message{level, std::string(mge_string_data(text), mge_string_size(text))};
  }
  // Takes the latest numbers of a stage that has advanced, if there is one.
  std::optional<StageProgress> TakeProgress() {
    StageProgress out = {};
    mge_string* stage = nullptr;
    if (!mge_inbox_take_progress(get(), &stage, &out.done, &out.total)) return std::nullopt;
    const internal::Owner<mge_string, mge_string_release> owner(stage);
    out.stage = mge_string_data(stage);
    return out;
  }
};

// A runtime: its settings, backends and devices.
class Runtime : public internal::Owner<mge_runtime, mge_runtime_release> {
 public:
  using Owner::Owner;
  static Result<Runtime> Create(const RuntimeOptions& options = {}) {
    internal::RawOptions given(options);
    if (options.log) {
      given.raw.log = CallLog;
      given.raw.log_state = new Log(options.log);
      given.raw.log_release = [](void* log) { delete static_cast<Log*>(log); };
    }
    if (options.log_inbox) given.raw.log_inbox = options.log_inbox->get();
    return internal::Take<Runtime>([&](mge_runtime** r) { return mge_runtime_create(&given.raw, r); });
  }

  Status Set(const std::string& name, const std::string& value) {
    return Status(mge_runtime_set(get(), name.c_str(), value.c_str()));
  }
  Result<std::string> Get(const std::string& name) const {
    return internal::TakeText([&](mge_string** text) { return mge_runtime_get(get(), name.c_str(), text); });
  }
  Status SetDefaultDevice(const std::string& device) {
    return Status(mge_runtime_set_default_device(get(), device.c_str()));
  }
  Status SetExecutionStrategy(const std::string& strategy) {
    return Status(mge_runtime_set_execution_strategy(get(), strategy.c_str()));
  }
  // Returns facts about all devices. Starts all backends.
  Result<std::vector<mge_device_facts>> Devices() const {
    std::vector<mge_device_facts> out(mge_runtime_device_count(get()));
    for (size_t i = 0; i < out.size(); ++i) {
      mge_device_facts_init(&out[i]);
      if (Status s(mge_runtime_device(get(), i, &out[i])); !s.ok()) return s;
    }
    return out;
  }
  // Returns the device of the thread, such as "gpu(1)"; see mge_device_current.
  Result<std::string> CurrentDevice() const {
    return internal::TakeText([&](mge_string** text) { return mge_device_current(get(), text); });
  }
  // Returns facts as JSON: "mge.devices/1", "mge.plugins/1", "mge.env/1", "mge.operators/1".
  Result<std::string> Report(const std::string& schema) const {
    return internal::TakeText([&](mge_string** text) { return mge_runtime_report(get(), schema.c_str(), text); });
  }
  // Returns facts about a model file, also for a model that cannot be loaded: "mge.model/1", "mge.nodes/1".
  Result<std::string> ModelReport(const std::string& path, const std::string& schema) const {
    return internal::TakeText(
        [&](mge_string** text) { return mge_model_report(get(), path.c_str(), schema.c_str(), text); });
  }
  // Creates the id of a group of ranks; see mge_collective_id.
  Result<std::string> CollectiveId(const std::string& device) const {
    return internal::TakeText([&](mge_string** text) { return mge_collective_id(get(), device.c_str(), text); });
  }

 private:
  using Log = std::function<void(int, std::string_view)>;
  static void CallLog(void* log, int32_t level, const char* message, size_t size) {
    (*static_cast<Log*>(log))(level, {message, size});
  }
};

// Manages backend files without opening them. `options` name the directories to search.
struct Plugins {
  static Result<std::string> Verify(const RuntimeOptions& options, const std::string& file = {}) {
    return internal::TakeText([&](mge_string** text) {
      return mge_plugins_verify(internal::RawOptions(options).get(), internal::TextOrNull(file), text);
    });
  }
  static Result<std::string> Install(const RuntimeOptions& options, const std::string& file) {
    return internal::TakeText(
        [&](mge_string** text) { return mge_plugins_install(internal::RawOptions(options).get(), file.c_str(), text); });
  }
  static Result<std::string> Remove(const RuntimeOptions& options, const std::string& name) {
    return internal::TakeText(
        [&](mge_string** text) { return mge_plugins_remove(internal::RawOptions(options).get(), name.c_str(), text); });
  }
  static Status Quarantine(const RuntimeOptions& options, const std::string& file, const std::string& reason) {
    return Status(mge_plugins_quarantine(internal::RawOptions(options).get(), file.c_str(), reason.c_str()));
  }
  static Status EndQuarantine(const RuntimeOptions& options, const std::string& name) {
    return Status(mge_plugins_end_quarantine(internal::RawOptions(options).get(), name.c_str()));
  }
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
