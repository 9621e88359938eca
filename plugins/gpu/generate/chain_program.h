// SPDX-License-Identifier: Apache-2.0
// A chain of elementwise nodes as a program, from which chain_source.h generates a kernel. All results have one shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/recipe.h"

namespace mge::gpu {

// Returns the C++ type of an element in memory ("f16"), and that in which kernels compute with it ("float").
const char* StorageType(mge_dtype t);
const char* ComputeType(mge_dtype t);

// How a kernel reads an operand, beside the elements of the result.
enum class Access : uint8_t {
  kDense,         // element i, once
  kOne,           // always its only element
  kRows,          // by strides; neighbouring elements of the result are neighbours in it
  kRepeatedRows,  // by strides; neighbouring elements of the result have the same element
};

// One function of one node. Values are numbered: first the inputs, then the results of the steps.
struct ProgramStep {
  std::string expression;  // of values v0, v1, ...; its result is rounded to `type`
  mge_dtype type;
};

// A chain. Two chains with equal programs differ in dimensions only.
struct ChainProgram {
  struct Input {
    mge_dtype type;
    Access access;
  };
  std::vector<Input> inputs;
  std::vector<ProgramStep> steps;
  std::vector<int> outputs;  // steps whose results are written
  int rank = 1;              // dimensions that operands with strides need; 1: none has strides
  int width = 1;             // elements that a thread reads at once
  bool wide_index = false;   // element numbers need 64 bits
};

// A chain with the arguments of its kernel.
struct ChainLaunch {
  ChainProgram program;
  int64_t elements = 0;
  std::vector<int64_t> dims;                  // if the program's rank is above 1
  std::vector<std::vector<int64_t>> strides;  // of the operands with strides, in their order
  std::vector<Operand> pointers;              // inputs, then outputs
  std::vector<mge_in_place> in_place;         // inputs whose memory an output may use

  // Returns the kernel's argument struct with empty pointers.
  std::vector<int64_t> Arguments() const;
  // Returns the number of threads that the kernel needs, one per `width` elements.
  int64_t threads() const { return (elements + program.width - 1) / program.width; }
};

// Returns whether a node can be part of a generated chain.
bool FitsChain(const Node& n);
// Writes the chain that computes a problem whose operands have the layout. Fails with the reason if there is none.
Result BuildChain(const Problem& p, Layout layout, ChainLaunch* out);

}  // namespace mge::gpu
