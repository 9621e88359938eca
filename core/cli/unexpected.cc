// SPDX-License-Identifier: Apache-2.0
#include "core/cli/unexpected.h"

#include <unistd.h>

#include <csignal>
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

// A backend may end the process. That cannot be undone, but where to look can be said.
void SayWhereToLook(int) {
  constexpr char kText[] =
      "mge: a fault in the process ends it. `mge doctor` tries every backend in a child and names one that is to blame; "
      "`mge sdk test FILE` runs every kernel of one in a child\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) return;  // nobody reads it
}

constexpr int kFaults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

void WatchFaults() {
  for (int signal : kFaults) {
    struct sigaction present = {}, ours = {};
    if (sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;  // a sanitizer's
    ours.sa_handler = SayWhereToLook;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);  // what it returns to then ends the process as without it
    sigaction(signal, &ours, nullptr);
  }
}

}  // namespace

void LeaveFaults() {
  for (int number : kFaults) {
    struct sigaction present = {};
    if (sigaction(number, nullptr, &present) == 0 && present.sa_handler == SayWhereToLook) signal(number, SIG_DFL);
  }
}

int RunGuarded(int (*body)(int argc, char** argv), int argc, char** argv) {
  std::set_terminate(Terminate);
  WatchFaults();
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
