// SPDX-License-Identifier: Apache-2.0
#include "core/api/callback.h"
#include "core/api/inbox.h"
#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/env/settings.h"
#include "core/plan/communicator.h"
#include "fmt/format.h"

using mge::api::Wrap;

namespace {

// The state of the logger's sink: the user's callback, or else the inbox.
struct LogAdapter {
  void (*log)(void*, int32_t, const char*, size_t) = nullptr;
  void* state = nullptr;
  std::shared_ptr<const void> released = nullptr;  // calls log_release at its end
  std::shared_ptr<mge::api::Inbox> inbox = nullptr;
};

void Log(void* state, mge::LogLevel level, std::string_view message) {
  auto* to = static_cast<LogAdapter*>(state);
  const auto number = static_cast<int32_t>(level);
  if (to->log) {
    mge::api::CallApplication([&] { to->log(to->state, number, message.data(), message.size()); });
  } else {
    (void)mge::NoThrow([&] {  // without memory, the message is lost
      to->inbox->Add(mge::api::Message{number, std::string(message)});
      return absl::OkStatus();
    });
  }
}

// Owns a runtime and the adapter to which it logs. Sessions share it, so the adapter outlives the last of them.
struct OwnedRuntime {
  LogAdapter adapter;
  std::shared_ptr<mge::Runtime> runtime;  // destroyed before `adapter`
};

}  // namespace

absl::StatusOr<std::vector<mge::Assignment>> mge::api::Assignments(const char* const* list, size_t count) {
  std::vector<mge::Assignment> out;
  for (size_t i = 0; i < count; ++i) {
    std::string_view text = list[i] ? list[i] : "";
    size_t at = text.find('=');
    if (at == std::string_view::npos || at == 0) {
      return mge::Fail(mge::errors::kUsage, fmt::format("'{}' is not a setting", text), {.fix = "write NAME=VALUE"});
    }
    out.push_back({std::string(text.substr(0, at)), std::string(text.substr(at + 1))});
  }
  return out;
}

absl::StatusOr<mge::RuntimeOptions> mge::api::OptionsOf(const mge_runtime_options* given) {
  MGE_ASSIGN_OR_RETURN(const mge_runtime_options o, CopyOptions(given, mge_runtime_options_init, "mge_runtime_options"));
  mge::RuntimeOptions options;
  MGE_ASSIGN_OR_RETURN(options.sources.call, Assignments(o.settings, o.setting_count));
  MGE_ASSIGN_OR_RETURN(options.sources.command_line, Assignments(o.command_line, o.command_line_count));
  for (size_t i = 0; i < o.config_file_count; ++i) options.sources.config_files.push_back(o.config_files[i]);
  if (!o.no_environment) {
    options.sources.environment = mge::CaptureEnvironment();
    options.sources.follows_environment = true;
  }
  for (size_t i = 0; i < o.plugin_directory_count; ++i) options.plugin_directories.push_back(o.plugin_directories[i]);
  options.built_in_plugins = !o.no_built_in_plugins;
  return options;
}

mge_status* mge_runtime_create(const mge_runtime_options* given, mge_runtime** out) try {
  MGE_API_NEEDS({"out", out});
  MGE_API_ASSIGN_OR_RETURN(const mge_runtime_options o,
                           mge::api::CopyOptions(given, mge_runtime_options_init, "mge_runtime_options"));
  std::shared_ptr<const void> released = mge::api::CallAtEnd(o.log_release, o.log_state);
  MGE_API_ASSIGN_OR_RETURN(mge::RuntimeOptions options, mge::api::OptionsOf(given));
  auto owned = std::make_shared<OwnedRuntime>();
  if (o.log && o.log_inbox) return mge::api::Misuse("mge_runtime_create", "both log and log_inbox are set");
  if (o.log || o.log_inbox) {
    owned->adapter = {o.log, o.log_state, std::move(released), o.log_inbox ? o.log_inbox->inbox : nullptr};
    options.logger = mge::Logger(mge::LogLevel::kWarning, Log, &owned->adapter);
  }
  MGE_API_ASSIGN_OR_RETURN(owned->runtime, mge::Runtime::Create(std::move(options)));
  mge::Runtime* runtime = owned->runtime.get();
  std::shared_ptr<mge::Runtime> shared(std::move(owned), runtime);
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<mge::Profile> profile, mge::api::AutomaticProfile(shared));
  *out = new mge_runtime{std::move(shared), std::move(profile)};
  return nullptr;
}
MGE_API_CATCH

void mge_runtime_release(mge_runtime* runtime) {
  delete runtime;
  mge::ReleasedRuns().Reclaim(mge::kReleasedRunPatience);
}

mge_status* mge_runtime_set(mge_runtime* runtime, const char* name, const char* value) try {
  MGE_API_NEEDS({"runtime", runtime}, {"name", name}, {"value", value});
  return Wrap(runtime->runtime->registry().Set(name, value));
}
MGE_API_CATCH

mge_status* mge_runtime_get(mge_runtime* runtime, const char* name, mge_string** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"name", name}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(std::string value, runtime->runtime->registry().TextOf(name));
  *out = mge::api::NewString(std::move(value));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_runtime_set_default_device(mge_runtime* runtime, const char* device) try {
  MGE_API_NEEDS({"runtime", runtime}, {"device", device});
  return Wrap(runtime->runtime->SetDefaultDevice(device));
}
MGE_API_CATCH

mge_status* mge_runtime_set_execution_strategy(mge_runtime* runtime, const char* strategy) try {
  MGE_API_NEEDS({"runtime", runtime}, {"strategy", strategy});
  return Wrap(runtime->runtime->registry().SetThrough("set_execution_strategy", mge::kSelectStrategy.key, strategy));
}
MGE_API_CATCH

mge_status* mge_runtime_report(mge_runtime* runtime, const char* schema, mge_string** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"schema", schema}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(std::string text, mge::api::RuntimeReport(*runtime->runtime, schema));
  *out = mge::api::NewString(std::move(text));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_collective_id(mge_runtime* runtime, const char* device, mge_string** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"device", device}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::Resolution resolution,
                           runtime->runtime->ResolveDevice(device, *runtime->runtime->registry().snapshot()));
  MGE_API_ASSIGN_OR_RETURN(mge::CollectiveId id, mge::NewCollectiveId(*resolution.devices.front().device));
  *out = mge::api::NewString(mge::CollectiveIdText(id));
  return nullptr;
}
MGE_API_CATCH
