// SPDX-License-Identifier: Apache-2.0
// mge env: lists the settings with value and origin, lists the names of other systems, and explains single settings.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/base/lower_case.h"
#include "core/base/nearest.h"
#include "core/cli/common.h"
#include "core/cli/explain.h"
#include "core/cli/runtime_report.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct EnvOptions {
  std::string filter;
  bool changed = false;
  bool aliases = false;
  std::string explain;
};

// Returns every name of a setting: key, variable, aliases.
std::vector<std::string> NamesOf(const Json& setting) {
  std::vector<std::string> names = {Text(setting["key"]), Text(setting["variable"])};
  for (const Json& alias : setting["aliases"]) names.push_back(Text(alias));
  return names;
}

bool Matches(const Json& setting, const EnvOptions& o) {
  if (o.changed && Text(setting["origin"]) == "default") return false;
  const std::string wanted = LowerCase(o.filter);
  for (const std::string& name : NamesOf(setting)) {
    if (LowerCase(name).find(wanted) != std::string::npos) return true;
  }
  return false;
}

std::string OrDash(std::string text) { return text.empty() ? "-" : text; }

std::string RenderAliases(const Json& settings) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& s : settings) {
    for (const Json& f : s["foreign"]) {
      rows.push_back(
          {Text(f["name"]), Text(f["system"]), Text(s["key"]), OrDash(Text(f["default"])), OrDash(Text(f["page_default"]))});
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.insert(rows.begin(), {"NAME", "SYSTEM", "SETTING", "DEFAULT", "OTHER DEFAULT ON ITS PAGE"});
  return Table(rows);
}

std::string RenderSettings(const Json& settings, bool explain) {
  std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "UNIT", "ORIGIN", "CHANGES", "OWNER", "VARIABLE"}};
  std::string docs;
  for (const Json& s : settings) {
    rows.push_back({Text(s["key"]), OrDash(Text(s["value"])), OrDash(Text(s["unit"])), Text(s["origin"]),
                    Text(s["lifecycle"]) + (s["unstable"].get<bool>() ? ", unstable" : ""), Text(s["owner"]),
                    Text(s["variable"])});
    if (!explain) continue;
    docs += fmt::format("\n{}: {}\n", Text(s["key"]), Text(s["doc"]));
    if (!Text(s["allowed"]).empty()) docs += fmt::format("  allowed: {}\n", Text(s["allowed"]));
    for (const Json& a : s["aliases"]) docs += fmt::format("  alias:   {}\n", Text(a));
  }
  return Table(rows) + docs;
}

// Returns a value that a user could set, which differs from the default if the allowed values tell one.
std::string ExampleValue(const std::string& type, const std::string& usual, const std::string& allowed) {
  if (type == "bool") return usual == "true" || usual == "1" ? "0" : "1";
  if (type == "choice" || type == "flags") {
    const size_t comma = allowed.find(", ");
    const std::string first = allowed.substr(0, comma);
    return first != usual || comma == allowed.npos ? first
                                                   : allowed.substr(comma + 2, allowed.find(", ", comma + 2) - comma - 2);
  }
  int64_t least = 0;
  if (type == "int" && std::from_chars(allowed.data(), allowed.data() + allowed.size(), least).ec == std::errc()) {
    return std::to_string(std::to_string(least) == usual ? least + 1 : least);
  }
  return usual.empty() || usual.find(' ') != usual.npos ? "VALUE" : usual;
}

// Returns the keys of the settings that the text of this one names, and of those whose texts name this one.
std::string RelatedTo(const Json& s, const Json& settings) {
  std::string out;
  for (const Json& other : settings) {
    const std::string key = Text(other["key"]);
    if (key == Text(s["key"]) || key.find('.') == key.npos) continue;
    const bool related =
        Text(s["doc"]).find(key) != std::string::npos || Text(other["doc"]).find(Text(s["key"])) != std::string::npos;
    if (related) out += (out.empty() ? "" : ", ") + key;
  }
  return out;
}

std::string RenderExplanation(const Json& s, const Json& settings, const std::string& name) {
  auto line = [](std::string_view label, const std::string& text) {
    return text.empty() ? std::string() : fmt::format("  {:<12} {}\n", label, text);
  };
  std::string out = fmt::format("{}\n\n{}\n", Text(s["key"]), Wrapped(Text(s["doc"]), 2));
  out += line("variable", Text(s["variable"]));
  std::string allowed = Text(s["allowed"]), usual = Text(s["default"]), page_default, meanings;
  for (const Json& f : s["foreign"]) {
    out += line("name", fmt::format("{} ({})", Text(f["name"]), Text(f["system"])));
    if (Text(f["name"]) != name) continue;
    allowed = Text(f["allowed"]), usual = Text(f["default"]), page_default = Text(f["page_default"]);
    meanings = Text(f["meanings"]);
  }
  for (const Json& a : s["aliases"]) {
    const Json& f = s["foreign"];
    if (std::none_of(f.begin(), f.end(), [&](const Json& x) { return x["name"] == a; })) out += line("alias", Text(a));
  }
  out += line("type", Text(s["type"]));
  out += line("allowed", allowed);
  out += line("meaning", meanings);
  out += line("unit", Text(s["unit"]));
  out += line("default", usual);
  out += line("page default", page_default);
  out += line("value", fmt::format("{} ({})", OrDash(Text(s["value"])), Text(s["origin"])));
  out += line("changes", Text(s["lifecycle"]) == "dynamic" ? "dynamic: read when a session or a plan is made"
                                                           : "first-set: read once per runtime; a later change fails");
  if (s["unstable"].get<bool>()) out += line("stability", "unstable: a later version may change or remove it");
  out += line("owner", Text(s["owner"]));
  out += line("see also", RelatedTo(s, settings));
  const std::string value = ExampleValue(Text(s["type"]), usual, allowed);
  const bool key = name == Text(s["key"]) || name.find('.') != name.npos;
  out += fmt::format("\nExample\n  {}\n", key ? fmt::format("mge run model.onnx --set {}={}", name, value)
                                              : fmt::format("{}={} mge run model.onnx", name, value));
  return out;
}

}  // namespace

bool LooksLikeSetting(std::string_view text) {
  return text.find_first_of("._") != text.npos ||
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::islower(c); });
}

// Returns the present name in place of one that an earlier version had, or "".
std::string SuccessorOf(const Json& report, const std::string& name) {
  for (const Json& removed : report["removed"]) {
    if (LowerCase(Text(removed["name"])) == LowerCase(name)) return Text(removed["successor"]);
  }
  return {};
}

// Reports that nothing has this name: with its successor, else with the nearest known name.
int ReportUnknown(const Globals& globals, const Json& report, const std::string& what, const std::string& name,
                  const std::vector<std::string>& known) {
  const std::string successor = SuccessorOf(report, name);
  return ReportUsage(
      globals, what,
      successor.empty() ? DidYouMeanOr(Nearest(name, known), "mge env") : fmt::format("it is now named {}", successor));
}

int ExplainSetting(const Globals& globals, const std::string& name) {
  return ShowRuntimeReport(globals, "mge.env/1", [&](Json& report) {
    std::vector<std::string> known;
    for (const Json& s : report["settings"]) {
      for (const std::string& n : NamesOf(s)) {
        if (LowerCase(n) != LowerCase(name)) {
          known.push_back(n);
          continue;
        }
        if (globals.json) {
          PrintJson({{"schema", "mge.env/1"}, {"settings", Json::array({s})}});
        } else {
          Print(RenderExplanation(s, report["settings"], n));
        }
        return kExitOk;
      }
    }
    return ReportUnknown(globals, report, fmt::format("there is no setting '{}'", name), name, known);
  });
}

Action DeclareEnv(Arguments app, const Globals& globals) {
  auto o = std::make_shared<EnvOptions>();
  app.Add("FILTER", o->filter, "Part of a key, variable or alias, in any case");
  app.AddFlag("--changed", o->changed, "Lists only settings that differ from their defaults");
  app.AddFlag("--aliases", o->aliases, "Lists the names of other systems (MXNet, MegEngine, Ascend GE) and their settings");
  app.TakesCommands(0);
  Arguments explain = app.AddCommand("explain", "Explains a setting");
  explain.Add("NAME", o->explain, "A key, variable or alias").ValueName("SETTING").Required();
  return [&globals, o, explain] {
    if (explain.Given()) return ExplainSetting(globals, o->explain);
    return ShowRuntimeReport(globals, "mge.env/1", [&](Json& report) {
      Json found = Json::array();
      std::vector<std::string> names;
      for (Json& s : report["settings"]) {
        for (const std::string& name : NamesOf(s)) names.push_back(name);
        if (Matches(s, *o) && !(o->aliases && s["foreign"].empty())) found.push_back(std::move(s));
      }
      if (found.empty() && !o->filter.empty()) {
        return ReportUnknown(globals, report,
                             fmt::format("no setting{} matches '{}'", o->changed ? " that was changed" : "", o->filter),
                             o->filter, names);
      }
      report["settings"] = std::move(found);
      if (globals.json) {
        PrintJson(report);
      } else {
        Print(o->aliases ? RenderAliases(report["settings"]) : RenderSettings(report["settings"], !o->filter.empty()));
      }
      return kExitOk;
    });
  };
}

}  // namespace mge::cli
