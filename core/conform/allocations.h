// SPDX-License-Identifier: Apache-2.0
// Allocations that fail on demand: those that the backend makes in the thread of the kit that calls it. What its threads and
// the libraries of its driver allocate is left alone: no call answers for the former, and the latter are not under test.
//
// They are seen by what takes the place of operator new and malloc in a program: tool/allocator.cc. Without it there are
// none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/conform/thread_modes.h"

namespace mge::conform {

class Subject;

// Does the work again and again, with each of its allocations failing once, and with all from there on. The work calls the
// backend (Call, InBackend), leaves nothing behind, and hands errors up. Broken() unless every call answers MGE_OK or
// MGE_RESOURCE_EXHAUSTED with a text, nothing is lost, and the same work succeeds afterwards. NotOffered() if no allocation
// is seen. `seconds`: what it may take about; some of the allocations are left out where all take longer.
absl::Status SurvivesFailures(Subject& subject, const std::function<absl::Status()>& work, double seconds = 0.5);

// That `what` was answered with MGE_RESOURCE_EXHAUSTED after an allocation has failed, as it should.
absl::Status WithoutMemory(std::string_view what);

// Whether this program sees allocations.
bool AllocationsAreSeen();

// While it lives, allocations of the backend in this thread are counted, and the n-th fails, with `for_ever` all later ones
// as well; 0: none. One at a time.
class AllocationFailure {
 public:
  using Entering = std::function<void(std::string_view call)>;  // told of each call of the backend
  AllocationFailure(uint64_t n, bool for_ever, Entering entering);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  uint64_t seen() const { return seen_; }
  bool happened() const { return n_ && seen_ >= n_; }
  static bool Happened();  // of the one in this thread; false if there is none

 private:
  friend class Within;
  friend bool AllocationFails(const void*) noexcept;
  const uint64_t n_;
  const bool for_ever_;
  const Entering entering_;
  uint64_t seen_ = 0;
};

// While it lives, none fails in this thread and none is counted, nor of those that the host makes for the backend: for what
// has to be waited for.
class AllocationsSucceed {
 public:
  AllocationsSucceed();
  ~AllocationsSucceed();
  AllocationsSucceed(const AllocationsSucceed&) = delete;
  AllocationsSucceed& operator=(const AllocationsSucceed&) = delete;
  static bool Here();  // in this thread

 private:
  AllocationFailure* const spared_;
  const bool before_;
};

// Where this thread is, as long as it lives; in the backend with the name of the call, see calls.h, from which it comes back
// as it went, see thread_modes.h.
enum class Side { kKit, kBackend };
class Within {
 public:
  explicit Within(Side side, std::string_view call = {});
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const Side before_;
  const int place_;
  const std::string_view call_;
  const ThreadModes modes_;
};

// Calls f, which does nothing but call the backend.
template <typename F>
auto InBackend(std::string_view call, F&& f) {
  Within within(Side::kBackend, call);
  return f();
}

// Whose allocations are the backend's from now on: those that code of this library (a handle of dlopen) asks for, directly
// or through the libraries of C and C++.
void CountAllocationsOf(void* library);

// ---- for the allocator of the program

// Whether this allocation, asked for by the code at `caller`, is to fail.
bool AllocationFails(const void* caller) noexcept;
// An object was allocated (1) or freed (-1), by whomever.
void CountObject(int change) noexcept;

}  // namespace mge::conform
