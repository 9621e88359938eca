// SPDX-License-Identifier: Apache-2.0
// Divides the inputs of a run among replicas, and joins their outputs.
//
// The batch is the first dimension of the model's first input that has dimensions. If the model leaves it open, every input
// with an open first dimension is divided; other inputs go to all replicas as they are. If the model fixes it, each replica
// gets as many examples, and every input with that first dimension is divided.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/plan_cache.h"

namespace mge {

// The examples of one replica.
struct BatchPart {
  int64_t begin = 0;
  int64_t size = 0;    // 1 if `counts` is 0
  int64_t counts = 0;  // number of examples that count: all of them, or none if there are fewer examples than replicas
};

class BatchDivision {
 public:
  // `outputs` are the inferred types of the graph's outputs. `loss_first`: output 0 is the loss.
  BatchDivision(const Graph& graph, std::span<const ValueType> outputs, bool loss_first, size_t replicas);

  // Returns the parts of a batch of so many examples, without regard to what a model fixes.
  static std::vector<BatchPart> Parts(int64_t examples, int64_t replicas);
  // Returns the parts of a batch. The first replicas have one example more if it does not divide evenly. Fails with kBadInput
  // if the inputs have different numbers of examples, none, or others than the model fixes.
  absl::StatusOr<std::vector<BatchPart>> Divide(std::span<const InputType> inputs) const;
  // Returns the part of input `i` for a replica, in the same memory.
  HostValue PartOf(size_t i, const HostValue& input, const BatchPart& part) const;
  InputType PartOf(size_t i, const InputType& input, const BatchPart& part) const;
  // Joins output `i` of all replicas along the batch. Returns that of the first replica if it has no such dimension.
  absl::StatusOr<HostValue> Join(size_t i, std::span<const HostValue* const> values, std::span<const BatchPart> parts,
                                 HostAllocator& allocator) const;

 private:
  // Whether the first dimension is the batch. kMaybe: the sizes in a run decide.
  enum class Divided { kNo, kYes, kMaybe };
  bool IsDivided(size_t i, const InputType& input) const;

  const int64_t replicas_;
  std::vector<std::string> names_;  // of the inputs
  std::vector<Divided> inputs_, outputs_;
  int64_t fixed_ = kUnknownDim;  // size of the batch that the model fixes
  std::string symbol_;           // of the batch; may be empty
};

}  // namespace mge
