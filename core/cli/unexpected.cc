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

// The terminate handler. It is called if a destructor that needs memory (such as that of a JSON value) throws.
[[noreturn]] void Terminate() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    SayNoMemory();
    _exit(ExitCode(ErrorKind::kMemory));
  } catch (...) {  // a defect of MGE: abort with a core dump
  }
  std::abort();
}

// The handler of fault signals. A backend may have caused the fault, so it names the commands that find the backend.
void SayWhereToLook(int) {
  constexpr char kText[] =
      "mge: a fault ended the process. `mge doctor` tests every backend in a child process and names a faulty one; "
      "`mge sdk test FILE` tests every kernel of a backend in child processes\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) return;  // nobody reads it
}

constexpr int kFaults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

void WatchFaults() {
  for (int signal : kFaults) {
    struct sigaction present = {}, ours = {};
    if (sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;  // a sanitizer has a handler
    ours.sa_handler = SayWhereToLook;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);  // after the handler, the fault occurs again and ends the process
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
  return ExitCode(KindOf(status));
}

}  // namespace mge::cli
