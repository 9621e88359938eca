// SPDX-License-Identifier: Apache-2.0
// The test of one backend that `mge doctor` runs in a child process: starts the backend, runs one operator on each device.
#pragma once

#include <string>
#include <string_view>

#include "core/cli/command.h"

namespace mge::cli {

inline constexpr std::string_view kFirstStage = "starting";            // a failure in this stage leads to quarantine
inline constexpr std::string_view kLastStage = "leaving the process";  // static objects and exit handlers run after it

// Tests the file; plugin.skip must name all other backends. Before each action that may kill or hang the process, writes one
// line to `report`. It is a JSON object with the field "stage", the next action, and those fields of the file's row of
// "mge.doctor/1" that are known. Then exits with code 0, whatever the result.
[[noreturn]] void TestBackend(const Globals& globals, const std::string& file, int report);

}  // namespace mge::cli
