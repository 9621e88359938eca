// SPDX-License-Identifier: Apache-2.0
// The generator of a build without Xbyak, or for another processor than x86-64.
#include "jit/generator.h"

namespace mge::cpu {

const char* WhyNoGenerator() { return "MGE was built without Xbyak (Debian package libxbyak-dev)"; }
Result GenerateCode(const Chain&, ChainRange, Isa, std::vector<uint8_t>*) { return {MGE_UNIMPLEMENTED, WhyNoGenerator()}; }

}  // namespace mge::cpu
