// SPDX-License-Identifier: Apache-2.0
// An elementwise program: one pass over memory that computes any number of connected elementwise nodes, tile by tile, by
// the micro-kernels of vec/tile.h. A single operator is a program of one instruction.
//
// All nodes have outputs of one shape. An operand is broadcast to it. 16-bit floats are computed in float; a result that
// another node reads is first rounded to its type, so that a chain gives the same bits as its nodes one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "support/work.h"
#include "vec/tile.h"

namespace mge::cpu {

inline constexpr int kMaxDims = 8;
inline constexpr int kMaxOperands = 48;   // inputs and outputs
inline constexpr int kMaxSteps = 512;     // instructions
inline constexpr int kMaxBuffers = 12;    // tiles that live at one time
inline constexpr int64_t kTileBytes = 4096;

// How a tile of an operand is found.
enum class Access : uint8_t {
  kDense,       // as the output lies
  kElement,     // one element for all
  kRow,         // rows of the output: the operand's element changes along the row, contiguous
  kRowElement,  // one element a row
  kGather,      // copied into a buffer for every tile
  kGatherOnce,  // the same for every tile: copied once
};

struct ProgramOperand {
  Slot slot;
  Access access = Access::kDense;
  uint8_t bytes = 0;  // of an element
  int16_t place = 0;  // where instructions find it
  int64_t inner_stride = 0;             // elements
  int64_t outer_strides[kMaxDims] = {};
};

// Places number operands, then outputs, then buffers.
struct ProgramStep {
  TileFn fn = nullptr;
  int16_t a = 0, b = 0, c = 0, out = 0;
  int32_t elements = 0;  // 0: the tile's
  float params[2] = {};
};

// What a launch reads; operands, outputs and steps follow it in memory.
struct ProgramHeader {
  int32_t operands = 0, outputs = 0;
  int32_t first_steps = 0;  // run once a chunk
  int32_t steps = 0;        // all of them
  int32_t outer_rank = 0;
  int64_t outer[kMaxDims] = {};
  int64_t inner = 1;
  int64_t total = 0;           // elements
  int64_t tile = 0;            // elements of a full tile
  int64_t tiles_per_row = 1;   // rows are cut into tiles...
  int64_t rows_per_tile = 1;   // ...or tiles hold whole rows
  Chunks chunks;               // of tiles
};

// A program for a problem of elementwise nodes, in the plain layout or with channels last.
class Program {
 public:
  // Fails with the reason why these nodes are no program.
  static Result Build(const Problem& problem, Isa isa, bool channels_last, std::unique_ptr<Program>* out);

  uint32_t args_bytes() const;
  void Write(const Binding& binding, void* args) const;  // into args_bytes() bytes
  double serial_us() const { return serial_us_; }
  // Inputs whose bytes the output may take over.
  const std::vector<uint32_t>& in_place() const { return in_place_; }

 private:
  friend class ProgramBuilder;
  ProgramHeader header_;
  std::vector<ProgramOperand> operands_;   // in order of places
  std::vector<int32_t> operand_inputs_;    // the problem's input behind each
  std::vector<ProgramOperand> outputs_;
  std::vector<ProgramStep> steps_;
  std::vector<uint32_t> in_place_;
  double serial_us_ = 0;
};

mge_code LaunchProgram(const ProgramHeader& header, const mge_run* run);

}  // namespace mge::cpu
