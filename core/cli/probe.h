// SPDX-License-Identifier: Apache-2.0
// The test of one backend's file that `mge doctor` runs in a child process: starts the backend and runs one operator on each
// of its devices.
#pragma once

#include <csignal>
#include <string>

#include "core/cli/command.h"

namespace mge::cli {

// Writes JSON objects to kReportFd, one per line, before and after each action that may kill or hang the process:
//   {"stage": "starting"}          the next action, from "starting" to "leaving the process"
//   {"plugin": {...}}              the file's row of "mge.plugins/1" after the start
//   {"on_demand": "virtual.devices=1"}  the setting that was changed to create a device
//   {"device": {"name", "class", "state", "troubled", "operator", "reason", "fix"}}
//   {"closed": true}               kReportFd was closed; the spare descriptor is used
// Returns the exit code 0, whatever the result. If both descriptors were closed, UnheardSignal() ends the process.
inline int UnheardSignal() { return SIGRTMAX; }
int ProbeBackend(const Globals& globals, const std::string& file);

}  // namespace mge::cli
