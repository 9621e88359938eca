// SPDX-License-Identifier: Apache-2.0
// The commands and options of `mge` as plain rows: what help, the man page and completion are made of.
#pragma once

#include <string>
#include <vector>

#include "core/cli/command.h"

namespace mge::cli {

struct OptionRow {
  std::vector<std::string> names;  // "-o", "--output"; empty: an argument by its place
  std::string place;               // "MODEL": the name of such an argument
  std::string value;               // "FILE", "FOLDER", "TEXT"...; empty: a flag
  std::string allowed;             // "0 to 1024", or empty
  std::string doc;
  std::vector<std::string> choices;  // the values there are, where they are few
  bool required = false;
  bool repeats = false;
};

struct CommandRow {
  std::string path;  // "bench", "sdk new"; "" for mge itself, whose options every command takes
  std::string doc;
  std::vector<OptionRow> options;
  std::vector<CommandRow> commands;
};

CommandRow ReadOptionTable(const CLI::App& root);

// The row of "sdk new", or null.
const CommandRow* FindCommand(const CommandRow& root, const std::string& path);

struct ExitCode {
  int code;
  const char* meaning;
};
inline constexpr ExitCode kExitCodes[] = {
    {0, "ok"},
    {1, "other failure"},
    {2, "usage"},
    {3, "invalid model or input"},
    {4, "unsupported"},
    {5, "device or plugin"},
    {6, "memory"},
    {7, "file"},
    {8, "numbers differ"},
    {10, "incompatible backend"},
    {124, "timeout"},
    {130, "cancelled"},
};

inline constexpr const char* kExamples[] = {
    "mge demo",
    "mge zoo resnet50 -o rn50.onnx && mge bench rn50.onnx",
    "MGE_DEFAULT_DEVICE=cpu0 mge run rn50.onnx",
};

// Pages made of the table.
std::string ManPage(const CommandRow& root);  // troff, section 1
std::string BashCompletion(const CommandRow& root);
std::string ZshCompletion(const CommandRow& root);
std::string FishCompletion(const CommandRow& root);

}  // namespace mge::cli
