// SPDX-License-Identifier: Apache-2.0
// The names of instructions. The compilers' libraries contain this file, too.
#include <iterator>

#include "jit/chain.h"

namespace mge::cpu {
namespace {

constexpr const char* kNames[] = {"none",
                                  "copy",
                                  "splat",
                                  "round_to",
                                  "square",
                                  "cube",
                                  "pow_half",
                                  "divide_by",
                                  "where",
                                  "cast",
                                  "quantize",
                                  "dequantize",
#define MGE_TILE_NAME(Name, name) #name,
                                  MGE_ELEMENTWISE_FUNCTIONS(MGE_TILE_NAME)
#undef MGE_TILE_NAME
};
static_assert(std::size(kNames) == static_cast<size_t>(TileOp::kXor) + 1);

}  // namespace

const char* NameOf(TileOp op) { return kNames[static_cast<size_t>(op)]; }

}  // namespace mge::cpu
