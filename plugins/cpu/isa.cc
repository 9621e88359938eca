// SPDX-License-Identifier: Apache-2.0
#include "isa.h"

#include <algorithm>
#include <cstring>

#include "settings.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mge::cpu {
namespace {

#if defined(__x86_64__)

struct Leaf {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Leaf Cpuid(uint32_t leaf, uint32_t sub = 0) {
  Leaf r;
  if (__get_cpuid_max(leaf & 0x80000000u, nullptr) < leaf) return r;
  __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
  return r;
}

bool Bit(uint32_t word, int bit) { return (word >> bit) & 1u; }

// Returns the register state that the system saves on a context switch.
uint64_t EnabledState() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

std::string BrandName() {
  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    Leaf l = Cpuid(0x80000002u + i);
    std::memcpy(brand + 16 * i, &l, 16);
  }
  std::string name = brand;
  size_t begin = name.find_first_not_of(' ');
  if (begin == std::string::npos) return "x86-64 CPU";
  return name.substr(begin, name.find_last_not_of(' ') - begin + 1);
}

// Finds the data caches from leaf 4 (Intel) or 0x8000001d (AMD), which have the same format.
void FindCaches(Processor& p) {
  for (uint32_t leaf : {4u, 0x8000001du}) {
    for (uint32_t i = 0; i < 8; ++i) {
      Leaf l = Cpuid(leaf, i);
      uint32_t type = l.a & 31u, level = (l.a >> 5) & 7u;
      if (type == 0) break;
      if (type == 2) continue;  // instruction cache
      uint32_t bytes = ((l.b >> 22) + 1) * (((l.b >> 12) & 0x3ffu) + 1) * ((l.b & 0xfffu) + 1) * (l.c + 1);
      if (level == 1) p.l1_bytes = bytes;
      if (level == 2) p.l2_bytes = bytes;
      if (level == 3) p.l3_bytes = std::clamp(bytes / 4 * 3, 16u << 20, 24u << 20);
    }
  }
}

Processor Detect() {
  Processor p;
  p.name = BrandName();
  Leaf one = Cpuid(1), seven = Cpuid(7), seven_1 = Cpuid(7, 1), extended = Cpuid(0x80000001u);
  uint32_t family = (one.a >> 8) & 15u;
  p.family = family == 15 ? family + ((one.a >> 20) & 255u) : family;
  p.model = ((one.a >> 4) & 15u) | (family >= 6 ? ((one.a >> 16) & 15u) << 4 : 0);
  FindCaches(p);

  uint64_t state = Bit(one.c, 27) ? EnabledState() : 0;
  bool avx_state = (state & 0x6) == 0x6, avx512_state = (state & 0xe6) == 0xe6, tile_state = (state & 0x60000) == 0x60000;
  bool avx2 = avx_state && Bit(seven.b, 5) && Bit(one.c, 12) /* FMA */ && Bit(one.c, 29) /* F16C */ && Bit(seven.b, 3) &&
              Bit(seven.b, 8) /* BMI1, BMI2 */ && Bit(extended.c, 5) /* LZCNT */ && Bit(one.c, 22) /* MOVBE */ &&
              Bit(one.c, 23) /* POPCNT */;
  bool avx512 = avx2 && avx512_state && Bit(seven.b, 16) && Bit(seven.b, 30) && Bit(seven.b, 17) && Bit(seven.b, 31) &&
                Bit(seven.b, 28);
  p.isa = avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kPortable;
  p.avx_vnni = avx2 && Bit(seven_1.a, 4);
  if (avx512) {
    p.avx512_vnni = Bit(seven.c, 11);
    p.avx512_bf16 = Bit(seven_1.a, 5);
    p.avx512_fp16 = Bit(seven.d, 23);
    p.amx_bf16 = tile_state && Bit(seven.d, 22) && Bit(seven.d, 24);
    p.amx_int8 = tile_state && Bit(seven.d, 25) && Bit(seven.d, 24);
  }
  return p;
}

#else

Processor Detect() { return {}; }

#endif

}  // namespace

const Processor& ThisProcessor() {
  static const Processor processor = Detect();
  return processor;
}

Isa AllowedIsa() {
  std::string_view cap = SettingOf(kIsaSetting);
  Isa limit = cap == "portable" ? Isa::kPortable : cap.starts_with("avx2") ? Isa::kAvx2 : Isa::kAvx512;
  return std::min(limit, ThisProcessor().isa);
}

bool AllowsVnni(Isa isa) {
  std::string_view cap = SettingOf(kIsaSetting);
  if (isa == Isa::kAvx512) return ThisProcessor().avx512_vnni && cap == "auto";
  return isa == Isa::kAvx2 && ThisProcessor().avx_vnni && (cap == "auto" || cap == "avx2_vnni");
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx2: return "avx2";
    case Isa::kPortable: break;
  }
  return "portable";
}

}  // namespace mge::cpu
