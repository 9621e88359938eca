// SPDX-License-Identifier: Apache-2.0
// The end of a command that no command expects, such as one without memory: still an error with a text and an exit code.
#pragma once

namespace mge::cli {

// Calls body(argc, argv), and ends the process as documented whatever is thrown in it, even where nothing may be.
int RunGuarded(int (*body)(int argc, char** argv), int argc, char** argv);

// From now on a fault ends the process without a word: whoever started it says what there is to say.
void LeaveFaults();

}  // namespace mge::cli
