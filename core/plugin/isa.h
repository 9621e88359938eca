// SPDX-License-Identifier: Apache-2.0
// The instruction sets that a backend may use on this machine: those of the processor whose registers the operating system
// saves.
#pragma once

#include <cstdint>
#include <string>

namespace mge {

// Returns the MGE_ISA_ bits of this machine.
uint32_t HostIsa();

// Returns the names of instruction sets: "AVX2 with FMA and F16C, AVX-512 (F, BW, DQ, VL, CD)". Unknown bits are given as a
// number.
std::string IsaNames(uint32_t isa);

}  // namespace mge
