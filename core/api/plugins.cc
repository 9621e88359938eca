// SPDX-License-Identifier: Apache-2.0
// The API functions that check, install, remove and quarantine backends' files. They do not load a backend.
#include <unistd.h>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/plugin/dependencies.h"
#include "core/plugin/install.h"
#include "core/plugin/isa.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

using mge::api::Misuse;
using mge::api::Wrap;

namespace mge::api {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<PluginSearch> SearchOf(const mge_runtime_options* given) {
  MGE_ASSIGN_OR_RETURN(RuntimeOptions options, OptionsOf(given));
  Environment environment = options.sources.environment;
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Create(std::move(options.sources), options.logger));
  return PluginSearchOf(options, environment, *registry);
}

// Converts a relative path of the user to an absolute path, based on the working directory. Searches use no relative paths.
std::string Absolute(const std::string& file) {
  if (file.starts_with('/')) return file;
  std::string here(4096, '\0');
  return getcwd(here.data(), here.size()) ? std::string(here.c_str()) + "/" + file : file;
}

std::vector<PluginFile> VerifiedFiles(std::span<const PluginDirectory> directories, const PluginRules& rules) {
  Discovery found = DiscoverPlugins(directories, HostIsa(), rules);
  std::vector<PluginFile> files;
  for (FoundPlugin& f : found.accepted) files.push_back(std::move(f.file));
  std::move(found.rejected.begin(), found.rejected.end(), std::back_inserter(files));
  return files;
}

absl::Status PutIntoQuarantine(const PluginSearch& search, const std::string& path, const std::string& reason) {
  const PluginFile file = VerifyPluginFile(Absolute(path), HostIsa()).file;
  MGE_ASSIGN_OR_RETURN(std::string key, BuildOf(file.path, file.build_id));
  return search.rules.quarantine.Add({key, file.name, file.path, reason});
}

// Removes a backend from quarantine: the entries with its name, and the entries of its files. An entry that is damaged has
// no name and is found only by its file.
absl::Status Release(const PluginSearch& search, const std::string& name) {
  MGE_RETURN_IF_ERROR(CheckBackendName(name));
  const Quarantine& quarantine = search.rules.quarantine;
  bool found = false;
  for (const Quarantine::Entry& entry : quarantine.All()) {
    if (entry.name != name) continue;
    MGE_RETURN_IF_ERROR(quarantine.Remove(entry.key));
    found = true;
  }
  for (const PluginFile& file : VerifiedFiles(search.directories, {.quarantine = quarantine})) {
    if (file.name != name || file.code != VerdictCode::kQuarantined) continue;
    MGE_ASSIGN_OR_RETURN(std::string key, BuildOf(file.path, file.build_id));
    MGE_RETURN_IF_ERROR(quarantine.Remove(key));
    found = true;
  }
  if (found) return absl::OkStatus();
  return Fail(errors::kUsage, fmt::format("no backend '{}' is in quarantine", name), {.fix = "see mge doctor"});
}

}  // namespace

std::string PluginsJson(std::span<const PluginFile> files, std::span<const PluginDirectory> directories,
                        const Quarantine& quarantine) {
  Json rows = Json::array(), searched = Json::array(), kept = Json::array();
  for (const PluginFile& f : files) {
    std::string warning = f.warning;
    if (warning.empty() && f.verdict == Verdict::kAccepted) warning = WhyDependenciesFail(f.path);
    rows.push_back({{"path", f.path},
                    {"verdict", VerdictName(f.verdict)},
                    {"code", VerdictCodeName(f.code)},
                    {"reason", f.reason},
                    {"fix", f.fix},
                    {"warning", warning},
                    {"device_count", f.devices < 0 ? Json() : Json(f.devices)},
                    {"name", f.name},
                    {"version", f.version},
                    {"abi", f.abi},
                    {"classes", f.classes},
                    {"build_id", f.build_id}});
  }
  for (const PluginDirectory& d : directories) {
    std::string real;
    PluginFile row = CheckDirectory(d, &real);
    bool usable = row.verdict == Verdict::kAccepted;
    searched.push_back({{"path", d.path},
                        {"origin", d.origin},
                        {"usable", usable},
                        {"writable", usable && access(real.c_str(), W_OK) == 0},
                        {"reason", row.reason}});
  }
  for (const Quarantine::Entry& e : quarantine.All()) {
    kept.push_back({{"name", e.name}, {"path", e.path}, {"reason", e.reason}, {"key", e.key}});
  }
  // Names read from files may not be valid UTF-8; invalid bytes are replaced.
  return Json{{"schema", "mge.plugins/1"},
              {"files", std::move(rows)},
              {"directories", std::move(searched)},
              {"quarantine", std::move(kept)}}
      .dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mge::api

mge_status* mge_plugins_verify(const mge_runtime_options* options, const char* file, mge_string** out) try {
  MGE_API_NEEDS({"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::PluginSearch search, mge::api::SearchOf(options));
  std::vector<mge::PluginFile> files;
  if (file) {
    // A missing file is an error of the call, not a verdict on a backend.
    std::string path = mge::api::Absolute(file);
    MGE_API_RETURN_IF_ERROR(mge::OpenRegularFile(path).status());
    files.push_back(mge::VerifyPluginFile(path, mge::HostIsa(), search.rules).file);
    search.directories.clear();
  } else {
    files = mge::api::VerifiedFiles(search.directories, search.rules);
  }
  *out = mge::api::NewString(mge::api::PluginsJson(files, search.directories, search.rules.quarantine));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_plugins_install(const mge_runtime_options* options, const char* file, mge_string** out) try {
  MGE_API_NEEDS({"file", file}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::PluginSearch search, mge::api::SearchOf(options));
  MGE_API_ASSIGN_OR_RETURN(std::string path,
                           mge::InstallPlugin(mge::api::Absolute(file), search.directories, mge::HostIsa(), search.rules));
  *out = mge::api::NewString(std::move(path));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_plugins_remove(const mge_runtime_options* options, const char* name, mge_string** out) try {
  MGE_API_NEEDS({"name", name}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::PluginSearch search, mge::api::SearchOf(options));
  MGE_API_ASSIGN_OR_RETURN(std::string path, mge::RemovePlugin(name, search.directories));
  *out = mge::api::NewString(std::move(path));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_plugins_quarantine(const mge_runtime_options* options, const char* file, const char* reason) try {
  MGE_API_NEEDS({"file", file}, {"reason", reason});
  MGE_API_ASSIGN_OR_RETURN(mge::PluginSearch search, mge::api::SearchOf(options));
  return Wrap(mge::api::PutIntoQuarantine(search, file, reason));
}
MGE_API_CATCH

mge_status* mge_plugins_end_quarantine(const mge_runtime_options* options, const char* name) try {
  MGE_API_NEEDS({"name", name});
  MGE_API_ASSIGN_OR_RETURN(mge::PluginSearch search, mge::api::SearchOf(options));
  return Wrap(mge::api::Release(search, name));
}
MGE_API_CATCH
