// SPDX-License-Identifier: Apache-2.0
// mge-worker: runs code of backends that may crash or hang, for a process that must not. It is installed beside the folder
// of the backends and is not for users. Its arguments are the task and the id of the process that executed it; stdin is a
// file with the request; the report goes to the descriptor kReportFd.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/process/child.h"
#include "core/worker/probe.h"
#include "core/worker/time_kernels.h"

namespace {

// Returns the bytes of stdin, which is a file. They stay valid until the process ends.
std::string_view Request() {
  struct stat file = {};
  if (fstat(STDIN_FILENO, &file) != 0 || file.st_size <= 0) return {};
  const size_t bytes = static_cast<size_t>(file.st_size);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
  return data == MAP_FAILED ? std::string_view() : std::string_view(static_cast<const char*>(data), bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc == 3 ? argv[1] : "";
  if (task != "time" && task != "probe") {
    std::fputs("mge-worker is an internal program of MGE; run `mge`\n", stderr);
    return 2;
  }
  mge::EndWithParent(static_cast<pid_t>(std::atol(argv[2])));
  if (task == "probe") mge::worker::TestBackend(Request(), mge::kReportFd);
  const int code = mge::worker::TimeKernels(Request(), mge::kReportFd);
  std::fflush(nullptr);
  _exit(code);  // the report is complete: the end of the backend is of no interest
}
