// SPDX-License-Identifier: Apache-2.0
#include "core/conform/process.h"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "fmt/format.h"

namespace mge::conform {
namespace {

int64_t EntriesOf(const char* folder) {
  std::error_code code;
  int64_t n = 0;
  for (auto it = std::filesystem::directory_iterator(folder, code); !code && it != std::filesystem::directory_iterator();
       it.increment(code))
    ++n;
  return n;
}

int64_t MappedBytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
#endif
}

}  // namespace

ProcessCounts ProcessCounts::Now() {
  struct mallinfo2 heap = mallinfo2();
  // mallinfo2() counts large blocks, which are mapped separately, in hblkhd.
  return {EntriesOf("/proc/self/task"), EntriesOf("/proc/self/fd"), static_cast<int64_t>(heap.uordblks + heap.hblkhd),
          MappedBytes()};
}

std::string ProcessCounts::MoreThan(const ProcessCounts& before) const {
  std::string out;
  auto add = [&](int64_t more, std::string_view what) {
    if (more > 0) out += fmt::format("{}{} more {}{}", out.empty() ? "" : ", ", more, what, more > 1 ? "s" : "");
  };
  add(threads - before.threads, "thread");
  add(files - before.files, "open file");
  return out;
}

}  // namespace mge::conform
