// SPDX-License-Identifier: Apache-2.0
#include "core/cli/doctor_page.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/cli/build_facts.h"
#include "core/html/page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Returns the value of the first line "KEY<separator>VALUE" of a file of the system, or "unknown".
std::string ValueIn(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    value.erase(0, std::min(value.find_first_not_of(" \t\""), value.size()));
    while (!value.empty() && value.back() == '"') value.pop_back();
    return value;
  }
  return "unknown";
}

int UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// Returns the table of the devices of all backends.
std::string DeviceTable(const Json& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& plugin : report["plugins"]) {
    for (const Json& d : plugin["devices"]) {
      const std::string ran = d["state"] == "passed" ? html::Plain(d["operator"]) + " runs" : html::Plain(d["reason"]);
      rows.push_back(
          {html::Plain(d["name"]), html::Plain(d["state"]), html::Plain(plugin["name"]), ran, html::Plain(d["fix"])});
    }
  }
  if (rows.empty()) return html::Paragraph("No backend has a device.");
  return html::Table({{"device"}, {"state"}, {"backend"}, {"result"}, {"what to do"}}, rows);
}

std::string PluginTable(const Json& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& p : report["plugins"]) {
    const auto [note, advice] = NoteOnDevices(p);
    std::string reason = html::Plain(p["reason"]), fix = html::Plain(p["fix"]);
    if (reason.empty()) reason = note.empty() ? html::Plain(p["warning"]) : note;
    if (fix.empty()) fix = advice;
    rows.push_back({html::Plain(p["path"]), html::Plain(p["state"]),
                    html::Plain(p["name"]) + " " + html::Plain(p["version"]), html::Plain(p["verdict"]), reason, fix});
  }
  if (rows.empty())
    return html::Paragraph("No file of a backend was found; mge plugins paths lists the searched directories.");
  return html::Table({{"file"}, {"state"}, {"backend"}, {"verdict"}, {"reason"}, {"what to do"}}, rows);
}

std::string SettingTable(const Json& settings) {
  if (settings.is_null()) return html::Paragraph("The settings could not be read: a process that reads them ended early.");
  if (settings.empty()) return html::Paragraph("All settings have their defaults.");
  std::vector<std::vector<std::string>> rows;
  for (const Json& s : settings) rows.push_back({html::Plain(s["key"]), html::Plain(s["value"]), html::Plain(s["origin"])});
  return html::Table({{"setting"}, {"value"}, {"from"}}, rows);
}

}  // namespace

Json SystemFacts() {
  utsname system = {};
  uname(&system);
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  Json rows = Json::array();
  auto add = [&](const char* label, std::string value) { rows.push_back({{"label", label}, {"value", std::move(value)}}); };
  add("MGE", mge_version());
  add("commit", build::kCommit);
  add("compiler", build::kCompiler);
  add("build", build::kType);
  add("system", ValueIn("/etc/os-release", "PRETTY_NAME", '='));
  add("kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  add("C library", fmt::format("glibc {}", gnu_get_libc_version()));
  add("processor", ValueIn("/proc/cpuinfo", "model name", ':'));
  add("processors for this process", std::to_string(UsableProcessors()));
  add("memory", HumanBytes(pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
  return rows;
}

std::pair<std::string, std::string> NoteOnDevices(const Json& plugin) {
  if (plugin["verdict"] != "loaded" || !plugin["devices"].empty() || plugin["troubled"] != false) return {};
  return {"it has no device", plugin["name"] == "virtual" ? "set MGE_VIRTUAL_DEVICES=1 for a device in software" : ""};
}

std::string DoctorBody(const Json& report) {
  std::vector<std::pair<std::string, std::string>> facts = {{"backends passed", html::Plain(report["passed"])},
                                                            {"backends failed", html::Plain(report["troubled"])}};
  for (const Json& fact : report["system"]) facts.emplace_back(html::Plain(fact["label"]), html::Plain(fact["value"]));
  return html::Paragraph(
             "Attach this page to the report of a fault, with the command that failed and its output. The page "
             "has paths of this machine and the changed settings: read it before you send it.") +
         html::Facts(facts) + html::Heading("Devices") + DeviceTable(report) + html::Heading("Files of backends") +
         PluginTable(report) + html::Heading("Changed settings") + SettingTable(report["changed_settings"]);
}

}  // namespace mge::cli
