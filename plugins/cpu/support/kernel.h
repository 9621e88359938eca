// SPDX-License-Identifier: Apache-2.0
// What every kernel row of this backend does: judge the plain facts of a problem, and remember the instruction set.
#pragma once

#include <string>
#include <utility>

#include "isa.h"
#include "mge/plugin.hpp"
#include "types.h"

namespace mge::cpu {

inline constexpr uint64_t kExact = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

// Refuses, and answers false, unless all shapes are known, all outputs are plainly written, all types are ours, and the
// problem is one node (any number if `groups`).
bool Accept(const Problem& p, Offers& offers, bool groups = false);

// True for a node that the host could not bring into the newest form: attributes that begin with '_' say how the meaning of
// its old operator set differs. Accept() refuses such nodes.
bool HasOwnMeaning(const Node& node);

// A candidate's variant holds the row's own number (24 bits) and the instruction set of its vector code, which also
// ends its id: what was measured or frozen for one set never serves another.
inline void Add(Offers& offers, Isa isa, Candidate c) {
  c.id += '.';
  c.id += IsaName(isa);
  c.variant |= static_cast<uint64_t>(isa) << 24;
  offers.Add(c);
}
inline Isa IsaOf(const Candidate& c) { return static_cast<Isa>(c.variant >> 24); }
inline uint32_t KindOf(const Candidate& c) { return static_cast<uint32_t>(c.variant & 0xffffffu); }

// An axis attribute counted from the front; -1 if it is outside of the rank.
inline int64_t AxisOf(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? axis : -1;
}

// Integers of a constant operand (int32 or int64) of the node. False if the operand is absent or not constant.
bool ConstantInts(const Node& node, int input, std::vector<int64_t>& out);

std::string_view TypeName(mge_dtype type);

}  // namespace mge::cpu
