// SPDX-License-Identifier: Apache-2.0
// Which instruction sets a backend may use here: processor bits, and register state that the system saves.
#pragma once

#include <cstdint>
#include <string>

namespace mge {

// MGE_ISA_ bits of this machine.
uint32_t HostIsa();

// "AVX2 with FMA and F16C, AVX-512 (F, BW, DQ, VL, CD)"; unknown bits by number.
std::string IsaNames(uint32_t isa);

}  // namespace mge
