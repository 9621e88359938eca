// SPDX-License-Identifier: Apache-2.0
// Helpers for kernel rows: check a problem and keep the instruction set.
#pragma once

#include <string>
#include <utility>

#include "isa.h"
#include "mge/plugin.hpp"
#include "types.h"

namespace mge::cpu {

inline constexpr uint64_t kExact = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

// Returns whether rows support the problem's form; refuses it otherwise. All shapes must be known, no output may accumulate
// unless `adds`,
// all types must be supported. The problem must be one node, unless `groups`.
bool Accept(const Problem& p, Offers& offers, bool groups = false, bool adds = false);

// Returns whether the node has attributes that begin with '_'. They describe how its old operator set differs, because the
// host could not convert it to the newest form. Accept() refuses such nodes.
bool HasOwnMeaning(const Node& node);

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

// Returns an axis attribute counted from the front, or -1 if it is out of range.
inline int64_t AxisOf(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? axis : -1;
}

// Reads the integers of a constant operand (int32 or int64). Returns false if the operand is absent or not constant.
bool ConstantInts(const Node& node, int input, std::vector<int64_t>& out);

std::string_view TypeName(mge_dtype type);

}  // namespace mge::cpu
