// SPDX-License-Identifier: Apache-2.0
// The instructions of an elementwise program as data: the description from which machine code is generated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "vec/tile.h"

namespace mge::cpu {

// A value that instructions read or write.
struct ChainValue {
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  bool single = false;    // one element, used for the whole tile
  bool constant = false;  // a single float32 whose value is `number`
  bool output = false;    // an output of the program
  float number = 0;
  int place = 0;      // index of its address among the program's places
  int last_use = -1;  // index of the last step that reads it; -1: none
};

// out = op(a, b, c). Operands that an instruction lacks are -1.
struct ChainStep {
  TileOp op = TileOp::kNone;
  mge_dtype half = MGE_DTYPE_UNDEFINED;  // of kRoundTo
  int a = -1, b = -1, c = -1, out = -1;  // indices into Chain::values
  float params[2] = {};
};

// The instructions that a program runs for each tile, in order. Instructions for whole tiles start at `first`; those before it
// compute single elements.
struct Chain {
  std::vector<ChainValue> values;
  std::vector<ChainStep> steps;
  int first = 0;
};

// A range of a chain's steps.
struct ChainRange {
  int first = 0;
  int last = 0;  // exclusive
};

// Returns the name of an instruction, as in "add".
const char* NameOf(TileOp op);

// Returns the steps as text, one a line. Equal texts mean equal code: values are numbered by their first use, and the text has
// everything else that code depends on. Infinities and NaN are written by their bits.
std::string TextOf(const Chain& chain, ChainRange range);

}  // namespace mge::cpu
