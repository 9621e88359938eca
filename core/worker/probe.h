// SPDX-License-Identifier: Apache-2.0
// The side of mge-worker in `mge doctor`: starts a backend and runs one operator on each of its devices.
//
// The request is a JSON object in CBOR: the backend's `file`, the `plugin_directories` to search, `settings` and
// `config_files` of the command line, and the `operators` in the order in which they are tried. plugin.skip must name all
// other backends. Each operator has a `name`, a `model` (ONNX bytes) with one or more inputs float32[2,2] that are all given
// `input`, and the `expected` output, which is compared exactly.
#pragma once

#include <string_view>

namespace mge::worker {

inline constexpr std::string_view kFirstStage = "starting";            // a failure in this stage leads to quarantine
inline constexpr std::string_view kLastStage = "leaving the process";  // static objects and exit handlers run after it

// Tests the backend. Before each action that may kill or hang the process, writes one line to `report`. It is a JSON object
// with the field "stage", the next action, and those fields of the file's row of "mge.doctor/1" that are known. Then exits
// with code 0, whatever the result.
[[noreturn]] void TestBackend(std::string_view request, int report);

}  // namespace mge::worker
