// SPDX-License-Identifier: Apache-2.0
#include "core/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>

#include "fmt/format.h"

namespace mge::cli {
namespace {

enum class Coloring { kAuto, kAlways, kNever } coloring = Coloring::kAuto;

const char* const* all_variables = nullptr;

// Returns the value of a variable; "" if it is not set.
std::string_view Variable(std::string_view name) {
  for (const char* const* at = all_variables; at && *at; ++at) {
    const std::string_view text = *at;
    if (text.size() > name.size() && text.substr(0, name.size()) == name && text[name.size()] == '=') {
      return text.substr(name.size() + 1);
    }
  }
  return {};
}

bool IsColored(std::FILE* file) {
  if (coloring != Coloring::kAuto) return coloring == Coloring::kAlways;
  if (!Variable("NO_COLOR").empty() || Variable("TERM") == "dumb") return false;
  // mpirun gives each process a terminal, wherever its own output goes.
  if (!Variable("OMPI_COMM_WORLD_SIZE").empty()) return false;
  return isatty(fileno(file)) != 0;
}

}  // namespace

void SetVariables(const char* const* variables) { all_variables = variables; }

void SetColor(std::string_view when) {
  coloring = when == "always" ? Coloring::kAlways : when == "never" ? Coloring::kNever : Coloring::kAuto;
}

std::string Styled(std::FILE* file, Style style, std::string_view text) {
  if (!IsColored(file)) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", style == Style::kRed ? "1;31" : "1", text);
}

size_t OutputColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
}

}  // namespace mge::cli
