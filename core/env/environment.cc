// SPDX-License-Identifier: Apache-2.0
#include "core/env/environment.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/env/setting_text.h"
#include "core/env/settings.h"

namespace mge {
namespace {

constexpr std::string_view kSystemVariables[] = {"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"};

// The variables with which launchers describe the processes that they start (core/engine/launch.h).
constexpr std::string_view kLauncherVariables[] = {"OMPI_COMM_WORLD_SIZE",
                                                   "OMPI_COMM_WORLD_RANK",
                                                   "OMPI_COMM_WORLD_LOCAL_RANK",
                                                   "PMI_SIZE",
                                                   "PMI_RANK",
                                                   "PMIX_RANK",
                                                   "MPI_LOCALRANKID",
                                                   "WORLD_SIZE",
                                                   "RANK",
                                                   "LOCAL_RANK",
                                                   "MASTER_ADDR",
                                                   "MASTER_PORT",
                                                   "SLURM_STEP_ID",
                                                   "SLURM_STEP_NUM_TASKS",
                                                   "SLURM_PROCID",
                                                   "SLURM_LOCALID",
                                                   "DMLC_ROLE",
                                                   "DMLC_NUM_WORKER",
                                                   "DMLC_PS_ROOT_URI"};

bool IsWanted(std::string_view name, const std::set<std::string, std::less<>>& known) {
  if (known.find(name) != known.end()) return true;
  return std::any_of(std::begin(kVariablePrefixes), std::end(kVariablePrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::optional<std::string_view> Environment::Find(std::string_view name) const {
  for (const auto& [key, value] : variables) {
    if (key == name && !value.empty()) return value;
  }
  return std::nullopt;
}

std::string HomeDirectory(const Environment& environment) {
  const std::optional<std::string_view> home = environment.Find("HOME");
  return home && home->starts_with('/') ? std::string(*home) : std::string();
}

std::string StateDirectory(const Environment& environment) {
  // The XDG Base Directory Specification requires absolute paths; a relative path is ignored.
  if (auto state = environment.Find("XDG_STATE_HOME"); state && state->starts_with('/')) return std::string(*state) + "/mge";
  const std::string home = HomeDirectory(environment);
  return home.empty() ? std::string() : home + "/.local/state/mge";
}

Environment CaptureEnvironment() {
  Environment out;
  if (getauxval(AT_SECURE) != 0 || environ == nullptr) return out;
  std::set<std::string, std::less<>> known(std::begin(kSystemVariables), std::end(kSystemVariables));
  known.insert(std::begin(kLauncherVariables), std::end(kLauncherVariables));
  for (const SettingRow& row : kSettings) {
    known.insert(VariableOf(row.key));
    for (std::string_view alias : Words(row.aliases)) known.emplace(alias);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (equals == text.npos) continue;
    std::string_view name = text.substr(0, equals);
    if (IsWanted(name, known)) out.variables.emplace_back(name, text.substr(equals + 1));
  }
  return out;
}

bool EnvironmentWatch::Changed() {
  size_t known = 0;
  bool same = !seen_.empty() && seen_[known++] == environ;
  for (char** entry = environ; same && entry && *entry; ++entry) same = known < seen_.size() && seen_[known++] == *entry;
  if (same && known == seen_.size()) return false;
  seen_ = {environ};
  for (char** entry = environ; entry && *entry; ++entry) seen_.push_back(*entry);
  return true;
}

}  // namespace mge
