// SPDX-License-Identifier: Apache-2.0
#include "core/cli/arguments.h"

#include "CLI/CLI.hpp"
#include "core/cli/common.h"
#include "core/cli/input_path.h"
#include "fmt/format.h"

namespace mge::cli {

Argument Argument::Required() { return Argument(option_->required()); }
Argument Argument::ValueName(const std::string& name) { return Argument(option_->type_name(name)); }
Argument Argument::Repeats() { return Argument(option_->take_all()->allow_extra_args(false)); }
Argument Argument::Needs(Argument other) { return Argument(option_->needs(other.option_)); }
Argument Argument::Excludes(Argument other) { return Argument(option_->excludes(other.option_)); }

Argument Argument::IsInput() {
  auto reopenable = [](std::string& text) -> std::string {
    text = ReopenableValue(text);
    return {};
  };
  return Argument(option_->transform(CLI::Validator(reopenable, "")));
}

Argument Argument::OneOf(const std::vector<std::string>& all) {
  return Argument(option_->check(CLI::Validator(CLI::IsMember(all)).description("")));
}

// CLI::Range is not used: it accepts "nan", and reports a text that is not a number as out of range.
Argument Argument::Between(double least, double most) {
  auto check = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value)) return fmt::format("'{}' is not a number", Escape(text));
    if (value >= least && value <= most) return {};  // false for NaN
    return fmt::format("{} is not in {} to {}", text, least, most);
  };
  return Argument(option_->check(CLI::Validator(check, fmt::format("{} to {}", least, most))));
}

Argument Arguments::Add(const std::string& name, std::string& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc)->capture_default_str());
}
Argument Arguments::Add(const std::string& name, std::vector<std::string>& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc));
}
Argument Arguments::Add(const std::string& name, int& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc)->capture_default_str());
}
Argument Arguments::Add(const std::string& name, int64_t& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc)->capture_default_str());
}
Argument Arguments::Add(const std::string& name, uint64_t& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc)->capture_default_str());
}
Argument Arguments::Add(const std::string& name, double& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc)->capture_default_str());
}
Argument Arguments::Add(const std::string& name, std::optional<double>& to, const std::string& doc) {
  return Argument(app_->add_option(name, to, doc));
}
Argument Arguments::AddFlag(const std::string& name, bool& to, const std::string& doc) {
  return Argument(app_->add_flag(name, to, doc));
}

Arguments Arguments::AddCommand(const std::string& name, const std::string& doc) {
  return Arguments(*app_->add_subcommand(name, doc));
}
void Arguments::TakesCommands(int least) { app_->require_subcommand(static_cast<size_t>(least), 1); }
bool Arguments::Given() const { return app_->parsed(); }

}  // namespace mge::cli
