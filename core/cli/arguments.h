// SPDX-License-Identifier: Apache-2.0
// Declares the options and positional arguments of a sub-command.
//
// Why not CLI11 itself: its header takes two seconds to compile, in every file that includes it. Commands include this
// header. Only the files that read the whole command line include CLI11.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mge::cli {

// A declared option or positional argument. A handle; it is valid as long as its command.
class Argument {
 public:
  Argument Required();
  Argument ValueName(const std::string& name);          // the value's name in the help, such as "FILE"
  Argument Between(double least, double most);          // accepts numbers in [least, most] only; refuses NaN
  Argument OneOf(const std::vector<std::string>& all);  // accepts these words only
  Argument IsInput();                                   // a file that is read (FILE or NAME=FILE); "-" is standard input
  Argument Repeats();                                   // may be given several times, with one value each
  Argument Needs(Argument other);                       // is an error without `other`
  Argument Excludes(Argument other);                    // is an error together with `other`

 private:
  friend class Arguments;
  explicit Argument(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// The arguments of one command. A handle; it is valid as long as its command.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  // Declares an option ("--runs", "-o,--output") or a positional argument ("MODEL"). The value is stored in `to`, which must
  // live until the command line is parsed. Its value at this time is the default.
  Argument Add(const std::string& name, std::string& to, const std::string& doc);
  Argument Add(const std::string& name, std::vector<std::string>& to, const std::string& doc);
  Argument Add(const std::string& name, int& to, const std::string& doc);
  Argument Add(const std::string& name, int64_t& to, const std::string& doc);
  Argument Add(const std::string& name, uint64_t& to, const std::string& doc);
  Argument Add(const std::string& name, double& to, const std::string& doc);
  Argument Add(const std::string& name, std::optional<double>& to, const std::string& doc);
  Argument AddFlag(const std::string& name, bool& to, const std::string& doc);

  // Declares a sub-command of this command.
  Arguments AddCommand(const std::string& name, const std::string& doc);
  // Sets the number of sub-commands that must be given: at least `least` (0 or 1) and at most one.
  void TakesCommands(int least);
  bool Given() const;  // true if the parsed command line names this command

  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace mge::cli
