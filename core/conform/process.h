// SPDX-License-Identifier: Apache-2.0
// What a process holds that a backend could leave behind.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace mge::conform {

struct ProcessCounts {
  int64_t threads = 0, files = 0;
  int64_t heap = 0;    // bytes
  int64_t mapped = 0;  // bytes of the address space; 0 with a sanitizer, which keeps what is freed

  static ProcessCounts Now();
  // "2 more threads, 1 more open file", or ""; memory is not looked at.
  std::string MoreThan(const ProcessCounts& before) const;
};

// Runs f in a thread of its own: blocks that malloc keeps for a thread count as in use until the thread ends.
template <typename F>
void InFreshThread(F&& f) {
  std::thread(std::forward<F>(f)).join();
}

}  // namespace mge::conform
