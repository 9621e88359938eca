// SPDX-License-Identifier: Apache-2.0
// The step of a collective operator: enqueues one operation per operand on the run's queue, as one group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/graph.h"
#include "core/plan/communicator.h"
#include "mge/plugin.h"

namespace mge {

enum class CollectiveKind : int32_t { kAllReduce, kBroadcast, kExchange, kStartSum, kEndSum, kAllGather };

// An operand of a collective: its input, its output, and its elements. An exchange has one for each input and each output. The
// start of a sum has only inputs, its end only outputs.
struct CollectiveOperand {
  mge_slot from, to;
  uint64_t count;  // of a gather: in `from`, the part of this rank
  uint64_t whole;  // of a gather: in `to`
  mge_dtype dtype;
  bool sends;    // of an exchange: an input, with `from`; else an output, with `to`
  int32_t peer;  // of an exchange: the other rank; -1: nothing is copied
  int64_t key;   // of an exchange: equal on both ranks
};

// The arguments of RunCollectiveStep(), followed by the operands.
struct CollectiveStepArgs {
  Communicator* communicator;
  CollectiveKind kind;
  int32_t reduction;  // of kAllReduce
  uint32_t root;      // of kBroadcast
  uint32_t bucket;    // of kStartSum and kEndSum
  bool parts;         // of kStartSum: each rank needs only its part of the sums
  uint32_t operands;

  static size_t Bytes(size_t operands) { return sizeof(CollectiveStepArgs) + operands * sizeof(CollectiveOperand); }
  CollectiveOperand* list() { return reinterpret_cast<CollectiveOperand*>(this + 1); }
  const CollectiveOperand* list() const { return reinterpret_cast<const CollectiveOperand*>(this + 1); }
};

// Sets the operation of a node in `args`, and of an exchange the ranks and keys of the operands: inputs, then outputs. Fails
// with kInvalidNode if the node names something else than a rank, or if a part to gather is not that of `rank`.
absl::Status ReadCollective(const Node& node, uint32_t rank, uint32_t ranks, CollectiveStepArgs& args);

mge_code RunCollectiveStep(const void* args, const mge_run* run);

}  // namespace mge
