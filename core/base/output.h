// SPDX-License-Identifier: Apache-2.0
// The standard files of a command: what it prints arrives, or it says that it did not.
#pragma once

namespace mge {

// Takes the number of a standard file that is closed, so that no other file is opened in its place. To use it still fails.
void HoldStandardFiles();

// The exit code of a command that ends with `code`. If something that was printed to stdout has not arrived, stderr says so,
// and 0 becomes the code of that error.
int FlushOutput(int code);

}  // namespace mge
