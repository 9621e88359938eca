// SPDX-License-Identifier: Apache-2.0
// Operators that do more than compute new outputs: exchange data with other ranks, or write to an input's memory.
#pragma once

#include "core/ops/op.h"

namespace mge {

// Returns whether the operator exchanges data with other ranks.
constexpr bool IsCollective(const OpDef& def) {
  return def.Is(kAllReduce) || def.Is(kBroadcast) || def.Is(kExchange) || def.Is(kStartsSum) || def.Is(kEndsSum) ||
         def.Is(kGathers);
}
// Returns whether output 0 must use the memory of input 0.
constexpr bool IsUpdate(const OpDef& def) { return def.Is(kAssigns) || def.Is(kAccumulates); }
// Returns whether the planner may fold and merge such nodes.
constexpr bool IsPure(const OpDef& def) { return !def.Is(kRandom) && !IsCollective(def) && !IsUpdate(def); }
// Returns whether an attribute of the node is a body, as those of If and Loop.
bool HasBody(const Node& node);

// Returns the operator without side effects that computes the output of an accumulating node from the same inputs.
const OpDef& PlainForm(const OpDef& def);

// Returns the state whose memory the value uses: the value itself if its role is kState, or the target of the updates that
// produce it. Returns kNone for other values.
ValueId StateOf(const Graph& graph, ValueId v);
// Returns the number of updates between a state and a value that has its memory.
uint32_t VersionOf(const Graph& graph, ValueId v);

// Turns every constant that an update has as target into a state, whose first elements are those of the constant.
void MarkStates(Graph& graph);

}  // namespace mge
