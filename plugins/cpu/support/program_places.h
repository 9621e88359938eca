// SPDX-License-Identifier: Apache-2.0
// The values and instructions of an elementwise program while it is built, and where the values are kept.
#pragma once

#include <vector>

#include "jit/chain.h"
#include "support/program.h"

namespace mge::cpu {

// A value that instructions read or write.
struct Datum {
  enum Kind : uint8_t { kOperand, kOutput, kBuffer } kind = kBuffer;
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int index = 0;          // of an operand or output
  bool once = false;      // the same for every tile
  bool single = false;    // one element, used for the whole tile
  bool constant = false;  // a single float32 whose value is `number`
  float number = 0;
  int place = -1;
  int last_use = -1;  // index of the last step that reads it
};

// An instruction: the function that computes it, and its description.
struct Step {
  TileFn fn = nullptr;
  TileOp op = TileOp::kNone;
  mge_dtype half = MGE_DTYPE_UNDEFINED;  // of kRoundTo
  int a = -1, b = -1, c = -1, out = -1;  // indices of values
  bool once = false;
  float params[2] = {};
};

// Orders the steps, those that run once first, and gives each value a place: an operand's own, or one of kMaxBuffers buffers
// behind the operands and outputs. This is the allocation of registers for a straight program: a result takes the buffer of an
// operand whose last use is its step, or a free one. Values that are computed once, before the loop, keep their buffers to the
// end. Sets the operands' places; one that no step reads needs no gathering any more. Fails with the reason if buffers run out.
Result AssignPlaces(int outputs, std::vector<Datum>& data, std::vector<Step>& steps, std::vector<ProgramOperand>& operands);

// Returns the steps with the places that AssignPlaces() gave to their values.
std::vector<ProgramStep> StepsOf(const std::vector<Datum>& data, const std::vector<Step>& steps);
// Returns the description of the steps for each tile.
Chain ChainOf(const std::vector<Datum>& data, const std::vector<Step>& steps);

}  // namespace mge::cpu
