// SPDX-License-Identifier: Apache-2.0
// Problems for kernels: one operator, an element type, odd shapes, two sets of data, and what the reference evaluators
// make of them.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/op.h"

namespace mge::conform {

// A graph of one node with all types known; its inputs are the operands that are not constants.
struct Case {
  const OpDef* def = nullptr;
  DType dtype = DType::kUndefined;
  std::string recipe;  // "MatMul(T[3,5], T[5,7])": names the case in reports
  Graph graph;
  std::vector<Tensor> inputs[2];    // two sets of data for the graph's inputs
  std::vector<Tensor> expected[2];  // of the graph's outputs

  std::string Name() const;  // "MatMul(T[3,5], T[5,7]) T=float32"
  double Work() const;       // the more, the longer a run takes, as far as sizes tell
};

// Operators that backends may be given, by name.
std::vector<const OpDef*> CheckableOps();
// The few that --quick looks at.
std::vector<const OpDef*> QuickOps();
// Element types that the operator's first typed operand may have.
std::vector<DType> TypesOf(const OpDef& def);

// What is tried for an operator: recipes of its own, else some made from its schema.
//   MatMul(T[3,5], T[5,7])                       T: the element type of the case
//   Slice(T[4,6], int64[2]<0,1>, int64[2]<3,5>)  with values: a constant
//   Log(T[7]@0.1:3)                              values from a range
//   Relu(T[67]@special)                          NaN, infinities, zeros of both signs; only of float32
//   Add(T[3,7], =0)                              operand 0 again
//   Split(T[6]) {num_outputs=3} -> 3             outputs; 1 if not said
std::vector<std::string> RecipesFor(const OpDef& def);

// Which of a recipe's inputs are constants: none, every one but the first, or the first one alone.
enum class Constants { kNone, kOthers, kFirst };

// The case of a recipe. An error if the operator does not allow it: the reference has the last word.
absl::StatusOr<Case> MakeCase(const OpDef& def, DType dtype, const std::string& recipe,
                              Constants constants = Constants::kNone);

// A case of several nodes.
absl::StatusOr<Case> CaseOfGraph(Graph graph, std::string name, DType dtype);

// The same node with only the first row (dimension 0) of its first input, and of the data; an error if that is no case.
absl::StatusOr<Case> FirstRowOf(const Case& c);

// Seeded values; floats in [low, high], integers rounded.
Tensor RandomTensor(DType dtype, Shape shape, double low, double high, uint64_t seed);
double ElementAt(const Tensor& t, int64_t i);

// "" or how `got` differs by more than the type's rounding excuses. `reduced`: the kernel computes in less.
std::string CompareWithReference(const Tensor& got, const Tensor& want, bool reduced);

}  // namespace mge::conform
