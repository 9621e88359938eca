// SPDX-License-Identifier: Apache-2.0
// mge help: explains a command, a setting or an error number, and prints the man page and completion scripts.
#include <charconv>

#include "CLI/CLI.hpp"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/cli/common.h"
#include "core/cli/explain.h"
#include "core/cli/option_table.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct HelpOptions {
  std::vector<std::string> topic;
  std::string format;
};

struct Page {
  const char* name;
  std::string (*make)(const CommandRow& root);
};
constexpr Page kPages[] = {{"man", ManPage}, {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};

// Returns the keys of the core's settings, whatever this machine's environment and backends are.
std::vector<std::string> SettingKeys() {
  std::vector<std::string> out;
  Json report;
  RuntimeOptions options;
  options.built_in_plugins = options.environment = false;
  const Result<Runtime> runtime = Runtime::Create(options);
  if (!runtime.ok() || !ReadReport(*runtime, "mge.env/1", &report).ok()) return out;
  for (const Json& s : report["settings"]) out.push_back(s["key"]);
  return out;
}

// Returns 502 for "E0502", "e502" or "502", and -1 if the text is not an error number.
int ErrorNumber(std::string_view text) {
  if (!text.empty() && (text[0] == 'E' || text[0] == 'e')) text.remove_prefix(1);
  int id = -1;
  auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
  return failure == std::errc() && stop == text.data() + text.size() ? id : -1;
}

Json ErrorJson(const ErrorRow& e) {
  return {{"id", fmt::format("E{:04d}", e.id)},
          {"exit_code", ExitCode(e.kind())},
          {"what", e.doc},
          {"causes", e.causes},
          {"fix", e.remedy}};
}

Json CommandJson(const CommandRow& command) {
  Json options = Json::array(), commands = Json::array();
  for (const OptionRow& o : command.options) {
    options.push_back({{"names", o.names},
                       {"argument", o.place},
                       {"value", o.value},
                       {"allowed", o.allowed},
                       {"default", o.usual},
                       {"doc", o.doc},
                       {"required", o.required},
                       {"repeats", o.repeats}});
  }
  for (const CommandRow& c : command.commands) commands.push_back(CommandJson(c));
  return {
      {"command", command.path}, {"doc", command.doc}, {"options", std::move(options)}, {"commands", std::move(commands)}};
}

void AddPaths(const CommandRow& row, std::vector<std::string>* out) {
  for (const CommandRow& c : row.commands) {
    out->push_back(c.path);
    AddPaths(c, out);
  }
}

int HelpOnError(const Globals& globals, int id) {
  const ErrorRow* e = errors::Find(id);
  if (!e) return ReportUsage(globals, fmt::format("there is no error number E{:04d}", id), "`mge help errors` lists them");
  if (globals.json) {
    PrintJson({{"schema", "mge.help/1"}, {"errors", Json::array({ErrorJson(*e)})}});
  } else {
    Print(fmt::format("E{:04d}, exit code {}\n\n{}\nUsual causes\n{}\nWhat to do\n{}", id, ExitCode(e->kind()),
                      Wrapped(e->doc, 0), Wrapped(e->causes, 2), Wrapped(e->remedy, 2)));
  }
  return kExitOk;
}

int HelpOnErrors(const Globals& globals) {
  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"ERROR", "EXIT", "WHAT"}};
  for (const ErrorRow* e : errors::kAll) {
    rows.push_back(ErrorJson(*e));
    table.push_back({fmt::format("E{:04d}", e->id), std::to_string(ExitCode(e->kind())), std::string(e->doc)});
  }
  if (globals.json) {
    PrintJson({{"schema", "mge.help/1"}, {"errors", std::move(rows)}});
  } else {
    Print(Table(table));
  }
  return kExitOk;
}

}  // namespace

int HelpOnCommand(const Globals& globals, const CLI::App& root, const std::vector<std::string>& topic) {
  const CommandRow table = ReadOptionTable(root);
  std::string path = fmt::format("{}", fmt::join(topic, " "));
  const CommandRow* row = FindCommand(table, path);
  if (!row) {
    std::vector<std::string> topics = {"errors"};
    AddPaths(table, &topics);
    return ReportUsage(globals, fmt::format("there is no command '{}'", path),
                       DidYouMeanOr(Nearest(path, topics), "mge help"));
  }
  if (globals.json) {
    PrintJson({{"schema", "mge.help/1"}, {"commands", Json::array({CommandJson(*row)})}});
    return kExitOk;
  }
  const CLI::App* app = &root;
  for (const std::string& name : topic) app = app->get_subcommand(name);
  // App::help() is not used: it would print the help of the parsed command, `mge help`.
  Print(app->get_formatter()->make_help(app, path.empty() ? root.get_name() : root.get_name() + " " + path, {}));
  return kExitOk;
}

namespace {

int RunHelp(const Globals& globals, const CLI::App& root, const HelpOptions& o) {
  for (const Page& page : kPages) {
    if (o.format != page.name) continue;
    if (!o.topic.empty()) return ReportUsage(globals, "--format prints a page of all commands", "omit the topic");
    if (globals.json) {
      return ReportUsage(globals, fmt::format("--format {} prints no JSON", o.format), "omit --json, or --format");
    }
    CommandRow table = ReadOptionTable(root);
    table.settings = SettingKeys();
    Print(page.make(table));
    return kExitOk;
  }
  if (o.topic.size() == 1) {
    if (o.topic[0] == "errors") return HelpOnErrors(globals);
    if (int id = ErrorNumber(o.topic[0]); id >= 0) return HelpOnError(globals, id);
    if (LooksLikeSetting(o.topic[0])) return ExplainSetting(globals, o.topic[0]);
  }
  return HelpOnCommand(globals, root, o.topic);
}

}  // namespace

Action DeclareHelp(Arguments app, const Globals& globals) {
  auto o = std::make_shared<HelpOptions>();
  std::vector<std::string> formats;
  for (const Page& page : kPages) formats.push_back(page.name);
  app.Add("TOPIC", o->topic, "A command, a setting, an error such as E0502, or errors");
  app.Add("--format", o->format, "Prints the man page of all commands, or the completion script of a shell")
      .OneOf(formats)
      .ValueName(fmt::format("{{{}}}", fmt::join(formats, ",")));
  const CLI::App* root = app.app().get_parent();
  return [&globals, root, o] { return RunHelp(globals, *root, *o); };
}

}  // namespace mge::cli
