// SPDX-License-Identifier: Apache-2.0
// Handling of unexpected ends of a command, such as missing memory: the user gets an error text and a documented exit code.
#pragma once

namespace mge::cli {

// Calls body(argc, argv) and returns the exit code. Reports an exception that body throws. If missing memory causes a call
// of std::terminate, reports that and exits. Installs signal handlers that print a hint if a fault ends the process.
int RunGuarded(int (*body)(int argc, char** argv), int argc, char** argv);

// Removes the signal handlers of RunGuarded: a fault then ends the process without a message. For child processes whose
// parent reports the fault.
void LeaveFaults();

}  // namespace mge::cli
