// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/isa.h"

#include "fmt/format.h"
#include "mge/plugin.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mge {

#if defined(__x86_64__)
namespace {

uint64_t SavedRegisters() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

uint32_t HostIsa() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  constexpr uint32_t kBase = bit_FMA | bit_XSAVE | bit_OSXSAVE | bit_AVX | bit_F16C;
  if ((c & kBase) != kBase) return 0;
  // The processor's bits are not sufficient: if the operating system does not save the wide registers, their content is
  // lost.
  uint64_t saved = SavedRegisters();
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xe6;
  if ((saved & kAvxState) != kAvxState) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return 0;
  uint32_t isa = MGE_ISA_AVX2;
  constexpr uint32_t kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  if ((b & kAvx512) == kAvx512 && (saved & kAvx512State) == kAvx512State) isa |= MGE_ISA_AVX512;
  return isa;
}
#else
uint32_t HostIsa() { return 0; }
#endif

std::string IsaNames(uint32_t isa) {
  std::string out;
  auto add = [&](std::string_view name) {
    if (!out.empty()) out += ", ";
    out += name;
  };
  if (isa & MGE_ISA_AVX2) add("AVX2 with FMA and F16C");
  if (isa & MGE_ISA_AVX512) add("AVX-512 (F, BW, DQ, VL, CD)");
  if (uint32_t unknown = isa & ~MGE_ISA_KNOWN_BITS)
    add(fmt::format("instruction sets unknown to this host (bits {:#x})", unknown));
  return out;
}

}  // namespace mge
