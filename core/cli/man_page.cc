// SPDX-License-Identifier: Apache-2.0
#include "core/base/errors.h"
#include "core/cli/option_table.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Escapes a text for troff: backslashes, leading dots and quotes, and hyphens (so that they can be copied).
std::string Troff(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string TroffArguments(const CommandRow& command) {
  std::string out;
  for (const OptionRow& o : command.options) {
    if (!o.names.empty()) continue;
    std::string name = fmt::format("\\fI{}\\fR", Troff(o.place)) + (o.repeats ? "..." : "");
    out += o.required ? " " + name : " [" + name + "]";
  }
  return out;
}

std::string Options(const CommandRow& command) {
  std::string out;
  for (const OptionRow& o : command.options) {
    std::string head = o.names.empty() ? fmt::format("\\fI{}\\fR", Troff(o.place)) : "";
    for (const std::string& name : o.names) head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", Troff(name));
    if (!o.names.empty() && !o.value.empty()) head += fmt::format(" \\fI{}\\fR", Troff(o.value));
    std::string doc = Troff(o.doc);
    if (o.repeats && !o.names.empty()) doc += ". May be given more than once";
    if (!o.usual.empty()) doc += fmt::format(". Default: {}", Troff(o.usual));
    if (!o.allowed.empty()) doc += fmt::format(" ({})", Troff(o.allowed));
    out += fmt::format(".TP\n{}\n{}.\n", head, doc);
  }
  return out;
}

void AddCommands(const CommandRow& row, std::string* out) {
  for (const CommandRow& command : row.commands) {
    *out += fmt::format(".SS \"mge {}{}\"\n{}\n{}", Troff(command.path), TroffArguments(command), Troff(command.doc),
                        Options(command));
    AddCommands(command, out);
  }
}

}  // namespace

std::string ManPage(const CommandRow& root) {
  std::string out = fmt::format(
      ".\\\" Made by `mge help --format man`.\n"
      ".TH MGE 1 \"\" \"mge {}\" \"User Commands\"\n"
      ".nh\n.ad l\n"
      ".SH NAME\nmge \\- run ONNX models on backends that are plugins\n"
      ".SH SYNOPSIS\n.B mge\n[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n{}\n"
      "Data goes to standard output, messages to standard error. With \\fB\\-\\-json\\fR standard output is one JSON value, "
      "whose\n"
      "first field names its schema.\n"
      ".SH OPTIONS\nEvery command takes these.\n{}"
      ".SH COMMANDS\n",
      mge_version(), Troff(root.doc), Options(root));
  AddCommands(root, &out);
  out += ".SH EXIT STATUS\n";
  for (const ExitCodeRow& e : kExitCodes) out += fmt::format(".TP\n.B {}\n{}\n", e.code, Troff(e.meaning));
  out += ".SH ERRORS\nEvery error has a number; \\fBmge help E0502\\fR explains error E0502.\n";
  for (const ErrorRow* e : errors::kAll) out += fmt::format(".TP\n.B E{:04d}\n{}\n", e->id, Troff(e->doc));
  out +=
      ".SH ENVIRONMENT\n"
      "Every setting has a variable; \\fBmge env\\fR lists them with their values and origins. Examples:\n"
      ".TP\n.B MGE_DEFAULT_DEVICE\nThe device, such as cpu0, or an order of preference, such as gpu0,cpu0.\n"
      ".TP\n.B MGE_PLUGIN_PATH\nAdditional directories with backends, separated by colons.\n"
      ".TP\n.B MGE_CONFIG\nTOML files of settings, separated by colons.\n"
      ".SH EXAMPLES\n.nf\n";
  for (const char* example : kExamples) out += Troff(example) + "\n";
  return out + ".fi\n";
}

}  // namespace mge::cli
