// SPDX-License-Identifier: Apache-2.0
// Generates machine code for elementwise chains.
//
// Algorithm
//   - The code is one loop over vectors of float32. Each step of the chain becomes a few instructions, and values stay in
//     registers from the step that computes them to the last one that reads them. Short bodies are unrolled; the processor
//     overlaps the iterations of long ones.
//   - If registers run out, the value that is needed last is stored to the stack, or read from memory again.
//   - Operands of 16 bits are widened when they are read and rounded when they are stored. Truth values are masks.
//   - The last elements, fewer than a vector, have a body of their own, which reads and writes no element behind them.
//   - A step is the sequence of operations of its micro-kernel (vec/tile.h), so that the interpreter gives the same bits.
#pragma once

#include "isa.h"
#include "jit/chain.h"

namespace mge::cpu {

// Computes `count` elements of every place, as the steps would by their micro-kernels. A place is the address of the first
// element; a `single` value has one.
using ChainFn = void (*)(char* const* places, int64_t count);

// Code for more instructions than this may exceed the processor's instruction cache.
inline constexpr int kMaxRangeWeight = 1200;

// Returns why this build cannot generate code: it lacks Xbyak. Empty if it can.
const char* WhyNoGenerator();
// Generates position-independent code of the function ChainFn for a range of steps that all have code (expressible.h).
Result GenerateCode(const Chain& chain, ChainRange range, Isa isa, std::vector<uint8_t>* code);

}  // namespace mge::cpu
