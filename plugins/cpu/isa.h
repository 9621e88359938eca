// SPDX-License-Identifier: Apache-2.0
// The processor's features by CPUID, and the instruction set that kernels may use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge::cpu {

// Instruction sets that the vector code (vec/) is compiled for, each a superset of the one before. A set is used only if the
// processor has every instruction that the compiler may emit for it, and the system saves its registers.
enum class Isa : uint8_t {
  kPortable = 0,  // the base of the architecture
  kAvx2 = 1,      // AVX2 FMA F16C BMI1 BMI2 LZCNT MOVBE POPCNT
  kAvx512 = 2,    // the same and AVX-512 F BW DQ VL CD
};

// The features, caches and name of a processor.
struct Processor {
  Isa isa = Isa::kPortable;
  bool avx_vnni = false;     // only with kAvx2 or more
  bool avx512_vnni = false;  // the following only with kAvx512
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;  // only if the system has granted tile registers
  bool amx_int8 = false;
  uint32_t family = 0;
  uint32_t model = 0;
  uint32_t l1_bytes = 32 << 10;
  uint32_t l2_bytes = 1 << 20;
  uint32_t l3_bytes = 16 << 20;  // what one thread can expect to find there: 3/4 of it, from 16 MiB to 24 MiB
  std::string name = "CPU";
};

// Returns this machine's processor, determined once from CPUID. Vendor and model are used only as a name and as a key of
// tuning results.
const Processor& ThisProcessor();

// Returns the processor's instruction set, limited by the setting cpu.isa. [any]
Isa AllowedIsa();

// Returns whether the processor has VNNI instructions for the vectors of this set, and the setting cpu.isa allows them. [any]
bool AllowsVnni(Isa isa);

std::string_view IsaName(Isa isa);

}  // namespace mge::cpu
