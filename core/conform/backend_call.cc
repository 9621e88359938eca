// SPDX-License-Identifier: Apache-2.0
#include "core/conform/backend_call.h"

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constinit CallBoard* g_board = nullptr;  // NULL: calls are not recorded
constinit std::atomic<unsigned> g_threads = 0;
constinit thread_local bool t_in_backend = false;
std::mutex g_mutex;
std::string g_change;

// Returns the bits that control rounding and the handling of subnormal numbers: x87's control word, then MXCSR.
uint64_t ControlBits(const std::fenv_t& modes) {
#if defined(__x86_64__)
  constexpr uint32_t kFlags = 0x3f;  // exception flags, which any computation may set
  return uint64_t{modes.__control_word} << 32 | (modes.__mxcsr & ~kFlags);
#else
  return modes.__fpcr;
#endif
}

std::fenv_t ModesNow() {
  std::fenv_t modes;
  std::fegetenv(&modes);
  return modes;
}

// Notes on the board that this thread is in `call`, or in none if that is empty.
void Note(std::string_view call) {
  thread_local const unsigned t_thread = g_threads++ % CallBoard::kThreads;
  if (!g_board) return;
  auto& place = g_board->calls[t_thread];
  place[call.copy(place, sizeof(place) - 1)] = 0;
}

}  // namespace

std::shared_ptr<CallBoard> CallBoard::Create() {
  void* memory = mmap(nullptr, sizeof(CallBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<CallBoard*>(memory), [](CallBoard* board) { munmap(board, sizeof(CallBoard)); }};
}

std::string CallBoard::Calls() const {
  std::set<std::string> names;
  for (const char* call : calls) {
    if (*call) names.insert(call);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void RecordCallsOn(CallBoard& board) { g_board = &board; }

Within::Within(std::string_view call) : before_(std::exchange(t_in_backend, true)), call_(call), modes_(ModesNow()) {
  Note(call);
}

Within::~Within() {
  t_in_backend = before_;
  Note("");
  const uint64_t before = ControlBits(modes_), now = ControlBits(ModesNow());
  if (now == before) return;
  std::fesetenv(&modes_);
  std::lock_guard lock(g_mutex);
  if (g_change.empty())
    g_change = fmt::format(
        "{} leaves the calling thread with other floating-point modes (control bits {:#x}, before: {:#x}); put them back "
        "before it returns",
        call_, now, before);
}

bool InBackendNow() { return t_in_backend; }

std::string TakeModeChange() {
  std::lock_guard lock(g_mutex);
  return std::exchange(g_change, {});
}

}  // namespace mge::conform
