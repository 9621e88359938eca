// SPDX-License-Identifier: Apache-2.0
#include "core/conform/thread_modes.h"

#include <cfenv>
#include <mutex>
#include <utility>

#include "fmt/format.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mge::conform {
namespace {

constexpr uint32_t kSseFlags = 0x3f;  // exception flags of MXCSR, which any computation may set

std::mutex g_mutex;
std::string g_change;

}  // namespace

ThreadModes ThreadModes::Now() {
  ThreadModes out;
  out.rounding = std::fegetround();
#if defined(__x86_64__)
  out.sse = _mm_getcsr() & ~kSseFlags;
  __asm__ volatile("fnstcw %0" : "=m"(out.x87));
#endif
  return out;
}

void ThreadModes::Restore() const {
  std::fesetround(rounding);
#if defined(__x86_64__)
  _mm_setcsr(sse | (_mm_getcsr() & kSseFlags));
  __asm__ volatile("fldcw %0" : : "m"(x87));
#endif
}

void NoteModes(const ThreadModes& before, std::string_view call) {
  const ThreadModes now = ThreadModes::Now();
  if (now == before) return;
  before.Restore();
  std::lock_guard lock(g_mutex);
  if (!g_change.empty()) return;
  g_change = fmt::format(
      "{} leaves the calling thread with other floating-point modes (rounding {}, MXCSR {:#x}, x87 {:#x}; "
      "before: {}, {:#x}, {:#x}); put them back before it returns",
      call, now.rounding, now.sse, now.x87, before.rounding, before.sse, before.x87);
}

std::string TakeModeChange() {
  std::lock_guard lock(g_mutex);
  return std::exchange(g_change, {});
}

}  // namespace mge::conform
