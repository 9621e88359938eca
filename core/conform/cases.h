// SPDX-License-Identifier: Apache-2.0
// Test cases for kernels: one operator, an element type, shapes (many with odd sizes), two sets of input data, and the
// results of the reference evaluators.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/op.h"

namespace mge::conform {

// The inputs of a spec that become constants: none, all except the first, or only the first.
enum class Constants { kNone, kOthers, kFirst };

// A test case: a graph of one node (or of one group of nodes) with all types known. The graph's inputs are the operands that
// are not constants.
struct Case {
  const OpDef* def = nullptr;
  DType dtype = DType::kUndefined;
  std::string spec;  // "MatMul(T[3,5], T[5,7])"; the name of the case in reports
  Constants constants = Constants::kNone;
  bool once = false;  // a large case, for which one short test is enough
  Graph graph;
  std::vector<Tensor> inputs[2];    // two sets of data for the graph's inputs
  std::vector<Tensor> expected[2];  // the reference results for the graph's outputs

  std::string Name() const;  // "MatMul(T[3,5], T[5,7]) T=float32"
  double Work() const;       // an estimate of the run time from the sizes, without a unit
};

// The element types of cases.
inline constexpr DType kCaseTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                                       DType::kI16, DType::kI32, DType::kI64, DType::kU8,   DType::kU16,
                                       DType::kU32, DType::kU64, DType::kBool};

// Returns the operators that a backend may be asked to run, sorted by name.
std::vector<const OpDef*> CheckableOps();
// Returns the operators that --quick checks.
std::vector<const OpDef*> QuickOps();
// Returns the element types that the operator's first typed operand may have.
std::vector<DType> TypesOf(const OpDef& def);

// Returns the specs of an operator: its examples (OpDef::examples), else those of an elementwise operator. The form of a
// spec, which begins with the operator's name, and of an example, which does not:
//   MatMul(T[3,5], T[5,7])                       T: the element type of the case
//   Slice(T[4,6], int64[2]<0,1>, int64[2]<3,5>)  an operand with values is a constant
//   Log(T[7]@0.1:3)                              values from a range
//   Relu(T[67]@special)                          NaN, infinities, zeros of both signs; the limits of integers of 32 bits or
//                                                more, and numbers that neither 32 bits nor a double hold
//   Softmax(T[9,7]@rare)                         some NaN and infinities among random values, and first only -infinity;
//                                                float32 only
//   Add(T[3,7], =0)                              operand 0 is used again
//   Split(T[6]) {num_outputs=3} -> 3             the number of outputs; default 1
//   Softmax@11(T[2,3,5])                         a node of an older operator set
//   MatMul(T[7,1030], T[1030,5]) once            a large case: float32 only, few runs, and no variations
// One example may hold several, separated by ';'.
std::vector<std::string> SpecsFor(const OpDef& def);

// The parts of a spec.
struct CaseSpec {
  std::string op;
  int version = 0;                                              // 0: the newest
  std::vector<std::string> operands;                            // "T[3,5]@0:1"
  std::vector<std::pair<std::string, std::string>> attributes;  // "strides", "[2,3]"
  int outputs = 1;
  bool once = false;

  std::string AttributesText() const;  // "{strides=[2,3]}", or "" if there are none
  std::string Text() const;
};

CaseSpec ParseSpec(const std::string& text);

// The parts of one operand of a spec.
struct SpecOperand {
  std::string type;  // "T[3,5]", or "int64[2]<0,1>" of a constant
  bool absent = false, constant = false, ranged = false, special = false, rare = false;
  double low = 0, high = 0;
  int same_as = -1;  // the operand that is used again; -1: none
};

SpecOperand ParseOperand(const std::string& text);

// Returns further specs, derived from the small ones of SpecsFor(): see variations.cc.
std::vector<std::string> VariationsOf(const OpDef& def);

// Creates the case of a spec. Fails if the operator, according to the reference evaluator, does not allow it.
absl::StatusOr<Case> MakeCase(const OpDef& def, DType dtype, const std::string& spec,
                              Constants constants = Constants::kNone);

// Creates a case of several nodes. Fails if the reference evaluators cannot run the graph.
absl::StatusOr<Case> CaseOfGraph(Graph graph, std::string name, DType dtype);

// Returns the case with only the first row (index 0 of dimension 0) of its first input. Fails if the operator does not allow
// it.
absl::StatusOr<Case> FirstRowOf(const Case& c);

std::vector<unsigned char> BytesOf(const Tensor& t);
// Returns a tensor with a copy of these bytes.
Tensor TensorOf(DType dtype, const Shape& shape, const void* bytes);
// Returns a tensor of pseudo-random values in [low, high]; integers are rounded. The same seed gives the same values.
Tensor RandomTensor(DType dtype, Shape shape, double low, double high, uint64_t seed);
long double ElementAt(const Tensor& t, int64_t i);  // exact

// Returns "" if `got` equals `want` within the tolerance of the element type, else a sentence about the difference.
// `reduced`: the kernel computes with reduced precision, so the tolerance is larger.
std::string CompareWithReference(const Tensor& got, const Tensor& want, bool reduced);

}  // namespace mge::conform
