// SPDX-License-Identifier: Apache-2.0
#include "core/conform/tool/entry.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/output.h"
#include "core/base/thread.h"
#include "core/conform/allocations.h"
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

// Creates the folder of the report and checks that it is writable, before any check runs.
absl::Status PrepareFolder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const absl::Status status = AtomicFile::Create(folder + "/report.json").status();
  if (status.ok()) return status;
  return Fail(errors::kFileWrite, ErrorTitle(status),
              {.what = PartsOf(status).what, .fix = "give --report a folder that you may write to"});
}

int Main(int argc, char** argv) {
  Json asked = Json::parse(argc == 2 ? argv[1] : "", nullptr, false);
  if (!asked.is_object()) {
    std::fprintf(stderr, "mge-conform is an internal program; run `mge sdk test FILE.so`\n");
    return 2;
  }
  bool json = asked.value("json", false), quiet = asked.value("quiet", false);
  Options options;
  options.quick = asked.value("quick", false);
  options.full = asked.value("full", false);
  options.jobs = asked.value("jobs", 0);
  options.seconds = asked.value("seconds", 0.0);
  options.expected_failures = asked.value("xfail", "");
  options.may_fail = asked.value("may_fail", std::vector<std::string>());
  options.only = asked.value("only", std::vector<std::string>());
  options.given = {.config_files = asked.value("config", std::vector<std::string>()), .environment = CaptureEnvironment()};
  for (const auto& [name, text] : asked.value("settings", std::map<std::string, std::string>()))
    options.given.command_line.push_back({name, text});
  options.warn = [quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "mge: warning: %s\n", text.c_str());
  };
  if (!quiet && isatty(STDERR_FILENO)) {
    options.progress = [](size_t done, size_t total) {
      std::fprintf(stderr, "\rchecking %zu/%zu%s", done, total, done == total ? "\r\033[K" : "");
    };
  }
  std::string folder = asked.value("report", "");
  if (!folder.empty()) {
    if (absl::Status status = PrepareFolder(folder); !status.ok()) return Fail(status, json);
  }
  absl::StatusOr<Report> report = CheckBackend(asked.value("path", ""), options);
  if (!report.ok()) return Fail(report.status(), json);
  std::string text = ReportMarkdown(*report), data = ReportJson(*report);
  if (!folder.empty()) {
    absl::Status status = WriteFileAtomically(folder + "/report.json", AsBytes(data + "\n"));
    status.Update(WriteFileAtomically(folder + "/report.md", AsBytes(text)));
    if (!status.ok()) return Fail(status, json);
    if (!quiet) std::fprintf(stderr, "report written to %s/report.md\n", EscapeControl(folder).c_str());
  }
  std::fputs(json ? (data + "\n").c_str() : text.c_str(), stdout);
  return report->passed() ? 0 : 5;
}

}  // namespace
}  // namespace mge::conform

int mge_private_conform(int argc, char** argv) {
  return mge::CallOnLargeStack([](int count, char** words) { return mge::FlushOutput(mge::conform::Main(count, words)); },
                               argc, argv);
}

int mge_private_allocation_fails(const void* caller) noexcept { return mge::conform::AllocationFails(caller); }
void mge_private_count_object(int change) noexcept { mge::conform::CountObject(change); }
