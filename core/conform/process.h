// SPDX-License-Identifier: Apache-2.0
// The resources of this process that a backend could leak.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace mge::conform {

// The counts at one moment.
struct ProcessCounts {
  int64_t threads = 0, files = 0;
  int64_t heap = 0;    // bytes
  int64_t mapped = 0;  // bytes of the address space; 0 with a sanitizer, because it keeps freed memory

  static ProcessCounts Now();
  // Returns the growth of threads and files, such as "2 more threads, 1 more open file", or "". Memory is not compared.
  std::string MoreThan(const ProcessCounts& before) const;
};

// Runs f in a new thread and waits for it. Blocks that malloc caches per thread count as in use until the thread ends.
template <typename F>
void InFreshThread(F&& f) {
  std::thread(std::forward<F>(f)).join();
}

}  // namespace mge::conform
