// SPDX-License-Identifier: Apache-2.0
// Allocation failures: makes allocations of the backend fail, and checks that the backend reports the error and recovers.
//
// Why: a backend that crashes or leaks when memory runs out ends or degrades the user's process, and no normal test shows
// it.
//
// Algorithm (SurvivesFailures): run the work with its n-th allocation failing, then with all allocations from the n-th on
// failing, for n = 1, 2, ... After each failure run the same work with memory, and compare the number of live objects.
// A failure is repeated before it counts as a leak, because a cache may be filled once.
//
// Only allocations that the backend itself makes in the kit's calling thread fail. Allocations of its own threads do not
// fail, because no call could report them. Allocations of the driver's libraries do not fail, because they are not under
// test. For this, a program must link tool/allocator.cc, which replaces malloc. In a program without it, only the
// backend's requests to the host fail: those for memory (mge_host.allocate) and those of its pool for slabs. SQLite's
// out-of-memory tests use the same method.
#pragma once

#include <cstdint>
#include <functional>

#include "core/conform/backend_call.h"

namespace mge::conform {

class BackendUnderTest;

// Repeats the work with failing allocations (see above). The work must call the backend through Call() or InBackend(), leave
// no object behind, and throw errors. Throws Broken() unless every call returns MGE_OK, or MGE_RESOURCE_EXHAUSTED with a
// text, nothing leaks, and the same work succeeds afterwards. Throws NotOffered() at the end if no allocation is seen.
// `seconds` is the approximate time limit; if all allocations would take longer, some are skipped.
void SurvivesFailures(BackendUnderTest& tested, const std::function<void()>& work, double seconds = 0.5);

// Returns whether this program sees allocations.
bool AllocationsAreSeen();

// A scope in which the backend's allocations in this thread are counted and the n-th fails. With `for_ever` all later ones
// fail too. If `n` is 0, none fails, also of those that the host makes for the backend. An inner scope replaces the outer
// one until it ends; an inner one with `n` 0 is used while enqueued work is waited for.
class AllocationFailure {
 public:
  explicit AllocationFailure(uint64_t n = 0, bool for_ever = false);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  uint64_t seen() const { return seen_; }
  uint64_t seen_in_libraries() const { return in_libraries_; }  // those of the libraries that the backend calls
  bool happened() const { return n_ && seen_ >= n_; }
  static bool Happened();  // happened() of this thread's object; false if there is none
  // Counts a request of the backend for memory of the host. Returns whether it must fail.
  static bool Refuses() noexcept;
  // Counts a request of the program for memory. Returns whether it is one of the backend that must fail.
  static bool Refuses(const void* caller) noexcept;

 private:
  const uint64_t n_;
  const bool for_ever_;
  AllocationFailure* const outer_;
  uint64_t seen_ = 0, in_libraries_ = 0;
};

// Sets the library (a handle of dlopen) whose allocations count as the backend's: those that its code requests directly or
// through the C and C++ libraries.
void CountAllocationsOf(void* library);

// ---- functions for the allocator of the program

// Returns whether an allocation that the code at `caller` requests must fail.
bool AllocationFails(const void* caller) noexcept;
// Counts an object that was allocated (1) or freed (-1) by any code of the process.
void CountObject(int change) noexcept;

}  // namespace mge::conform
