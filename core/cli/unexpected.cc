// SPDX-License-Identifier: Apache-2.0
#include "core/cli/unexpected.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

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

// A record of core/plugin/start_record.h: the backend that a thread of this process is starting. All functions of it may be
// called in a signal handler.
class StartingBackend {
 public:
  // Finds the record of this thread, or the only one if `any` is true. Returns whether there is one.
  bool Find(bool any) {
    int found = 0;
    for (int fd = 3; fd < kFds; ++fd) {
      char path[] = "/proc/self/fd/000", target[32] = {};
      for (int i = 0, rest = fd; i < 3; ++i, rest /= 10) path[sizeof(path) - 2 - i] = static_cast<char>('0' + rest % 10);
      // The kernel knows no leading zeros.
      if (readlink(fd < 10 ? Shift(path, 2) : fd < 100 ? Shift(path, 1) : path, target, sizeof(target) - 1) <= 0) continue;
      if (std::strncmp(target, "/memfd:mge-start ", 17) != 0) continue;
      const ssize_t size = pread(fd, text_, sizeof(text_) - 1, 0);
      if (size <= 0) continue;
      text_[size] = '\0';
      size_ = static_cast<size_t>(size);
      ++found;
      if (std::atoi(text_) == gettid()) return true;
    }
    return any && found == 1;
  }
  std::string_view Name() const { return Line(3); }
  std::string_view Path() const { return Line(4); }
  // Writes the file that makes other processes refuse this build. Returns whether it did.
  bool Quarantine() {
    const std::string_view path = Line(1), content = std::string_view(text_, size_).substr(StartOf(2));
    if (path.empty() || path.size() >= kPathBytes) return false;
    char copy[kPathBytes] = {};
    path.copy(copy, path.size());
    for (char* at = std::strchr(copy + 1, '/'); at; at = std::strchr(at + 1, '/')) {
      *at = '\0';
      mkdir(copy, 0700);
      *at = '/';
    }
    const int fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  }

 private:
  static constexpr int kFds = 256;
  static constexpr size_t kPathBytes = 4096;
  // Removes `count` zeros in front of the number.
  static char* Shift(char* path, size_t count) {
    char* number = path + std::strlen(path) - 3;
    std::memmove(number, number + count, 4 - count);
    return path;
  }
  size_t StartOf(int line) const {
    size_t at = 0;
    for (const std::string_view text(text_, size_); line > 0 && at != text.npos; --line) at = text.find('\n', at) + 1;
    return at;
  }
  std::string_view Line(int line) const {
    const std::string_view rest = std::string_view(text_, size_).substr(StartOf(line));
    return rest.substr(0, rest.find('\n'));
  }
  char text_[3 * kPathBytes];
  size_t size_ = 0;
};

// Says which backend a thread was starting when the process ended, and puts it into quarantine. Returns whether one was. `any`:
// also if another thread was.
bool SayWhatStarted(bool any) {
  StartingBackend backend;
  if (!backend.Find(any)) return false;
  const bool kept = backend.Quarantine();
  const std::string_view parts[] = {"mge: error[E0503] backend '",
                                    backend.Name(),
                                    "' (",
                                    backend.Path(),
                                    ") ended the process while it was being started\n",
                                    kept ? "  what:  it is in quarantine from now on, and other backends work; to try it "
                                           "again: mge doctor --end-quarantine "
                                         : "  fix:   leave it out: set MGE_PLUGIN_SKIP=",
                                    backend.Name(),
                                    "\n"};
  for (std::string_view part : parts) {
    if (write(STDERR_FILENO, part.data(), part.size()) < 0) break;  // nobody reads it
  }
  return true;
}

bool leave_faults = false;

// The exit handler: a backend may have called exit() in its start. A start that goes on in another thread is not the cause.
void SayIfStarting() {
  if (leave_faults || !SayWhatStarted(/*any=*/false)) return;
  std::fflush(nullptr);
  _exit(ExitCode(ErrorKind::kDevice));
}

// The handler of fault signals. A backend may have caused the fault, so it names the commands that find the backend.
void SayWhereToLook(int) {
  if (SayWhatStarted(/*any=*/true)) return;
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
  leave_faults = true;
  for (int number : kFaults) {
    struct sigaction present = {};
    if (sigaction(number, nullptr, &present) == 0 && present.sa_handler == SayWhereToLook) signal(number, SIG_DFL);
  }
}

int RunGuarded(int (*body)(int argc, char** argv), int argc, char** argv) {
  std::set_terminate(Terminate);
  WatchFaults();
  std::atexit(SayIfStarting);
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
