// SPDX-License-Identifier: Apache-2.0
#include "core/worker/tool/entry.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "core/base/thread.h"
#include "core/process/child.h"
#include "core/worker/time_kernels.h"

namespace {

int Main(int argc, char** argv) {
  struct stat file = {};
  if (argc != 2 || std::string_view(argv[1]) != "time" || fstat(STDIN_FILENO, &file) != 0 || file.st_size <= 0) {
    std::fputs("mge-worker is an internal program of MGE; run `mge`\n", stderr);
    return 2;
  }
  const auto bytes = static_cast<size_t>(file.st_size);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
  if (data == MAP_FAILED) return std::perror("mge-worker: the request"), 1;
  const int code = mge::worker::TimeKernels({static_cast<const char*>(data), bytes}, mge::kReportFd);
  std::fflush(nullptr);
  _exit(code);  // the report is complete: the end of the backend is of no interest
}

}  // namespace

int mge_private_worker(int argc, char** argv) { return mge::CallOnLargeStack(Main, argc, argv); }
