// SPDX-License-Identifier: Apache-2.0
// The generator of a build without Xbyak, or for another processor than x86-64.
#include "jit/generator.h"

namespace mge::cpu {

const char* WhyNoGenerator(Isa) { return "MGE was built without Xbyak (Debian package libxbyak-dev)"; }
bool HasCode(const Chain&, const ChainStep&) { return false; }
int WeightOf(TileOp) { return 0; }
Result GenerateCode(const Chain&, ChainRange, Isa isa, std::vector<uint8_t>*) {
  return {MGE_UNIMPLEMENTED, WhyNoGenerator(isa)};
}

}  // namespace mge::cpu
