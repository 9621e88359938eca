// SPDX-License-Identifier: Apache-2.0
// The commands and options of `mge` as plain rows, from which help, the man page and completion are generated.
#pragma once

#include <string>
#include <vector>

#include "core/cli/command.h"

namespace mge::cli {

struct OptionRow {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string place;               // the name of a positional argument, such as "MODEL"
  std::string value;               // "FILE", "FOLDER", "TEXT"...; empty for a flag
  std::string allowed;             // the allowed values, such as "0 to 1024"; may be empty
  std::string usual;               // the default value; may be empty
  std::string doc;
  std::vector<std::string> choices;  // all allowed values, if there are few
  bool required = false;
  bool repeats = false;
};

struct CommandRow {
  std::string path;  // "bench", "sdk new"; "" for mge itself, whose options apply to every command
  std::string doc;
  std::vector<OptionRow> options;
  std::vector<CommandRow> commands;
  std::vector<std::string> settings = {};  // in the row of mge itself: the keys that completion offers
};

CommandRow ReadOptionTable(const CLI::App& root);

// Returns the row of a command such as "sdk new", or null if there is none.
const CommandRow* FindCommand(const CommandRow& root, const std::string& path);

inline constexpr const char* kExamples[] = {
    "mge demo",
    "mge zoo resnet50 -o rn50.onnx && mge bench rn50.onnx",
    "MGE_DEFAULT_DEVICE=cpu0 mge run rn50.onnx",
};

// Pages that are generated from the table.
std::string ManPage(const CommandRow& root);  // troff, section 1
std::string BashCompletion(const CommandRow& root);
std::string ZshCompletion(const CommandRow& root);
std::string FishCompletion(const CommandRow& root);

}  // namespace mge::cli
