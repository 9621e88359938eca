// SPDX-License-Identifier: Apache-2.0
// Helpers for kernel rows: check a problem and keep the instruction set.
#pragma once

#include <string>
#include <utility>

#include "isa.h"
#include "mge/plugin.hpp"
#include "mge/plugin/problems/operands.hpp"
#include "types.h"

namespace mge::cpu {

inline constexpr uint64_t kExact = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

// Returns whether rows support the problem's form; refuses it otherwise. All shapes must be known, no output may accumulate
// unless `adds`, all types must be supported. The problem must be one node, unless `groups`.
bool Accept(const Problem& p, Offers& offers, bool groups = false, bool adds = false);

// Adds a candidate. Its variant contains the row's own number (24 bits) and the instruction set of its vector code. The id
// ends with the set's name, so that measured times of one set are not used for another.
inline void Add(Offers& offers, Isa isa, Candidate c) {
  c.id += '.';
  c.id += IsaName(isa);
  c.variant |= static_cast<uint64_t>(isa) << 24;
  offers.Add(c);
}
inline Isa IsaOf(const Candidate& c) { return static_cast<Isa>(c.variant >> 24); }
inline uint32_t KindOf(const Candidate& c) { return static_cast<uint32_t>(c.variant & 0xffffffu); }

std::string_view TypeName(mge_dtype type);

}  // namespace mge::cpu
