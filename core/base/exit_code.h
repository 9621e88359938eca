// SPDX-License-Identifier: Apache-2.0
// The exit codes of the `mge` command, one row each.
#pragma once

#include <string_view>

namespace mge {

// ROW(name, code, meaning). `mge --help` and the man page list the codes with their meanings.
#define MGE_EXIT_CODES(ROW)                  \
  ROW(kNone, 0, "ok")                        \
  ROW(kOther, 1, "other failure")            \
  ROW(kUsage, 2, "usage")                    \
  ROW(kInvalid, 3, "invalid model or input") \
  ROW(kUnsupported, 4, "unsupported")        \
  ROW(kDevice, 5, "device or plugin")        \
  ROW(kMemory, 6, "memory")                  \
  ROW(kIo, 7, "file")                        \
  ROW(kMismatch, 8, "numbers differ")        \
  ROW(kAbi, 10, "incompatible backend")      \
  ROW(kTimeout, 124, "timeout")              \
  ROW(kInterrupted, 130, "cancelled")

// The kind of an error. The value is the exit code.
enum class ErrorKind : int {
#define MGE_ROW(name, code, meaning) name = code,
  MGE_EXIT_CODES(MGE_ROW)
#undef MGE_ROW
};

constexpr int ExitCode(ErrorKind kind) { return static_cast<int>(kind); }

struct ExitCodeRow {
  int code;
  std::string_view meaning;
};

// All exit codes, in ascending order.
inline constexpr ExitCodeRow kExitCodes[] = {
#define MGE_ROW(name, code, meaning) {code, meaning},
    MGE_EXIT_CODES(MGE_ROW)
#undef MGE_ROW
};

}  // namespace mge
