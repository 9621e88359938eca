// SPDX-License-Identifier: Apache-2.0
// Completion for shells: scripts generated from the option table. They do not run `mge` while a user types.
#include <algorithm>

#include "core/cli/option_table.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

std::string Joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// Escapes a text for '...' in a shell; `quote_as` is the shell's form of a single quote.
std::string Quoted(const std::string& text, const std::string& quote_as) {
  std::string out;
  for (char c : text) out += c == '\'' ? quote_as : std::string(1, c);
  return out;
}

std::vector<std::string> OptionNames(const CommandRow& command) {
  std::vector<std::string> out;
  for (const OptionRow& o : command.options) out.insert(out.end(), o.names.begin(), o.names.end());
  return out;
}

std::string LastWord(const CommandRow& command) { return command.path.substr(command.path.rfind(' ') + 1); }

std::vector<std::string> CommandNames(const CommandRow& command) {
  std::vector<std::string> out;
  for (const CommandRow& c : command.commands) out.push_back(LastWord(c));
  return out;
}

// Calls visit for the command and all its sub-commands.
template <typename Visit>
void ForEach(const CommandRow& command, const Visit& visit) {
  visit(command);
  for (const CommandRow& c : command.commands) ForEach(c, visit);
}

// Usual names of devices. Those of this machine are not known while a user types.
constexpr char kDevices[] = "cpu0 gpu0 gpu1 cuda0 rocm0 virtual0 host";

std::string BashAction(const OptionRow& o) {
  if (!o.choices.empty()) return fmt::format("_mge_words '{}'", Joined(o.choices));
  if (o.value == "DEVICE") return fmt::format("_mge_words '{}'", kDevices);
  if (o.value == "SETTING") return "_mge_settings";
  if (o.value == "NAME=VALUE") return "_mge_settings =";
  if (o.value == "FILE" || o.value == "NAME=FILE") return "_mge_paths -f";
  if (o.value == "FOLDER") return "_mge_paths -d";
  return ":";
}

std::string ZshAction(const OptionRow& o) {
  if (!o.choices.empty()) return fmt::format("({})", Joined(o.choices));
  if (o.value == "DEVICE") return fmt::format("({})", kDevices);
  if (o.value == "SETTING") return "_mge_settings";
  if (o.value == "NAME=VALUE") return "_mge_settings -S =";
  if (o.value == "FILE" || o.value == "NAME=FILE") return "_files";
  if (o.value == "FOLDER") return "_files -/";
  return " ";
}

// Escapes a text for [...] in an _arguments specification.
std::string ZshDoc(const std::string& doc) {
  std::string out;
  for (char c : doc) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return Quoted(out, "'\\''");
}

// `places`: with those of arguments.
std::string ZshSpecs(const CommandRow& command, bool places = true) {
  std::string out;
  int place = 0;
  for (const OptionRow& o : command.options) {
    std::string value = o.value.empty() ? "" : fmt::format(":{}:{}", ZshDoc(o.value), ZshAction(o));
    if (o.names.empty() && places) {
      std::string at = o.repeats ? "*" : std::to_string(++place);
      out += fmt::format("    '{}:{}:{}'\n", at, ZshDoc(o.place), ZshAction(o));
    }
    for (const std::string& name : o.names) {
      out += fmt::format("    '{}{}[{}]{}'\n", o.repeats ? "*" : "", name, ZshDoc(o.doc), value);
    }
  }
  return out;
}

std::string ZshFunction(const CommandRow& command) {
  std::string name = "_mge" + (command.path.empty() ? "" : "_" + command.path);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace

std::string BashCompletion(const CommandRow& root) {
  std::vector<std::string> known;
  std::string values, words;
  ForEach(root, [&](const CommandRow& c) {
    for (const CommandRow& sub : c.commands) known.push_back(fmt::format("'{} {}'", c.path, LastWord(sub)));
    std::vector<std::string> options = OptionNames(c);
    std::string here = Joined(CommandNames(c)), argument = ":";
    for (const OptionRow& o : c.options) {
      if (o.names.empty()) {
        argument = BashAction(o);  // bash completes all arguments like the last one
      } else if (!o.value.empty()) {
        for (const std::string& name : o.names) {
          values += fmt::format("    {} {}') {}; return ;;\n", c.path.empty() ? "*'" : "'" + c.path, name, BashAction(o));
        }
      }
    }
    // A command may take arguments beside commands of its own, as bench does.
    if (!here.empty()) argument = fmt::format("{{ {}; _mge_add '{}'; }}", argument, here);
    words += fmt::format("    '{}') options='{}'; [[ $word == -* ]] || {} ;;\n", c.path, Joined(options), argument);
  });
  return fmt::format(R"(# Completion of mge for bash, made by `mge help --format bash`.
_mge_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }}
_mge_add() {{ mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -W "$1" -- "$word"); }}
_mge_settings() {{
  if [[ $# -gt 0 ]]; then compopt -o nospace 2>/dev/null; fi
  mapfile -t COMPREPLY < <(compgen -S "$1" -W '{}' -- "$word")
}}
_mge_paths() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "${{word#*=}}")
}}
_mge() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path='' options='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path="${{path:+$path }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path $before" in
{}  esac
  case "$path" in
{}  esac
  if [[ $word == -* ]]; then _mge_words "$options {}"; fi
}}
complete -F _mge mge
)",
                     Joined(root.settings), fmt::join(known, "|"), values, words, Joined(OptionNames(root)));
}

std::string ZshCompletion(const CommandRow& root) {
  std::string out = "#compdef mge\n# Completion of mge for zsh, made by `mge help --format zsh`.\n\n";
  out += fmt::format("_mge_settings() {{ compadd \"$@\" -- {} }}\n\n", Joined(root.settings));
  const std::string common = ZshSpecs(root);
  ForEach(root, [&](const CommandRow& c) {
    out += fmt::format("{}() {{\n", ZshFunction(c));
    std::string specs = (c.path.empty() ? "" : ZshSpecs(c, c.commands.empty())) + common;
    if (c.commands.empty()) {
      out += fmt::format("  local -a specs=(\n{}  )\n  _arguments -s $specs\n}}\n\n", specs);
      return;
    }
    out += fmt::format(
        "  local curcontext=$curcontext state line\n  local -a specs=(\n{}"
        "    '1:command:->command'\n    '*::argument:->argument'\n  )\n"
        "  _arguments -s -C $specs\n  case $state in\n    command)\n      local -a commands=(\n",
        specs);
    for (const CommandRow& sub : c.commands) out += fmt::format("        '{}:{}'\n", LastWord(sub), ZshDoc(sub.doc));
    const bool takes_files = std::ranges::any_of(c.options, [](const OptionRow& o) { return o.names.empty(); });
    out += "      )\n      _describe command commands";
    out += takes_files ? "; _files ;;\n" : " ;;\n";
    out += "    argument)\n      case $line[1] in\n";
    for (const CommandRow& sub : c.commands) out += fmt::format("        {}) {} ;;\n", LastWord(sub), ZshFunction(sub));
    out += "      esac ;;\n  esac\n}\n\n";
  });
  return out + "_mge \"$@\"\n";
}

std::string FishCompletion(const CommandRow& root) {
  std::string out = "# Completion of mge for fish, made by `mge help --format fish`.\ncomplete -c mge -f\n";
  ForEach(root, [&](const CommandRow& c) {
    // The condition that this command is the innermost one that was typed.
    std::string typed, rest;
    for (size_t at = 0; at < c.path.size();) {
      size_t end = std::min(c.path.find(' ', at), c.path.size());
      typed += fmt::format("__fish_seen_subcommand_from {}; and ", c.path.substr(at, end - at));
      at = end + 1;
    }
    std::string here = c.path.empty() ? "" : fmt::format(" -n '{}'", typed.substr(0, typed.size() - 6));
    std::string commands = Joined(CommandNames(c));
    for (const CommandRow& sub : c.commands) {
      out += fmt::format("complete -c mge -n '{}not __fish_seen_subcommand_from {}' -a {} -d '{}'\n", typed, commands,
                         LastWord(sub), Quoted(sub.doc, "\\'"));
    }
    for (const OptionRow& o : c.options) {
      std::string line = "complete -c mge" + here;
      for (const std::string& name : o.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!o.names.empty() && !o.value.empty()) line += " -r";
      if (!o.choices.empty()) {
        line += fmt::format(" -a '{}'", Joined(o.choices));
      } else if (o.value == "DEVICE") {
        line += fmt::format(" -a '{}'", kDevices);
      } else if (o.value == "SETTING") {
        line += fmt::format(" -a '{}'", Joined(root.settings));
      } else if (o.value == "NAME=VALUE") {
        line += fmt::format(" -a '{}='", fmt::join(root.settings, "= "));
      } else if (o.value == "FILE" || o.value == "NAME=FILE") {
        line += " -F";
      } else if (o.value == "FOLDER") {
        line += " -a '(__fish_complete_directories)'";
      } else if (o.names.empty()) {
        continue;  // the possible words are not known
      }
      out += fmt::format("{} -d '{}'\n", line, Quoted(o.doc, "\\'"));
    }
  });
  return out;
}

}  // namespace mge::cli
