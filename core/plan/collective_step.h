// SPDX-License-Identifier: Apache-2.0
// The step of a collective operator: enqueues one operation per operand on the run's queue, as one group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/graph.h"
#include "core/plan/communicator.h"
#include "mge/plugin.h"

namespace mge {

// An operand of a collective: its input, its output, and its elements.
struct CollectiveOperand {
  mge_slot from, to;
  uint64_t count;
  mge_dtype dtype;
};

// The arguments of RunCollectiveStep(), followed by the operands.
struct CollectiveStepArgs {
  Communicator* communicator;
  bool reduces;  // else broadcasts
  int32_t reduction;
  uint32_t root;
  uint32_t operands;

  static size_t Bytes(size_t operands) { return sizeof(CollectiveStepArgs) + operands * sizeof(CollectiveOperand); }
  CollectiveOperand* list() { return reinterpret_cast<CollectiveOperand*>(this + 1); }
  const CollectiveOperand* list() const { return reinterpret_cast<const CollectiveOperand*>(this + 1); }
};

// Sets the operation of a node in `args`. Fails with kInvalidNode if the node names a root that is not a rank.
absl::Status ReadCollective(const Node& node, uint32_t ranks, CollectiveStepArgs& args);

mge_code RunCollectiveStep(const void* args, const mge_run* run);

}  // namespace mge
