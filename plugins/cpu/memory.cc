// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "settings.h"

namespace mge::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Slabs of at least a huge page are mapped, aligned to one; smaller ones come from the heap.
mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    if (memory_class < 0 || memory_class >= MGE_MEMORY_CLASS_COUNT) {
      return Report(error, MGE_INVALID_ARGUMENT, "memory class " + std::to_string(memory_class) + " does not exist");
    }
    if (bytes > (uint64_t{1} << 62)) {
      return Report(error, MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes are more than any address space");
    }
    void* address = nullptr;
    uint64_t mapped = 0;
    if (bytes >= kHugePage) {
      mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
      void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base != MAP_FAILED) {
        auto begin = reinterpret_cast<uintptr_t>(base);
        uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
        uintptr_t end = aligned + mapped - kHugePage;
        if (aligned > begin) munmap(base, aligned - begin);
        if (begin + mapped > end) munmap(reinterpret_cast<void*>(end), begin + mapped - end);
        mapped = end - aligned;
        address = reinterpret_cast<void*>(aligned);
        if (SettingIsOn(kSettingHugePages)) (void)madvise(address, mapped, MADV_HUGEPAGE);  // advice: may be declined
      }
    } else {
      address = std::aligned_alloc(64, (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64);
    }
    if (!address) {
      return Report(error, MGE_RESOURCE_EXHAUSTED, "the system gave no " + std::to_string(bytes) + " bytes of memory");
    }
    Fill(out, MakeSlab(memory_class, bytes, address, address, reinterpret_cast<void*>(mapped)));
    return MGE_OK;
  });
}

void SlabRelease(mge_device*, const mge_slab* slab) noexcept {
  if (auto mapped = reinterpret_cast<uintptr_t>(slab->handle)) {
    munmap(slab->address, mapped);
  } else {
    std::free(slab->address);
  }
}

void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  MemoryAmount m = Quietly([] { return SystemMemory(); });  // zero: not known
  if (free_bytes) *free_bytes = m.free;
  if (total_bytes) *total_bytes = m.total;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word) || word.empty() || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  errno = 0;
  uint64_t value = std::strtoull(word.c_str(), nullptr, 10);
  return errno ? std::nullopt : std::optional(value);
}

// The tightest memory limit among this process's control group and those above it.
void ApplyControlGroups(MemoryAmount& m) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (;;) {
      std::string group = root + (path == "/" ? "" : path);
      auto limit = ReadNumber(group + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
      if (limit && *limit < m.total) {
        m.total = *limit;
        auto used = ReadNumber(group + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
        if (used) m.free = std::min(m.free, *limit - std::min(*limit, *used));
      }
      if (path.empty() || path == "/") break;
      path.resize(path.find_last_of('/'));
    }
  }
  m.free = std::min(m.free, m.total);
}

}  // namespace

MemoryAmount SystemMemory() {
  MemoryAmount m;
  struct sysinfo info = {};
  if (sysinfo(&info) == 0) {
    m.total = static_cast<uint64_t>(info.totalram) * info.mem_unit;
    m.free = static_cast<uint64_t>(info.freeram) * info.mem_unit;
  }
  std::ifstream file("/proc/meminfo");  // knows what of the page cache could be had, sysinfo does not
  for (std::string key, unit; file >> key;) {
    uint64_t value = 0;
    file >> value;
    std::getline(file, unit);
    if (key == "MemAvailable:") {
      m.free = value * 1024;
      break;
    }
  }
  ApplyControlGroups(m);
  return m;
}

const mge_memory_api kMemoryApi = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = Text("growing");
  t.own_pool = nullptr;
  t.reserve = Text("none");
  t.own_reserve = nullptr;
});

}  // namespace mge::cpu
