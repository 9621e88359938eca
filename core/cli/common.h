// SPDX-License-Identifier: Apache-2.0
// Functions that the sub-commands share: errors, output, creation of runtimes and sessions, formatting.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/byte_size.h"
#include "core/base/duration_text.h"
#include "core/base/errors.h"
#include "core/base/shape.h"
#include "core/cli/command.h"
#include "mge/mge.hpp"
#include "nlohmann/json.hpp"

namespace mge::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kExitOk = ExitCode(ErrorKind::kNone);
inline constexpr int kExitUsage = ExitCode(ErrorKind::kUsage);
inline constexpr int kExitDevice = ExitCode(ErrorKind::kDevice);
inline constexpr int kExitMismatch = ExitCode(ErrorKind::kMismatch);

// Writes an error with its four parts to stderr, with --json also as "mge.error/1" to stdout. Returns the exit code.
// The command creates errors that it detects itself with Fail().
int Report(const Globals& globals, const Status& status);
int Report(const Globals& globals, const absl::Status& status);
int ReportUsage(const Globals& globals, std::string_view title, std::string_view fix = {});

// Print functions write data to stdout. PrintMessage() writes a message to stderr, unless --quiet is given.
void Print(std::string_view text);
void PrintJson(const Json& json);
void PrintMessage(const Globals& globals, std::string_view text);

RuntimeOptions OptionsOf(const Globals& globals);
Status MakeRuntime(const Globals& globals, Runtime* out);
Status ReadReport(const Runtime& runtime, const char* schema, Json* out);
SessionOptions SessionOptionsOf(const Globals& globals);
// Creates a runtime and a session with the device and threads of the options. The session computes `outputs` in place of
// the model's outputs, if `outputs` is not empty. `outputs_on_device` is the option of SessionOptions.
Status OpenModel(const Globals& globals, const std::string& path, Runtime* runtime, Session* session,
                 const std::vector<std::string>& skip = {}, const std::vector<std::string>& outputs = {},
                 bool outputs_on_device = false);
// Returns the options for a session on another device. For "host" (the reference evaluators), also resets the settings that
// choose kernels.
Globals OnDevice(const Globals& globals, const std::string& device);

// Returns the path of a program or library in the folder mge/ beside libmge. It is relative to libmge's, so that an
// installation can be moved.
std::string ProgramPath(const std::string& name);

std::string TypeText(const Tensor& tensor);  // "float32[1,10]"
std::string Escape(std::string_view text);   // escapes control characters
std::string Text(const Json& value);         // a string without quotes, any other value as JSON

// Wraps a text into lines of at most 100 characters, each indented by `indent` blanks and ended by a line break.
std::string Wrapped(std::string_view text, size_t indent);

// Formats a table with aligned columns for stdout. The first row is the head. On a terminal, long lines are cut with "…".
std::string Table(const std::vector<std::vector<std::string>>& rows);

// Shows the progress "text 12/345, 6 s left" of a long operation on stderr. Shows nothing if stderr is not a terminal or with
// --quiet.
class Progress {
 public:
  // The operation has `total` steps.
  Progress(const Globals& globals, std::string text, size_t total);
  // The operation ends after `seconds`, however many steps it has done.
  Progress(const Globals& globals, std::string text, std::chrono::duration<double> seconds);
  ~Progress();
  void Step(size_t done);

 private:
  bool on_;
  bool shown_ = false;
  std::string text_;
  size_t total_ = 0;    // 0: `seconds_` decides
  double seconds_ = 0;  // the length of the operation
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace mge::cli
