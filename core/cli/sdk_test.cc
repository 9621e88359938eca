// SPDX-License-Identifier: Apache-2.0
// `mge sdk test FILE.so`: executes the program mge-conform, which is installed in the folder mge/ beside libmge.
#include "core/cli/sdk.h"

#include <unistd.h>

#include <cerrno>

#include "core/base/errno_text.h"
#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {

Action DeclareSdkTest(Arguments app, const Globals& globals) {
  struct Options {
    std::string file, report, xfail;
    std::vector<std::string> only, may_fail;
    bool quick = false, full = false;
    int jobs = 0;
    double seconds = 0;
  };
  auto o = std::make_shared<Options>();
  app.Add("FILE", o->file, "The backend's .so").Required();
  app.Add("--report", o->report, "A folder for report.json and report.md");
  app.AddFlag("--quick", o->quick, "Runs every kind of check, but only on a few operators");
  app.AddFlag("--full", o->full, "Lets allocations of kernels fail in every element type, and not only in the first one");
  app.Add("--xfail", o->xfail, "A list of expected failures: CHECK | PART OF WHERE | reason");
  app.Add("--may-fail", o->may_fail, "Accepts findings of checks whose names begin with this text; passing is accepted, too")
      .Repeats();
  app.Add("--only", o->only,
          "Runs only checks or operators whose names begin with this text; both together: these checks of these operators")
      .Repeats();
  app.Add("--jobs", o->jobs, "Checks to run at a time; 0: as many as processors, at most 8").Between(0, 256);
  app.Add("--timeout", o->seconds,
          "Time limit per check in seconds, longer if starting is slow; 0: 20, or 120 for all cases of an operator")
      .Between(0, 86400);
  return [&globals, o] {
    Json settings = Json::object();
    for (const std::string& text : globals.settings) {
      size_t equals = text.find('=');
      if (equals == std::string::npos)
        return ReportUsage(globals, fmt::format("'{}' is not a setting", text), "--set NAME=VALUE");
      settings[text.substr(0, equals)] = text.substr(equals + 1);
    }
    Json asked = {{"path", o->file},       {"report", o->report},    {"xfail", o->xfail},
                  {"only", o->only},       {"quick", o->quick},      {"jobs", o->jobs},
                  {"seconds", o->seconds}, {"settings", settings},   {"config", globals.config_files},
                  {"json", globals.json},  {"quiet", globals.quiet}, {"may_fail", o->may_fail},
                  {"full", o->full}};
    std::string tool = ProgramPath("mge-conform"), text = asked.dump(-1, ' ', true, Json::error_handler_t::replace);
    char* arguments[] = {tool.data(), text.data(), nullptr};
    std::fflush(stdout);
    execv(tool.c_str(), arguments);
    return Report(globals, Fail(errors::kFileAccess, tool + " cannot be run",
                                {.what = ErrnoText(errno), .fix = "install all of MGE, or build its target `product`"}));
  };
}

}  // namespace mge::cli
