// SPDX-License-Identifier: Apache-2.0
// mge-conform, which `mge sdk test` becomes. A program of its own, because it forks for every check, must have one thread
// only, and holds the reference evaluators. Its one argument is what was asked for, as JSON.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/conform/conform.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mge::conform {
namespace {

using Json = nlohmann::ordered_json;

int Fail(const absl::Status& status, bool json) {
  std::fprintf(stderr, "mge: %s\n", FormatError(status).c_str());
  int code = static_cast<int>(KindOf(status));
  if (json) {
    ErrorParts parts = PartsOf(status);
    Json error = {{"schema", "mge.error/1"}, {"id", ErrorId(status)}, {"exit_code", code}, {"title", ErrorTitle(status)},
                  {"what", parts.what},      {"where", parts.where},  {"fix", parts.fix}};
    std::fputs((error.dump(2, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
  }
  return code;
}

bool Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "mge: error[E0702] %s cannot be written\n", EscapeControl(path.string()).c_str());
  return static_cast<bool>(file);
}

int Main(int argc, char** argv) {
  Json asked = Json::parse(argc == 2 ? argv[1] : "", nullptr, false);
  if (!asked.is_object()) {
    std::fprintf(stderr, "mge-conform is run by `mge sdk test FILE.so`\n");
    return 2;
  }
  bool json = asked.value("json", false), quiet = asked.value("quiet", false);
  Options options;
  options.quick = asked.value("quick", false);
  options.jobs = asked.value("jobs", 0);
  options.seconds = asked.value("seconds", 0.0);
  options.expected_failures = asked.value("xfail", "");
  options.only = asked.value("only", std::vector<std::string>());
  options.given = {.command_line = asked.value("settings", SettingValues()),
                   .config_files = asked.value("config", std::vector<std::string>()),
                   .environment = CaptureEnvironment()};
  options.warn = [](const std::string& text) { std::fprintf(stderr, "mge: warning: %s\n", text.c_str()); };
  bool shows = !quiet && isatty(STDERR_FILENO);
  if (shows) {
    options.progress = [](size_t done, size_t total) {
      std::fprintf(stderr, "\rchecking %zu/%zu%s", done, total, done == total ? "\r\033[K" : "");
    };
  }
  absl::StatusOr<Report> report = Judge(asked.value("path", ""), options);
  if (!report.ok()) return Fail(report.status(), json);
  std::string text = ReportMarkdown(*report), data = ReportJson(*report);
  if (std::string folder = asked.value("report", ""); !folder.empty()) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    std::filesystem::path at(folder);
    if (!Write(at / "report.json", data + "\n") || !Write(at / "report.md", text)) return 7;
    if (!quiet) std::fprintf(stderr, "report written to %s\n", EscapeControl((at / "report.md").string()).c_str());
  }
  std::fputs(json ? (data + "\n").c_str() : text.c_str(), stdout);
  if (std::fflush(stdout) != 0) return 7;
  return report->passed() ? 0 : 5;
}

}  // namespace
}  // namespace mge::conform

int main(int argc, char** argv) { return mge::conform::Main(argc, argv); }
