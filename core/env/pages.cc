// SPDX-License-Identifier: Apache-2.0
#include "core/env/pages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/env/foreign_names.h"
#include "core/env/foreign_values.h"
#include "core/env/kernel_choice.h"
#include "core/env/setting_text.h"
#include "core/env/settings.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the areas (the parts of keys before the first dot) in the order of their first rows. "" is the area of keys
// without a dot.
std::vector<std::string_view> Areas() {
  std::vector<std::string_view> areas = {""};
  for (const SettingRow& row : kSettings) {
    size_t dot = row.key.find('.');
    if (dot == row.key.npos) continue;
    std::string_view area = row.key.substr(0, dot);
    if (std::find(areas.begin(), areas.end(), area) == areas.end()) areas.push_back(area);
  }
  return areas;
}

std::string_view AreaOf(const SettingRow& row) {
  size_t dot = row.key.find('.');
  return dot == row.key.npos ? std::string_view() : row.key.substr(0, dot);
}

std::string Default(const SettingRow& row) { return FormatSetting(row, DefaultOf(row)); }

// Escapes `|`, which would end the cell of a Markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string Code(std::string_view text) { return text.empty() ? std::string() : fmt::format("`{}`", text); }

std::string AllowedWithUnit(const SettingRow& row) {
  std::string allowed = AllowedText(row);
  bool ranged = row.ranged && row.type != SettingType::kBytes;
  if (!ranged || row.unit.empty()) return allowed;
  if (row.word.empty()) return fmt::format("{} {}", allowed, row.unit);
  const size_t numbers = allowed.size() - row.word.size() - std::string_view(", ").size();
  return fmt::format("{} {}, {}", allowed.substr(0, numbers), row.unit, row.word);
}

// Returns when the setting may change, and whether it may go.
std::string WhenText(const SettingRow& row) {
  return fmt::format("{}{}", LifecycleName(row.lifecycle), row.unstable ? ", unstable" : "");
}

std::string TomlDefault(const SettingRow& row) {
  if (Default(row) == row.word) return fmt::format("\"{}\"", row.word);
  switch (row.type) {
    case SettingType::kBool:
    case SettingType::kInt:
    case SettingType::kDouble:
    case SettingType::kSeconds: return Default(row);
    case SettingType::kTextList:
    case SettingType::kPathList: {
      const SettingValue default_value = DefaultOf(row);
      std::string out;
      for (const std::string& entry : std::get<std::vector<std::string>>(default_value)) {
        out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", entry);
      }
      return fmt::format("[{}]", out);
    }
    default: return fmt::format("\"{}\"", Default(row));
  }
}

// Returns the tables of kernel_choice.h.
std::string KernelChoiceTables() {
  auto or_else = [](std::string_view text, std::string_view none) { return text.empty() ? std::string(none) : Code(text); };
  std::string out =
      "\n## Choice of kernels\n\n"
      "`optimized`, joined to a strategy, also forbids reference kernels. `select.deterministic` "
      "(`MXNET_ENFORCE_DETERMINISM`) also allows only deterministic kernels. For operators in the file of `select.replay`, "
      "the file chooses.\n\n"
      "| select.strategy | backend's default mode | kernels are chosen by |\n|---|---|---|\n";
  for (const StrategyRow& row : kStrategyRows) {
    out += fmt::format("| {} | {} | {} |\n", or_else(row.strategy, "not set"), or_else(row.mode, "any"), row.chosen_by);
  }
  out +=
      "\nConvolutions on GPUs:\n\n"
      "| select.gpu_conv_autotune | MXNET_CUDNN_AUTOTUNE_DEFAULT | their kernels are chosen by | with a reproducible "
      "select.strategy |\n|---|---|---|---|\n";
  for (const AutotuneRow& row : kAutotuneRows) {
    out += fmt::format("| {} | {} | {} | {} |\n", or_else(row.autotune, "not set"), or_else(row.number, "not set"),
                       row.chosen_by, row.reproducible);
  }
  return out;
}

}  // namespace

std::string SettingsMarkdown() {
  std::string out =
      "# Settings\n\n"
      "Generated from the table in `core/env`; see [README.md](README.md) for how to generate it. "
      "Backends add settings of "
      "their own, which `mge env` shows.\n\n"
      "The sources of a value are, highest precedence first: a call, the command line (`--set key=value`), the "
      "environment (the variable before "
      "its aliases), a configuration file (`--config`, `MGE_CONFIG`; a later file wins), the "
      "default. An empty value sets "
      "nothing.\n\n"
      "*first-set*: read once per runtime. *dynamic*: read when a session or a plan is made. "
      "*later*: the value is checked, "
      "but it has no effect in this version. Using the setting causes a warning, or an error with "
      "`MGE_ENV_STRICT=1`. *unstable*: a tuning number of an algorithm, which a later version may change or remove.\n\n"
      "Examples of sizes: `4096`, `512KiB`, `2G` (powers of 1024), `64MB` (powers of 1000). Examples of times: `1.5` "
      "(seconds), `500ms`, `3min`.\n";
  for (std::string_view area : Areas()) {
    out += fmt::format("\n## {}\n\n", area.empty() ? "general" : area);
    out +=
        "| key | variable, aliases | type | default | allowed | when | what it does "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const SettingRow& row : kSettings) {
      if (AreaOf(row) != area) continue;
      std::string names = Code(VariableOf(row.key));
      for (std::string_view alias : Words(row.aliases)) names += ", " + Code(alias);
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", Code(row.key), names, TypeName(row.type),
                         Code(DefaultTextFor(row, DefaultOf(row), row.key)), Cell(AllowedWithUnit(row)), WhenText(row),
                         Cell(row.doc));
    }
  }
  out += KernelChoiceTables();
  out +=
      "\n## Names of other systems\n\n"
      "Values of a name are written as on its page or as the key's. The column *default* shows our default in the page's "
      "spelling, and that of the page where it is another one.\n\n"
      "| name | system | key | values | default |\n|---|---|---|---|---|\n";
  std::vector<std::string> lines;
  for (const SettingRow& row : kSettings) {
    const std::vector<std::string_view> aliases = Words(row.aliases);
    for (const ForeignName& f : ForeignNamesOf(VariableOf(row.key), {aliases.begin(), aliases.end()})) {
      std::string default_value = Code(DefaultTextFor(row, DefaultOf(row), f.name));
      if (const std::string_view page = PageDefault(f.name); !page.empty()) {
        default_value += fmt::format("{}page: {}", default_value.empty() ? "" : "; ", Code(page));
      }
      lines.push_back(fmt::format("| {} | {} | {} | {} | {} |\n", Code(f.name), f.system, Code(row.key),
                                  Cell(AllowedTextFor(row, f.name)), default_value));
    }
  }
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) out += line;
  return out;
}

std::string SettingsToml() {
  std::string out =
      "# Every setting of MGE with its default, commented out. Generated from the table in "
      "core/env.\n"
      "# Copy the lines that you want to change into your own file, and name that file with --config or MGE_CONFIG.\n";
  for (std::string_view area : Areas()) {
    if (!area.empty()) out += fmt::format("\n[{}]\n", area);
    for (const SettingRow& row : kSettings) {
      if (AreaOf(row) != area || row.key == kConfigFiles.key) continue;
      std::string allowed = AllowedWithUnit(row);
      const std::string usual = DefaultTextFor(row, DefaultOf(row), row.key);
      const std::string unset = usual == Default(row) ? "" : fmt::format(" Without a value: {}.", usual);
      out += fmt::format("\n# {}{}\n# {}{}{}; {}; {}\n# {} = {}\n", row.doc, unset, TypeName(row.type),
                         allowed.empty() ? "" : ": ", allowed, WhenText(row), VariableOf(row.key),
                         row.key.substr(area.empty() ? 0 : area.size() + 1), TomlDefault(row));
    }
  }
  return out;
}

}  // namespace mge
