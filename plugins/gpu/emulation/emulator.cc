// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/emulation/emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "plugins/gpu/emulation/device.h"
#include "plugins/gpu/emulation/fiber.h"
#include "plugins/gpu/emulation/races.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace mge::gpu {
// Exports a symbol to the kernels of other libraries (AddKernels).
#define MGE_FOR_KERNELS __attribute__((visibility("protected")))

namespace emulation {
MGE_FOR_KERNELS constinit thread_local State state = {};
}

using emulation::Index3;
using emulation::state;
using emulation::WarpOp;

namespace {

constexpr size_t kStackBytes = 64 << 10;
// below each stack: a multiple of every page size, larger than a stack frame
constexpr size_t kGuardBytes = kStackBytes;
constexpr size_t kSlotBytes = kGuardBytes + kStackBytes;
constexpr int kMaxGuards = 12 << 10;        // limit per process: a guard needs two mappings, and Linux allows 65530
constexpr size_t kSharedBytes = 228 << 10;  // as on sm_90
constexpr size_t kStaticBytes = 48 << 10;   // limit for static shared arrays
constexpr uint32_t kMaxThreads = 1024, kMaxWarps = kMaxThreads / 32, kMaxWarpThreads = 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kRedZone = 128;
#else
constexpr size_t kRedZone = 0;
#endif
constexpr size_t kSharedRoom = kSharedBytes + 16 * kRedZone;

std::atomic<int> guards = 0;

// A fiber and the state that differs between threads. Placed just above its stack.
struct Runner {
  Fiber fiber;
  Index3 thread = {};
  uint32_t shared_used = 0, linear = 0;
  const char* file = nullptr;  // place where it waits
  int line = 0;

  Runner() = default;
  Runner(char* stack, size_t bytes, void (*entry)()) : fiber(stack, bytes, entry) {}
};

struct WarpState {
  std::array<std::array<uint64_t, kMaxWarpThreads>, 2> slots;  // [parity]: the current operation and the one before
  std::array<Runner*, kMaxWarpThreads> waiting;
  uint32_t waiting_count = 0, arrived = 0, parity = 0;
  WarpOp op = WarpOp::kBallot;
  const char* file = nullptr;
  int line = 0;
};

}  // namespace

// The running block, and memory that all blocks reuse.
struct Emulator::Block {
  EmulatorSettings settings;
  const emulation::Kernel* kernel = nullptr;
  const void* args = nullptr;
  uint32_t threads = 0, begun = 0, done = 0;
  bool in_thread = false;  // the current fiber is inside a thread, not between threads
  bool phased = false;
  std::vector<uint32_t> order;  // order in which threads begin; empty: forward
  // The block's barrier.
  uint32_t arrived = 0;
  const char* file = nullptr;
  int line = 0;
  std::array<Runner*, kMaxThreads> waiting;
  uint32_t waiting_count = 0;
  std::array<WarpState, kMaxWarps> warps;
  // The fibers.
  Runner* current = nullptr;
  Runner* main = nullptr;
  std::vector<Runner*> runners, idle;
  std::array<Runner*, kMaxThreads + 1> ready;  // ring buffer of fibers that can continue
  uint32_t ready_head = 0, ready_tail = 0;
  char* stacks = nullptr;
  size_t guarded = 0;  // number of slots whose guard was set up
  int own_guards = 0;
  // Shared memory.
  size_t dynamic_used = 0, dynamic_bytes = 0;  // bytes without and with the padding before the static arrays
  size_t named = 0, state_used = 0;
  std::vector<char> phase_state;
  std::array<std::array<uint64_t, kMaxThreads + 1>, 2> reduction;
  uint32_t reduction_parity = 0;
  std::array<std::vector<emulation::Copy>, kMaxThreads> copies;  // [thread], begun
  std::array<uint64_t, kMaxThreads> copy_groups = {};            // [thread], number of groups
  std::thread::id thread;                                        // the thread that ran last
  bool failed = false;
  std::string error;
  uint64_t switches = 0;
  alignas(128) unsigned char shared[kSharedRoom];

  ~Block() {
    DropFibers();
    if (stacks) {
#if defined(__SANITIZE_ADDRESS__)
      __asan_unpoison_memory_region(stacks, kSlotBytes * kMaxThreads);  // the addresses may be reused by another mapping
#endif
      munmap(stacks, kSlotBytes * kMaxThreads);
    }
    guards -= own_guards;
    races::PrivateMemoryFreed(stacks);
    races::PrivateMemoryFreed(phase_state.data());
    Unpoison();
  }
  void DropFibers() {
    for (Runner* r : runners) r->~Runner();
    runners.clear();
    idle.clear();
  }
  void Unpoison() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(shared, kSharedRoom);
#endif
  }
  void Guard(size_t slot);
  void Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  Runner* NewRunner();
  Runner* Pick();
  void Go(Runner* to);
  void Wait();
  void MakeReady(Runner* r) {
    ready[ready_tail] = r;
    ready_tail = ready_tail == kMaxThreads ? 0 : ready_tail + 1;
  }
  void Stuck();
  void RunBlock(uint64_t number);
  static void Entry();
};

namespace {
thread_local Emulator::Block* running __attribute__((tls_model("initial-exec"))) = nullptr;
}

void Emulator::Block::Fail(const char* format, ...) {
  if (failed) return;
  failed = true;
  char text[512];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof(text), format, list);
  va_end(list);
  error = std::string(kernel ? kernel->name : "launch") + ": " + text;
}

// Sets up a stack's guard once; stacks are reused. If the process has reached its limit of guards, the stack has none.
void Emulator::Block::Guard(size_t slot) {
  if (slot < guarded) return;
  guarded = slot + 1;
  if (guards.fetch_add(1) < kMaxGuards && mprotect(stacks + slot * kSlotBytes, kGuardBytes, PROT_NONE) == 0) {
    ++own_guards;
  } else {
    --guards;
  }
}

Runner* Emulator::Block::NewRunner() {
  if (!idle.empty()) {
    Runner* r = idle.back();
    idle.pop_back();
    return r;
  }
  if (!stacks) {
    void* p =
        mmap(nullptr, kSlotBytes * kMaxThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    stacks = static_cast<char*>(p);
    races::PrivateMemory(stacks, kSlotBytes * kMaxThreads);
  }
  size_t i = runners.size();
  char* stack = stacks + i * kSlotBytes + kGuardBytes;
  Guard(i);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack, kStackBytes);  // clears the marks of an earlier fiber on this stack
#endif
  size_t shift = (i * 448) & 4032;  // spreads the stacks over different cache sets
  char* top = stack + kStackBytes - shift - ((sizeof(Runner) + 63) & ~size_t{63});
  auto* r = new (top) Runner(stack, static_cast<size_t>(top - stack), Entry);
  runners.push_back(r);
  return r;
}

void Emulator::Block::Go(Runner* to) {
  Runner* from = current;
  if (from == to) return;
  ++switches;
  from->thread = state.thread;
  from->shared_used = state.shared_used;
  from->linear = state.linear;
  current = to;
  Fiber::Switch(from->fiber, to->fiber);
  state.thread = from->thread;
  state.shared_used = from->shared_used;
  state.linear = from->linear;
  races::Thread(state.linear);
}

Runner* Emulator::Block::Pick() {
  if (ready_head != ready_tail) {
    Runner* r = ready[ready_head];
    ready_head = ready_head == kMaxThreads ? 0 : ready_head + 1;
    return r;
  }
  return begun < threads && !failed ? NewRunner() : nullptr;
}

void Emulator::Block::Stuck() {
  if (failed) return;
  std::string text =
      "deadlock: threads wait for each other; " + std::to_string(done) + " of " + std::to_string(threads) + " have ended";
  for (uint32_t i = 0; i < std::min(waiting_count, 3u); ++i) {
    const Runner& r = *waiting[i];
    text += "; thread " + std::to_string(r.linear) + " at the barrier " + r.file + ":" + std::to_string(r.line);
  }
  for (size_t w = 0; w < warps.size(); ++w) {
    if (!warps[w].waiting_count) continue;
    text += "; " + std::to_string(warps[w].waiting_count) + " threads of warp " + std::to_string(w) + " at " +
            warps[w].file + ":" + std::to_string(warps[w].line);
    break;
  }
  Fail("%s", text.c_str());
}

// Suspends the current fiber and runs another.
void Emulator::Block::Wait() {
  in_thread = false;
  Runner* next = Pick();
  if (!next) {
    Stuck();
    next = main;
  }
  Go(next);
  in_thread = true;
}

void Emulator::Block::Entry() {
  Fiber::Entered();
  for (;;) {
    Block& b = *running;
    b.kernel->run(b.args);  // returns when no thread is left to begin
    b.idle.push_back(b.current);
    Runner* next = nullptr;
    if (b.ready_head != b.ready_tail) {
      next = b.Pick();
    } else if (b.done < b.threads) {
      b.Stuck();
    }
    b.Go(next ? next : b.main);
  }
}

namespace emulation {

MGE_FOR_KERNELS bool NextThread() {
  Emulator::Block& b = *running;
  if (b.in_thread) ++b.done;
  if (b.begun >= b.threads || b.failed) {
    b.in_thread = false;
    return false;
  }
  uint32_t i = b.begun++, t = b.order.empty() ? i : b.order[i];
  state.linear = t;
  state.shared_used = 0;
  uint32_t x = state.block_size.x, y = state.block_size.y;
  state.thread = {t % x, t / x % y, t / (x * y)};
  b.in_thread = true;
  races::Thread(t);
  return true;
}

void Barrier(const char* file, int line) {
  Emulator::Block& b = *running;
  if (b.phased) {  // the kernel's loops act as the barrier
    races::Barrier();
    return;
  }
  Runner* me = b.current;
  me->file = file;
  me->line = line;
  if (b.arrived++ == 0) {
    b.file = file;
    b.line = line;
  } else if (b.line != line || std::strcmp(b.file, file)) {
    b.Fail("threads diverge: thread %u is at the barrier %s:%d, others at %s:%d", state.linear, file, line, b.file, b.line);
  }
  if (b.done) {
    b.Fail("threads diverge: thread %u is at the barrier %s:%d, %u threads have ended", state.linear, file, line, b.done);
  }
  if (b.arrived == b.threads) {
    b.arrived = 0;
    for (uint32_t i = 0; i < b.waiting_count; ++i) b.MakeReady(b.waiting[i]);
    b.waiting_count = 0;
    races::Barrier();
    return;
  }
  me->linear = state.linear;
  b.waiting[b.waiting_count++] = me;
  b.Wait();
}

uint64_t Warp(WarpOp op, uint64_t bits, int argument, const char* file, int line) {
  Emulator::Block& b = *running;
  uint32_t size = state.warp, lane = state.linear % size;
  WarpState& w = b.warps[state.linear / size];
  uint32_t parity = w.parity;
  if (w.arrived == 0) {
    w.op = op;
    w.file = file;
    w.line = line;
  } else if (w.op != op || w.line != line || std::strcmp(w.file, file)) {
    b.Fail("a warp diverges: thread %u is at %s:%d, others at %s:%d", state.linear, file, line, w.file, w.line);
  }
  w.slots[parity][lane] = bits;
  if (++w.arrived == size) {
    w.arrived = 0;
    w.parity ^= 1;
    for (uint32_t i = 0; i < w.waiting_count; ++i) b.MakeReady(w.waiting[i]);
    w.waiting_count = 0;
    races::WarpBarrier(state.linear);
  } else {
    w.waiting[w.waiting_count++] = b.current;
    b.Wait();
  }
  const auto& slots = w.slots[parity];
  int from = static_cast<int>(lane);
  switch (op) {
    case WarpOp::kShuffleXor: from ^= argument; break;
    case WarpOp::kShuffleDown: from += argument; break;
    case WarpOp::kShuffle: from = argument; break;
    case WarpOp::kBallot: {
      uint64_t mask = 0;
      for (uint32_t i = 0; i < size; ++i) mask |= (slots[i] & 1) << i;
      return mask;
    }
  }
  return slots[from >= 0 && from < static_cast<int>(size) ? static_cast<size_t>(from) : lane];
}

void* SharedStatic(size_t bytes, const char* name) {
  Emulator::Block& b = *running;
  size_t offset = b.dynamic_bytes + state.shared_used, room = ((bytes + 127) & ~size_t{127}) + kRedZone;
  if (offset + room > kSharedRoom || state.shared_used + bytes > kStaticBytes + 8 * kRedZone) {
    b.Fail("%s does not fit into shared memory", name);
    b.Unpoison();
    return b.shared;  // large enough for any static array that a compiler accepts
  }
  state.shared_used += static_cast<uint32_t>(room);
  if (state.shared_used > b.named) {  // true only in the first thread
    b.named = state.shared_used;
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(b.shared + offset, bytes);
#endif
    if (b.settings.poison) std::memset(b.shared + offset, 0xff, bytes);
  }
  return b.shared + offset;
}

void* SharedDynamic() { return running->shared; }

void* PhaseState(size_t bytes) {
  Emulator::Block& b = *running;
  size_t offset = b.state_used;
  b.state_used += (bytes + 63) & ~size_t{63};
  if (b.state_used > b.phase_state.size()) {
    b.Fail("the state of the threads exceeds %zu bytes", b.phase_state.size());
    return b.phase_state.data();
  }
  return b.phase_state.data() + offset;
}

void BeginPhase(int thread) { races::Thread(static_cast<uint32_t>(thread)); }

uint64_t* ReductionSlots() { return running->reduction[running->reduction_parity].data(); }
bool LastOfReduction() { return running->arrived + 1 == running->threads; }
void FlipReduction() { running->reduction_parity ^= 1; }

void BeginCopy(uint32_t thread, void* to, const void* from) {
  running->copies[thread].push_back({to, from, running->copy_groups[thread]});
}
void CommitCopies(uint32_t thread) { ++running->copy_groups[thread]; }
bool EndCopy(uint32_t thread, uint64_t newest, Copy* copy) {
  std::vector<Copy>& copies = running->copies[thread];
  const uint64_t groups = running->copy_groups[thread];
  const auto at = std::find_if(copies.rbegin(), copies.rend(),
                               [&](const Copy& c) { return newest == kNoGroup || c.group + newest < groups; });
  if (at == copies.rend()) return false;
  *copy = *at;
  copies.erase(std::next(at).base());
  return true;
}

}  // namespace emulation

void Emulator::Block::RunBlock(uint64_t number) {
  uint64_t row = number / state.grid.x;
  state.block = {static_cast<uint32_t>(number % state.grid.x), static_cast<uint32_t>(row % state.grid.y),
                 static_cast<uint32_t>(row / state.grid.y)};
  begun = done = arrived = waiting_count = ready_head = ready_tail = 0;
  named = state_used = 0;
  in_thread = false;
  for (uint32_t w = 0; w < threads / state.warp; ++w) warps[w].arrived = warps[w].waiting_count = 0;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(shared, dynamic_bytes);
#endif
  if (settings.poison) std::memset(shared, 0xff, dynamic_bytes);
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(shared + dynamic_used, kSharedRoom - dynamic_used);
#endif
  races::BeginBlock(number);
  if (phased) {
    state.thread = {};
    state.linear = state.shared_used = 0;
    kernel->run(args);
  } else {
    current = main;
    Go(NewRunner());
  }
  for (uint32_t t = 0; t < threads; ++t) {
    if (copies[t].empty()) continue;
    Fail("thread %u ends without waiting for its copies to shared memory", t);
    copies[t].clear();
  }
}

Emulator::Emulator(const EmulatorSettings& settings) : block_(std::make_unique<Block>()) {
  block_->settings = settings;
  block_->phase_state.resize(512 << 10);
  block_->runners.reserve(kMaxThreads);  // code on a fiber must not throw, so it must not allocate
  block_->idle.reserve(kMaxThreads);
  races::PrivateMemory(block_->phase_state.data(), block_->phase_state.size());
}
Emulator::~Emulator() = default;

const std::string& Emulator::error() const { return block_->error; }
uint64_t Emulator::switches() const { return block_->switches; }

namespace {
// The bounds of the section that GPU_ENTRY fills, defined by the linker.
extern "C" {
__attribute__((visibility("hidden"), weak)) extern const emulation::Kernel* const __start_mge_gpu_kernels[];
__attribute__((visibility("hidden"), weak)) extern const emulation::Kernel* const __stop_mge_gpu_kernels[];
}

// The kernels by number, and the numbers by name. Functions are [any].
class KernelList {
 public:
  KernelList() {
    for (auto at = __start_mge_gpu_kernels; at != __stop_mge_gpu_kernels; ++at) Add(*at);
  }
  void Add(const emulation::Kernel* kernel) {
    std::lock_guard lock(mutex_);
    if (numbers_.emplace(kernel->name, static_cast<uint32_t>(kernels_.size())).second) kernels_.push_back(kernel);
  }
  uint32_t count() const {
    std::shared_lock lock(mutex_);
    return static_cast<uint32_t>(kernels_.size());
  }
  // Returns null if there is no such number.
  const emulation::Kernel* At(uint32_t number) const {
    std::shared_lock lock(mutex_);
    return number < kernels_.size() ? kernels_[number] : nullptr;
  }
  uint32_t Find(std::string_view name) const {
    std::shared_lock lock(mutex_);
    const auto at = numbers_.find(name);
    return at == numbers_.end() ? kNoKernel : at->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::vector<const emulation::Kernel*> kernels_;
  std::map<std::string_view, uint32_t> numbers_;
};

KernelList& Kernels() {
  static KernelList list;
  return list;
}
}  // namespace

uint32_t KernelCount() { return Kernels().count(); }
std::string_view KernelName(uint32_t kernel) { return Kernels().At(kernel)->name; }
uint32_t KernelArgsBytes(uint32_t kernel) { return Kernels().At(kernel)->args_bytes; }
uint32_t FindKernel(std::string_view name) { return Kernels().Find(name); }
void AddKernels(std::span<const emulation::Kernel* const> kernels) {
  for (const emulation::Kernel* kernel : kernels) Kernels().Add(kernel);
}

bool Emulator::Run(const Launch& launch, uint64_t first, uint64_t count) {
  Block& b = *block_;
  b.failed = false;
  b.error.clear();
  b.kernel = Kernels().At(launch.kernel);
  uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (!b.kernel) {
    b.Fail("there is no kernel number %u", launch.kernel);
  } else if (launch.args_bytes != b.kernel->args_bytes || launch.args_bytes > kMaxArgsBytes) {
    b.Fail("%u bytes of arguments for a kernel that takes %u", launch.args_bytes, b.kernel->args_bytes);
  } else if (threads == 0 || threads > b.kernel->max_threads || threads % kMaxWarpThreads) {
    b.Fail("%llu threads in a block: not a multiple of 64 up to %u", static_cast<unsigned long long>(threads),
           b.kernel->max_threads);
  } else if (launch.shared_bytes > kSharedBytes - kStaticBytes) {
    b.Fail("%u bytes of dynamic shared memory", launch.shared_bytes);
  }
  if (b.failed) return false;
  b.args = launch.args;
  b.threads = static_cast<uint32_t>(threads);
  b.phased = b.kernel->phased;
  b.dynamic_used = launch.shared_bytes;
  b.dynamic_bytes = ((launch.shared_bytes + size_t{127}) & ~size_t{127}) + kRedZone;
  b.order.clear();
  if (b.settings.order != EmulatorSettings::Order::kForward) {
    for (uint32_t i = 0; i < threads; ++i) b.order.push_back(b.threads - 1 - i);
  }
  if (b.settings.order == EmulatorSettings::Order::kShuffled) {
    uint32_t s = b.settings.seed * 2654435761u + 1;
    for (uint32_t i = b.threads - 1; i > 0; --i) {
      s = s * 1664525u + 1013904223u;
      std::swap(b.order[i], b.order[(s >> 8) % (i + 1)]);
    }
  }
  if (b.thread != std::this_thread::get_id()) b.DropFibers();  // they contain addresses of the other thread's variables
  b.thread = std::this_thread::get_id();
  running = &b;
  state.block_size = {launch.block[0], launch.block[1], launch.block[2]};
  state.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  state.warp = b.settings.warp;
  state.whole_reductions = b.settings.whole_reductions;
  Runner main;
  b.main = &main;
  races::SharedMemory(b.shared, kSharedBytes);
  races::BeginLaunch(state.warp, __builtin_frame_address(0));
  for (uint64_t i = first; i < first + count && !b.failed; ++i) b.RunBlock(i);
  races::EndLaunch();
  if (b.failed) b.DropFibers();  // some fibers have stopped inside the kernel
  b.Unpoison();
  b.main = nullptr;
  running = nullptr;
  return !b.failed;
}

}  // namespace mge::gpu
