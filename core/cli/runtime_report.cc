// SPDX-License-Identifier: Apache-2.0
#include "core/cli/runtime_report.h"

#include <unistd.h>

#include "core/base/output.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Names the refused backends on stderr, because a user may search for their devices or settings in vain.
int SayWhoWasRefused(const Globals& globals, const Runtime& runtime) {
  Json plugins;
  if (Status s = ReadReport(runtime, "mge.plugins/1", &plugins); !s.ok()) return Report(globals, s);
  for (const Json& file : plugins["files"]) {
    if (file["verdict"] != "refused") continue;
    PrintMessage(globals, fmt::format("refused: {}: {}; fix: {}", Escape(file["path"].get<std::string>()),
                                      Escape(file["reason"].get<std::string>()), Escape(file["fix"].get<std::string>())));
  }
  return kExitOk;
}

// Checks `device`, the device that a run would use if it names none. If the name is misspelt, prints the error of such a run
// and returns its exit code. If the device is only absent, warns.
int CheckDefaultDevice(const Globals& globals, const Json& device) {
  const Json& error = device["error"];
  if (error.is_null()) return kExitOk;
  const std::string text = error["text"].get<std::string>();
  if (!error["misspelt"]) {
    PrintMessage(globals, "warning: " + text.substr(text.find(' ') + 1));
    return kExitOk;
  }
  std::fprintf(stderr, "mge: %s\n", text.c_str());
  return error["exit_code"];
}

}  // namespace

int ShowRuntimeReport(const Globals& globals, const char* schema, const std::function<int(Json& report)>& show) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  Json report;
  if (Status s = ReadReport(runtime, schema, &report); !s.ok()) return Report(globals, s);
  const Json device = report["default_device"];
  const bool all_started = report["not_started"].empty();
  int code = show(report);
  if (int refused = SayWhoWasRefused(globals, runtime); code == kExitOk) code = refused;
  if (code == kExitOk) code = CheckDefaultDevice(globals, device);
  // A backend that is still starting may hold a lock of the dynamic linker, for which exit() would wait.
  if (!all_started) _exit(FlushOutput(code));
  return code;
}

}  // namespace mge::cli
