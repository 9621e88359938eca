// SPDX-License-Identifier: Apache-2.0
#include "core/conform/allocations.h"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "core/conform/backend_under_test.h"

namespace mge::conform {
namespace {

constinit thread_local AllocationFailure* t_failure = nullptr;
constinit std::atomic<int64_t> g_objects{0};
constinit std::atomic<bool> g_seen{false};  // whether the program's allocator calls AllocationFails()
constinit const link_map* g_backend = nullptr;
constinit const link_map* g_languages[2] = {};  // the libraries of C++ and C

const link_map* LibraryOf(const void* code) {
  dl_find_object found;
  return _dl_find_object(const_cast<void*>(code), &found) == 0 ? found.dlfo_link_map : nullptr;
}

bool IsOfLanguage(const link_map* library) {
  return std::find(std::begin(g_languages), std::end(g_languages), library) != std::end(g_languages);
}

// Returns the library that requests memory: that of `caller`, or the first caller outside of the C and C++ libraries.
const link_map* AskingLibrary(const void* caller) {
  struct Walk {
    const void* caller;
    const link_map* library;
    bool begun = false;
  } walk = {caller, LibraryOf(caller)};
  if (!IsOfLanguage(walk.library)) return walk.library;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* self) {
        Walk& w = *static_cast<Walk*>(self);
        const void* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
        w.begun |= code == w.caller;
        if (!w.begun) return _URC_NO_REASON;
        w.library = LibraryOf(code);
        return IsOfLanguage(w.library) ? _URC_NO_REASON : _URC_NORMAL_STOP;
      },
      &walk);
  return walk.library;
}

// Runs the work once with failing allocation n and checks its status. Does not look for leaks. Returns whether allocation n
// was reached.
bool FailOnce(BackendUnderTest& tested, const std::function<void()>& work, uint64_t n, std::string_view later) {
  tested.At("allocation {}{} fails", n, later);
  AllocationFailure failure(n, !later.empty());
  const absl::Status status = StatusOf(work);
  if (!status.ok() && !(failure.happened() && absl::IsResourceExhausted(status)))
    Broken("if allocation {}{} fails: {}", n, later, Std(status.message()));
  return failure.happened();
}

// Runs the work with failing allocation n until no object is left behind. Returns whether allocation n was reached.
bool Survives(BackendUnderTest& tested, const std::function<void()>& work, uint64_t n, std::string_view later) {
  constexpr int kRounds = 64;  // a cache grows once and may shrink again, and a leak grows in every round
  for (int i = 0; i < kRounds; ++i) {
    const int64_t before = g_objects.load();
    if (!FailOnce(tested, work, n, later) && i == 0) return false;
    tested.At("the same again, after allocation {}{} fails", n, later);
    if (absl::Status status = StatusOf(work); !status.ok())
      Broken("with memory, after failed allocations: {}", Std(status.message()));
    if (g_objects.load() <= before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a thread may be about to free something
  }
  Broken("memory is lost each time allocation {}{} fails", n, later);
}

}  // namespace

AllocationFailure::AllocationFailure(uint64_t n, bool for_ever)
    : n_(n), for_ever_(for_ever), outer_(std::exchange(t_failure, this)) {}
AllocationFailure::~AllocationFailure() { t_failure = outer_; }
bool AllocationsAreSeen() { return g_seen; }
bool AllocationFailure::Happened() { return t_failure && t_failure->happened(); }

bool AllocationFailure::Refuses() noexcept {
  if (!InBackendNow() || !t_failure) return false;
  const uint64_t n = ++t_failure->seen_;
  return t_failure->n_ && (n == t_failure->n_ || (t_failure->for_ever_ && n > t_failure->n_));
}

bool AllocationFailure::Refuses(const void* caller) noexcept {
  if (!InBackendNow() || !t_failure) return false;
  if (AskingLibrary(caller) == g_backend) return Refuses();
  ++t_failure->in_libraries_;
  return false;
}

void CountAllocationsOf(void* library) {
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  g_backend = map;
  g_languages[0] = LibraryOf(reinterpret_cast<const void*>(&std::set_new_handler));
  g_languages[1] = LibraryOf(reinterpret_cast<const void*>(&std::getenv));
}

bool AllocationFails(const void* caller) noexcept {
  if (!g_seen.load(std::memory_order_relaxed)) g_seen = true;
  return AllocationFailure::Refuses(caller);
}

void CountObject(int change) noexcept { g_objects.fetch_add(change, std::memory_order_relaxed); }

void SurvivesFailures(BackendUnderTest& tested, const std::function<void()>& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  // Many objects are created only at the first use. Lets each allocation of the first use fail before any of them is
  // complete.
  Clock::time_point begin = Clock::now();
  auto gone = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  uint64_t first = 1;
  while (FailOnce(tested, work, first, "") && gone() < seconds / 4) ++first;
  begin = Clock::now();
  uint64_t count = 0;
  {
    AllocationFailure none;
    work();
    count = none.seen();
  }
  // Skips allocations if there is not enough time for all: each takes about four times the time of the work.
  const auto fit = static_cast<uint64_t>(std::clamp(seconds / (4 * gone()), 8.0, 1e9));
  const uint64_t step = count / fit + 1;
  for (uint64_t n = 1; Survives(tested, work, n, "") && Survives(tested, work, n, " and every later one"); n += step) {
  }
  // The requests to the host, for memory and slabs, were refused. That does not show what the other allocations do.
  if (!AllocationsAreSeen()) NotOffered("this program does not see allocations");
  if (count == 0 && first == 1) NotOffered("it takes no memory here, or none that can be seen");
}

}  // namespace mge::conform
