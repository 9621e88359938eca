// SPDX-License-Identifier: Apache-2.0
// Leak measurement: the memory that each round of some work loses.
//
// Algorithm: run some rounds to fill caches. Then measure the growth of several spans of rounds and take the smallest one: a
// cache grows once, a leak grows equally in every span. For device memory, which other programs may use, compare longer
// spans with shorter ones. The use of others grows with time, a leak grows with the rounds. A leak must show again in six
// further series of rounds, in nearly every round of each: a driver may keep blocks at random.
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
  // Returns the growth of threads and files, such as "2 more threads, 1 more open file", or "". Memory is not compared.
  std::string MoreThan(const ProcessCounts& before) const;
};

// Bytes lost per round; 0 if nothing is lost, or not in every span.
struct Leaks {
  int64_t heap = 0, device = 0;
  int64_t mapped = 0;  // address space of the process; set only if `heap` is 0
};

// The work to measure.
struct LeakCheck {
  int first = 1;   // number of rounds before the measurement
  int rounds = 1;  // number of rounds per span
  std::function<void()> round;
  std::function<void()> began;           // called between the first rounds and the measurement
  std::function<int64_t()> device_used;  // returns the used bytes of the device, by all programs
};

// Measures the leaks, which are none unless they repeat. Throws what a round throws. No other code of the process
// may allocate memory meanwhile.
Leaks MeasureLeaks(const LeakCheck& plan);

// A part of the work, which includes the parts before it.
struct LeakPart {
  const char* slots;  // the slots that it adds to the part before it
  std::function<void()> round;
};
// Measures the parts, the last of which is the whole work. Returns "every ROUND loses N bytes of the heap, in SLOTS", with
// the first part that loses something, or "" if the whole work loses nothing.
std::string FindLeak(const LeakCheck& plan, std::string_view round, const std::vector<LeakPart>& parts);

}  // namespace mge::conform
