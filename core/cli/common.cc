// SPDX-License-Identifier: Apache-2.0
#include "core/cli/common.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/base/lines.h"
#include "core/base/status.h"
#include "core/cli/terminal.h"
#include "fmt/format.h"

namespace mge::cli {

namespace {

// Prints "mge: " and an error to stderr; its number, at the beginning, is red on a terminal.
void PrintError(const Globals& globals, std::string_view text) {
  const size_t end = text.find(']') == std::string_view::npos ? 0 : text.find(']') + 1;
  const std::string head = end ? Styled(stderr, Style::kRed, text.substr(0, end)) : "";
  std::fputs(fmt::format("mge: {}{}{}\n", globals.speaker, head, text.substr(end)).c_str(), stderr);
}

// Prints the reference to the error's page and, with --json, the error. Returns the exit code.
int Finish(const Globals& globals, int id, int exit_code, std::string_view title, const ErrorParts& parts, bool more) {
  if (more && id != 0) PrintMessage(globals, fmt::format("  more:  mge help E{:04d}", id));
  if (globals.json) {
    PrintJson({{"schema", "mge.error/1"},
               {"id", id},
               {"exit_code", exit_code},
               {"title", title},
               {"what", parts.what},
               {"where", parts.where},
               {"fix", parts.fix}});
  }
  return exit_code;
}

}  // namespace

int Report(const Globals& globals, const Status& status) {
  if (status.ok()) return kExitOk;
  PrintError(globals, status.text());
  return Finish(globals, status.id(), status.exit_code(), status.title(),
                {std::string(status.what()), std::string(status.where()), std::string(status.fix())}, true);
}

int Report(const Globals& globals, const absl::Status& status) {
  if (status.ok()) return kExitOk;
  PrintError(globals, FormatError(status));
  ErrorParts parts = PartsOf(status);
  parts.fix = FixOf(status);
  return Finish(globals, ErrorId(status), ExitCode(KindOf(status)), ErrorTitle(status), parts, true);
}

int ReportUsage(const Globals& globals, std::string_view title, std::string_view fix) {
  std::string text = fmt::format("error[E{:04d}] {}", errors::kUsage.id, Escape(title));
  if (!fix.empty()) text += fmt::format("\n  fix:   {}", Escape(fix));
  PrintError(globals, text);
  return Finish(globals, errors::kUsage.id, kExitUsage, title, {.where = "command line", .fix = std::string(fix)}, false);
}

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // now, because a backend may end the process when it is closed; FlushOutput() reports errors
}

void PrintJson(const Json& json) { Print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

void PrintMessage(const Globals& globals, std::string_view text) {
  if (!globals.quiet) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

RuntimeOptions OptionsOf(const Globals& globals) {
  RuntimeOptions options;
  options.command_line = globals.settings;
  options.config_files = globals.config_files;
  return options;
}

Status MakeRuntime(const Globals& globals, Runtime* out) { return Runtime::Create(OptionsOf(globals)).MoveTo(*out); }

Status ReadReport(const Runtime& runtime, const char* schema, Json* out) {
  std::string text;
  Status s = runtime.Report(schema).MoveTo(text);
  if (s.ok()) *out = Json::parse(text);
  return s;
}

SessionOptions SessionOptionsOf(const Globals& globals) {
  SessionOptions options;
  options.device = globals.device;
  options.threads = globals.threads;
  options.data_folder = globals.data_folder;
  return options;
}

Status OpenModel(const Globals& globals, const std::string& path, Runtime* runtime, Session* session,
                 const std::vector<std::string>& skip, const std::vector<std::string>& outputs, bool outputs_on_device) {
  if (!runtime->get()) {
    if (Status s = MakeRuntime(globals, runtime); !s.ok()) return s;
  }
  SessionOptions options = SessionOptionsOf(globals);
  options.skip = skip;
  options.outputs = outputs;
  options.outputs_on_device = outputs_on_device;
  return Session::Load(*runtime, path, options).MoveTo(*session);
}

Globals OnDevice(const Globals& globals, const std::string& device) {
  Globals there = globals;
  there.device = device;
  if (device == "host") {
    there.settings.insert(there.settings.end(), {"select.strategy=heuristic", "select.record=", "select.replay="});
  }
  return there;
}

std::string ProgramPath(const std::string& name) {
  Dl_info info = {};
  if (!dladdr(reinterpret_cast<const void*>(&mge_version), &info) || !info.dli_fname) return {};
  std::error_code code;
  std::filesystem::path library = std::filesystem::canonical(info.dli_fname, code);
  return code ? std::string() : (library.parent_path() / "mge" / name).string();
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string TypeText(const Tensor& tensor) {
  if (tensor.kind() == MGE_VALUE_SEQUENCE) return fmt::format("sequence of {}", tensor.part_count());
  if (tensor.kind() == MGE_VALUE_MAP) {
    Tensor keys;
    return fmt::format("map of {}", tensor.Part(0).MoveTo(keys).ok() ? keys.elements() : 0);
  }
  if (tensor.kind() == MGE_VALUE_OPTIONAL) return tensor.part_count() ? "optional" : "empty optional";
  return fmt::format("{}{}", mge_dtype_name(tensor.dtype()), ShapeText(tensor.dims()));
}

std::string Escape(std::string_view text) { return EscapeControl(text); }

std::string Wrapped(std::string_view text, size_t indent) {
  constexpr size_t kWidth = 100;
  std::string out;
  while (!text.empty()) {
    size_t end = text.size();
    if (end + indent > kWidth) {
      end = text.rfind(' ', kWidth - indent);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    out += std::string(indent, ' ') + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const size_t columns = OutputColumns();
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += Escape(row[i]);
      if (i + 1 < row.size()) line += std::string(widths[i] + 2 - std::min(row[i].size(), widths[i]), ' ');
    }
    line = CutLine(line, columns);
    out += (out.empty() ? Styled(stdout, Style::kBold, line) : line) + "\n";
  }
  return out;
}

Progress::Progress(const Globals& globals, std::string text, size_t total)
    : on_(!globals.quiet && isatty(STDERR_FILENO)),
      text_(std::move(text)),
      total_(total),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

Progress::Progress(const Globals& globals, std::string text, std::chrono::duration<double> seconds)
    : Progress(globals, std::move(text), 0) {
  seconds_ = seconds.count();
}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r%*s\r", 78, "");
}

void Progress::Step(size_t done) {
  if (!on_) return;
  auto now = std::chrono::steady_clock::now();
  if (now - begin_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  double elapsed = std::chrono::duration<double>(now - begin_).count();
  if (total_ == 0) {
    std::fprintf(stderr, "\r%s %zu, %.0f s left ", text_.c_str(), done, std::max(0.0, seconds_ - elapsed));
    return;
  }
  double left = done ? elapsed / static_cast<double>(done) * static_cast<double>(total_ - std::min(done, total_)) : 0;
  std::fprintf(stderr, "\r%s %zu/%zu, %.0f s left ", text_.c_str(), done, total_, left);
}

}  // namespace mge::cli
