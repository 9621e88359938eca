// SPDX-License-Identifier: Apache-2.0
#include "core/conform/backend_call.h"

#include <sys/mman.h>

#include <atomic>
#include <cfenv>
#include <mutex>
#include <set>

#include "core/conform/allocations.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mge::conform {
namespace {

constexpr int kPlaces = 16;                   // largest number of recorded calls at a time
constexpr size_t kLongestRecordedName = 100;  // longest recorded name in bytes
constexpr uint32_t kSseFlags = 0x3f;          // exception flags of MXCSR, which any computation may set

constinit thread_local bool t_in_backend = false;
std::mutex g_mutex;
std::string g_change;

ThreadModes ModesNow() {
  ThreadModes out;
  out.rounding = std::fegetround();
#if defined(__x86_64__)
  out.sse = _mm_getcsr() & ~kSseFlags;
  __asm__ volatile("fnstcw %0" : "=m"(out.x87));
#endif
  return out;
}

void Restore(const ThreadModes& modes) {
  std::fesetround(modes.rounding);
#if defined(__x86_64__)
  _mm_setcsr(modes.sse | (_mm_getcsr() & kSseFlags));
  __asm__ volatile("fldcw %0" : : "m"(modes.x87));
#endif
}

}  // namespace

struct CallBoard::Places {
  struct Place {
    std::atomic<bool> taken;
    char call[kLongestRecordedName + 1];
  } places[kPlaces];
};

CallBoard::Places* CallBoard::served_ = nullptr;

CallBoard::CallBoard() {
  void* memory = mmap(nullptr, sizeof(Places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  places_ = memory == MAP_FAILED ? nullptr : static_cast<Places*>(memory);
}

CallBoard::~CallBoard() {
  if (places_) munmap(places_, sizeof(Places));
}

void CallBoard::Serve() const { served_ = places_; }

std::string CallBoard::Calls() const {
  std::set<std::string> calls;
  for (int i = 0; places_ && i < kPlaces; ++i) {
    if (places_->places[i].taken) calls.insert(places_->places[i].call);
  }
  return fmt::format("{}", fmt::join(calls, ", "));
}

Within::Within(std::string_view call) : before_(std::exchange(t_in_backend, true)), call_(call), modes_(ModesNow()) {
  CallBoard::Places* const board = CallBoard::served_;
  for (int i = 0; board && i < kPlaces && place_ < 0; ++i) {
    auto& [taken, name] = board->places[i];
    if (taken.exchange(true)) continue;
    name[call.copy(name, kLongestRecordedName)] = 0;
    place_ = i;
  }
  AllocationFailure::Enter(call);
}

Within::~Within() {
  t_in_backend = before_;
  if (place_ >= 0) CallBoard::served_->places[place_].taken = false;
  const ThreadModes now = ModesNow();
  if (now == modes_) return;
  Restore(modes_);
  std::lock_guard lock(g_mutex);
  if (!g_change.empty()) return;
  g_change = fmt::format(
      "{} leaves the calling thread with other floating-point modes (rounding {}, MXCSR {:#x}, x87 {:#x}; "
      "before: {}, {:#x}, {:#x}); put them back before it returns",
      call_, now.rounding, now.sse, now.x87, modes_.rounding, modes_.sse, modes_.x87);
}

bool InBackendNow() { return t_in_backend; }

std::string TakeModeChange() {
  std::lock_guard lock(g_mutex);
  return std::exchange(g_change, {});
}

}  // namespace mge::conform
