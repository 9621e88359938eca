// SPDX-License-Identifier: Apache-2.0
#include "core/cli/option_table.h"

#include "CLI/CLI.hpp"

namespace mge::cli {
namespace {

// Splits "{a,b,c}" into a, b and c.
std::vector<std::string> Choices(const std::string& value) {
  std::vector<std::string> out;
  if (value.size() < 2 || value.front() != '{' || value.back() != '}') return out;
  for (size_t at = 1; at < value.size();) {
    size_t end = value.find_first_of(",}", at);
    out.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

OptionRow ReadOption(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (row.names.empty()) row.place = option.get_name(true);
  // CLI11's type name is a text such as "INT:0 to 1024": the type, then the allowed values.
  if (option.get_items_expected_max() > 0 && option.get_type_size_max() > 0) {
    row.value = option.get_type_name();
    if (size_t colon = row.value.find(':'); colon != std::string::npos) {
      row.allowed = row.value.substr(colon + 1);
      row.value.resize(colon);
    }
  }
  row.choices = Choices(row.value);
  row.usual = option.get_default_str();
  row.doc = option.get_description();
  row.required = option.get_required();
  row.repeats = option.get_items_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return row;
}

CommandRow ReadCommand(const CLI::App& app, const std::string& path) {
  CommandRow row = {path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options({})) {
    bool is_help = option == app.get_help_ptr();  // only the root's row has --help
    bool is_hidden = option->get_group().empty();
    if ((!is_help || path.empty()) && !is_hidden) row.options.push_back(ReadOption(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    row.commands.push_back(ReadCommand(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name()));
  }
  return row;
}

}  // namespace

CommandRow ReadOptionTable(const CLI::App& root) { return ReadCommand(root, ""); }

const CommandRow* FindCommand(const CommandRow& root, const std::string& path) {
  if (root.path == path) return &root;
  for (const CommandRow& command : root.commands) {
    if (const CommandRow* found = FindCommand(command, path)) return found;
  }
  return nullptr;
}

}  // namespace mge::cli
