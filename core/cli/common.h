// SPDX-License-Identifier: Apache-2.0
// What the sub-commands share: errors, the runtime of the options, words for numbers.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/duration_text.h"
#include "core/cli/command.h"
#include "mge/mge.hpp"
#include "nlohmann/json.hpp"

namespace mge::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMismatch = 8;
inline constexpr int kExitTimeout = 124;

// Writes an error in its four parts to stderr (with --json also as "mge.error/1" to stdout) and answers the exit code.
int Report(const Globals& globals, const Status& status);
int ReportUsage(const Globals& globals, std::string_view title, std::string_view fix = {});
// An error of the command itself.
struct ErrorText {
  int id = 0;         // 702 is E0702
  int exit_code = 1;
  std::string title, what = {}, where = {}, fix = {};  // empty parts are not printed
};
int ReportError(const Globals& globals, const ErrorText& error);

// Data: to stdout. Talk: to stderr, unless --quiet.
void Print(std::string_view text);
void PrintJson(const Json& json);
void Talk(const Globals& globals, std::string_view text);

Status MakeRuntime(const Globals& globals, Runtime* out);
// Runtime and session of a model with the device and threads of the options.
// `outputs`: values to compute in place of the model's outputs.
Status OpenModel(const Globals& globals, const std::string& path, Runtime* runtime, Session* session,
                 const std::vector<std::string>& skip = {}, const std::vector<std::string>& outputs = {});
// The options for a session on another device; "host" is the reference evaluators, of which no strategy asks anything.
Globals OnDevice(const Globals& globals, const std::string& device);

// For options that are numbers: CLI::Range takes "nan" for a number of every range, and any text for one outside of it.
CLI::Validator Between(double least, double most);

std::string HumanBytes(uint64_t bytes);                // "97.5 MiB"
std::string ShapeText(std::span<const int64_t> dims);  // "[1,3,224,224]"
std::string TypeText(const Tensor& tensor);            // "float32[1,10]"
std::string Escape(std::string_view text);             // control characters made visible

// Lines of at most 100 characters, each behind `indent` blanks, with a line break at the end.
std::string Wrapped(std::string_view text, size_t indent);

// A table with aligned columns; the first row is the head.
std::string Table(const std::vector<std::vector<std::string>>& rows);

// Shows "text 12/345" on stderr while something takes long; nothing when stderr is no terminal or with --quiet.
class Progress {
 public:
  Progress(const Globals& globals, std::string text, size_t total);
  ~Progress();
  void Step(size_t done);

 private:
  bool on_;
  bool shown_ = false;
  std::string text_;
  size_t total_;
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace mge::cli
