// SPDX-License-Identifier: Apache-2.0
// What `mge doctor` runs in a child process for one file: starts the backend and runs one operator on each of its devices.
#pragma once

#include <csignal>
#include <string>

#include "core/cli/command.h"

namespace mge::cli {

// Writes JSON objects to kReportFd, one a line, each before or after something that may kill or hang the process:
//   {"stage": "starting"}          what is tried next, from "starting" to "leaving the process"
//   {"plugin": {...}}              the file's row of "mge.plugins/1" after the start
//   {"on_demand": "virtual.devices=1"}  what was set so that there is a device
//   {"device": {"name", "class", "state", "troubled", "operator", "reason", "fix"}}
//   {"closed": true}               kReportFd was closed, and another way was left
// The exit code is 0 whatever was found. Where no way was left, UnheardSignal() ends the process.
inline int UnheardSignal() { return SIGRTMAX; }
int ProbeBackend(const Globals& globals, const std::string& file);

}  // namespace mge::cli
