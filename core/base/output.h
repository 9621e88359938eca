// SPDX-License-Identifier: Apache-2.0
// The standard files of a command: a failed write to stdout is always reported.
#pragma once

namespace mge {

// Opens /dev/null on each standard descriptor (0, 1, 2) that is closed, in the wrong direction. No other file can then get
// the descriptor, and reading or writing it still fails.
void HoldStandardFiles();

// Flushes stdout and returns the exit code of a command whose result is `code`. If a write to stdout failed, prints an error
// to stderr and returns that error's exit code in place of 0.
int FlushOutput(int code);

}  // namespace mge
