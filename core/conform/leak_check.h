// SPDX-License-Identifier: Apache-2.0
// Leak measurement: the memory that each round of some work loses.
//
// Algorithm: measure the growth of single rounds, in several series. A leak grows in nearly every round of every series. A
// cache stops growing, and a driver that keeps blocks at random keeps none in some rounds. Other programs may use the
// device's memory: what they take while this process waits is subtracted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/conform/check.h"

namespace mge::conform {

// The resources of this process that a backend could leak, counted at one moment.
struct ProcessCounts {
  int64_t threads = 0, files = 0;
  int64_t heap = 0;    // bytes
  int64_t mapped = 0;  // bytes of the address space; 0 with a sanitizer, because it keeps freed memory

  static ProcessCounts Now();
  // Returns "4 threads and 9 open files (before: 2 and 9)" if one of them has grown, else "". Memory is not compared.
  std::string MoreThan(const ProcessCounts& before) const;
};

// Bytes lost per round; 0 if nothing is lost.
struct Leaks {
  int64_t heap = 0, device = 0;
  int64_t mapped = 0;  // address space of the process; set only if `heap` is 0
};

// Measures the leaks of `round`. `device_used` returns the used bytes of the device, by all programs. Throws what a round
// throws. No other code of the process may allocate memory meanwhile.
Leaks MeasureLeaks(const std::function<void()>& round, const std::function<int64_t()>& device_used);

// A part of the work, which includes the parts before it.
struct LeakPart {
  const char* slots;  // the slots that it adds to the part before it
  std::function<void()> round;
};
// Measures the parts, the last of which is the whole work. Returns "every WORK loses N bytes of the heap, in SLOTS", with
// the first part that loses something, or "" if the whole work loses nothing.
std::string FindLeak(std::string_view work, const std::vector<LeakPart>& parts, const std::function<int64_t()>& device_used);

}  // namespace mge::conform
