// SPDX-License-Identifier: Apache-2.0
// Dynamic tensor rematerialisation: which value to evict when memory is short.
//
// The algorithm is that of MegEngine. Time is virtual: an operator costs the bytes of its inputs and outputs, and advances the
// clock by 1e-8 of that. The policy evicts the candidate with the lowest score
//
//   (neighbour cost + 1e-3) * 1.0001^recomputations / ((size + adjacent free memory) in MiB * (time since last use + 1e-3))
//
// The neighbour cost is what a recomputation would cost in addition, because inputs or other outputs of the value's operator
// are evicted too: the sum, over these, of the cost of their component of evicted values. The pools of MGE do not tell how much
// free memory is adjacent to a block, so that term is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/eager/evicted_components.h"

namespace mge {

struct ComputingPath;

// A value as the policy sees it.
struct PathValue {
  static constexpr size_t kNoCandidate = SIZE_MAX;

  int64_t bytes = 0;
  double cost = 0;                // of the operator that computes the value
  int64_t recomputations = 0;     // how often it was computed again
  double last_used = 0;           // virtual time
  int pins = 0;                   // above 0: the value is in use and must stay
  bool evicted = false;           // the value is to be recomputed from `path`
  ComputingPath* path = nullptr;  // how the value is computed; nullptr: unknown, so it cannot be evicted
  std::shared_ptr<EvictedComponent> component = {};
  size_t candidate = kNoCandidate;  // index in the policy's list
};

// The inputs and outputs of one operator, from which its outputs can be computed again.
struct ComputingPath {
  std::vector<PathValue*> inputs;   // nullptr: absent
  std::vector<PathValue*> outputs;  // nullptr: too small, or deleted
};

// Not thread-safe. Values that are candidates must be removed before they are destroyed.
class EvictionPolicy {
 public:
  double now() const { return now_; }
  // Advances the clock by the work of an operator. Returns its cost.
  double Advance(int64_t bytes_of_inputs_and_outputs);
  void Use(PathValue& value) const { value.last_used = now_; }

  // Adds a value that is in memory to the candidates.
  void Add(PathValue& value);
  // Removes a value from the candidates. Does nothing if it is none.
  void Remove(PathValue& value);
  size_t candidates() const { return candidates_.size(); }

  // Returns the sum of the costs of the evicted neighbours of a value that has a path.
  double NeighbourCost(const PathValue& value) const;
  // Returns the score of a value that has a path. The lowest one is evicted first.
  double Score(const PathValue& value) const;
  // Returns the candidate to evict, larger than `minimum` bytes; nullptr if there is none.
  /*nullable*/ PathValue* Best(int64_t minimum) const;

  // Marks a value with a path as evicted, and joins its component with those of its evicted neighbours.
  void Evict(PathValue& value);
  // Marks an evicted value as recomputed: its component loses its cost.
  void Recompute(PathValue& value);

 private:
  double now_ = 0;
  std::vector<PathValue*> candidates_;
};

}  // namespace mge
