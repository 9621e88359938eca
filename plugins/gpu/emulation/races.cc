// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/emulation/races.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace mge::gpu::races {
namespace {

// The origin of an access: the thread, and how many barriers it had passed.
struct Who {
  uint32_t block = 0, thread = 0, barriers = 0, warp_barriers = 0;
};
struct Byte {
  uintptr_t address = 0;
  uint64_t generation = 0;  // number of the launch, or of the block for shared memory
  Who writer, reader;       // the latest ones
  bool written = false, read = false;
  bool many = false;  // several threads have read since the last barrier before `reader`
};
struct Region {
  uintptr_t begin, end;
  bool has(uintptr_t a) const { return a >= begin && a < end; }
};

constexpr size_t kBits = 20;  // log2 of the number of bytes stored; newer ones replace older ones
std::vector<Byte> bytes;
std::vector<Region> own;
Region shared = {0, 0}, stack = {0, 0};
bool on = false;
uint32_t warp = 32;
uint64_t generation = 0, block_generation = 0, count = 0;
std::vector<uint32_t> warp_barriers;
Who me;
std::string text;

bool BarrierBetween(const Who& a) { return a.block == me.block && a.barriers != me.barriers; }
bool Ordered(const Who& a) {
  if (a.block != me.block) return false;
  return a.thread == me.thread || a.barriers != me.barriers ||
         (a.thread / warp == me.thread / warp && a.warp_barriers != me.warp_barriers);
}

void Report(const char* what, uintptr_t address, const Who& other) {
  if (++count != 1) return;
  auto place = [](const Who& w) { return "block " + std::to_string(w.block) + " thread " + std::to_string(w.thread); };
  text = std::string(what) +
         (shared.has(address) ? " in shared memory, byte " + std::to_string(address - shared.begin) : " in memory") + ": " +
         place(me) + " and " + place(other);
}

void AccessByte(uintptr_t a, bool write) {
  uint64_t now = shared.has(a) ? block_generation | uint64_t{1} << 63 : generation;
  Byte& b = bytes[(a * 0x9E3779B97F4A7C15u) >> (64 - kBits)];
  if (b.address != a || b.generation != now) {
    b = {};
    b.address = a;
    b.generation = now;
  }
  if (b.written && !Ordered(b.writer)) {
    Report(write ? "two writes" : "a read beside a write", a, b.writer);
    b.written = false;
  }
  if (!write) {
    b.many = b.read && !BarrierBetween(b.reader) && (b.many || b.reader.thread != me.thread || b.reader.block != me.block);
    b.read = true;
    b.reader = me;
    return;
  }
  if (b.read && (!Ordered(b.reader) || (b.many && !BarrierBetween(b.reader)))) Report("a write beside a read", a, b.reader);
  b.written = true;
  b.writer = me;
  b.read = b.many = false;
}

void Access(const void* p, size_t n, bool write) {
  auto a = reinterpret_cast<uintptr_t>(p);
  if (!on || stack.has(a)) return;
  for (const Region& r : own) {
    if (r.has(a)) return;
  }
  for (size_t i = 0; i < n; ++i) AccessByte(a + i, write);
}

}  // namespace

uint64_t Count() { return count; }
const std::string& Text() { return text; }

void BeginLaunch(uint32_t size, const void* stack_top) {
  constexpr uintptr_t kDeep = 256 << 10;
  bytes.resize(size_t{1} << kBits);
  warp = size;
  auto top = reinterpret_cast<uintptr_t>(stack_top);
  stack = {top - kDeep, top};
  ++generation;
  count = 0;
  text.clear();
  warp_barriers.assign(64, 0);
  on = true;
}
void EndLaunch() { on = false; }
void BeginBlock(uint64_t block) {
  me.block = static_cast<uint32_t>(block);
  ++me.barriers;
  ++block_generation;
}
void Barrier() { ++me.barriers; }
void WarpBarrier(uint32_t thread) { me.warp_barriers = ++warp_barriers[thread / warp]; }
void Thread(uint32_t thread) {
  me.thread = thread;
  if (on) me.warp_barriers = warp_barriers[thread / warp];
}
void SharedMemory(const void* begin, size_t size) {
  shared = {reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + size};
}
void PrivateMemory(const void* begin, size_t size) {
  own.push_back({reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + size});
}
void PrivateMemoryFreed(const void* begin) {
  std::erase_if(own, [&](const Region& r) { return r.begin == reinterpret_cast<uintptr_t>(begin); });
}

}  // namespace mge::gpu::races

// The functions that code compiled with -fsanitize=thread calls.
#define MGE_GPU_ACCESSES(n)                                                        \
  void __tsan_read##n(void* p) { mge::gpu::races::Access(p, n, false); }           \
  void __tsan_write##n(void* p) { mge::gpu::races::Access(p, n, true); }           \
  void __tsan_unaligned_read##n(void* p) { mge::gpu::races::Access(p, n, false); } \
  void __tsan_unaligned_write##n(void* p) { mge::gpu::races::Access(p, n, true); } \
  void __tsan_volatile_read##n(void* p) { mge::gpu::races::Access(p, n, false); }  \
  void __tsan_volatile_write##n(void* p) { mge::gpu::races::Access(p, n, true); }
extern "C" {
MGE_GPU_ACCESSES(1)
MGE_GPU_ACCESSES(2)
MGE_GPU_ACCESSES(4)
MGE_GPU_ACCESSES(8)
MGE_GPU_ACCESSES(16)
void __tsan_read_range(void* p, unsigned long n) { mge::gpu::races::Access(p, n, false); }
void __tsan_write_range(void* p, unsigned long n) { mge::gpu::races::Access(p, n, true); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
}
