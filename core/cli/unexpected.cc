// SPDX-License-Identifier: Apache-2.0
#include "core/cli/unexpected.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/base/exception.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

void SayNoMemory() {
  constexpr char kText[] = "mge: error[E0601] the process has no host memory left\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) return;  // nobody reads it
}

// A destructor that needs memory (those of JSON values do) cannot throw: the library ends the process by this.
[[noreturn]] void Terminate() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    SayNoMemory();
    _exit(static_cast<int>(ErrorKind::kMemory));
  } catch (...) {  // a fault of ours: the core dump shows where
  }
  std::abort();
}

}  // namespace

int RunGuarded(int (*body)(int argc, char** argv), int argc, char** argv) {
  std::set_terminate(Terminate);
  absl::Status status;
  try {
    return body(argc, argv);
  } catch (...) {
    status = StatusOfException();
  }
  try {
    std::fputs(fmt::format("mge: {}\n", FormatError(status)).c_str(), stderr);
  } catch (const std::bad_alloc&) {
    SayNoMemory();
  }
  return static_cast<int>(KindOf(status));
}

}  // namespace mge::cli
