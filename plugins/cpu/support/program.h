// SPDX-License-Identifier: Apache-2.0
// An elementwise program: computes any number of connected elementwise nodes in one pass over memory. A single operator is a
// program of one instruction.
//
// The stage exists because memory is the limit of elementwise nodes: one pass reads and writes each value of a chain once.
//
// Algorithm
//   - The output is processed in tiles of about kTileBytes, which fit into the first-level cache. Each instruction runs a
//     micro-kernel of vec/tile.h on a whole tile.
//   - Program::Build translates the nodes to instructions. Values between nodes are kept in at most kMaxBuffers tile
//     buffers, which are reused when a value has no further use.
//   - Instructions whose operands are the same for every tile run once per chunk.
//   - Instead, MakeCode() replaces the instructions by generated machine code, which keeps values in registers (jit/). Those
//     that it cannot express stay micro-kernels, and buffers pass values between them and the code. Both give the same bits.
//   - Dimensions are merged where possible, and each operand gets the cheapest Access for its broadcasting.
//
// All nodes have outputs of one shape, and operands are broadcast to it. 16-bit floats are computed in float. A result that
// another node reads is first rounded to its type, so that a chain gives the same bits as its nodes one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jit/chain_code.h"
#include "mge/plugin.hpp"
#include "support/operator_tuning.h"
#include "support/work.h"
#include "vec/tile.h"

namespace mge::cpu {

inline constexpr int kMaxDims = 8;
inline constexpr int kMaxOperands = 48;  // inputs plus outputs
inline constexpr int kMaxSteps = 512;    // instructions
inline constexpr int kMaxBuffers = 12;   // tiles in use at the same time
inline constexpr int64_t kTileBytes = 4096;

// The way an instruction reads a tile of an operand.
enum class Access : uint8_t {
  kDense,       // same order as the output
  kElement,     // one element for the whole output
  kRow,         // contiguous along a row; each row starts elsewhere
  kRowElement,  // one element per row
  kGather,      // copied into a buffer for each tile
  kGatherOnce,  // copied into a buffer once: the same for every tile
};

// An operand of a program, with its access and strides.
struct ProgramOperand {
  Slot slot;
  Access access = Access::kDense;
  uint8_t bytes = 0;         // bytes per element
  int16_t place = 0;         // index under which instructions find it
  int64_t inner_stride = 0;  // elements
  int64_t outer_strides[kMaxDims] = {};
};

// An instruction, or generated code for several. Places number the operands, then the outputs, then the buffers.
struct ProgramStep {
  TileFn fn = nullptr;
  ChainFn code = nullptr;  // if it is not null, only this is called
  int16_t a = 0, b = 0, c = 0, out = 0;
  int32_t elements = 0;  // 0: as many as the tile has
  float params[2] = {};
};

// The beginning of a launch's arguments. Operands, outputs and steps follow it in memory.
struct ProgramHeader {
  int32_t operands = 0, outputs = 0;
  int32_t first_steps = 0;  // steps that run once per chunk
  int32_t steps = 0;        // number of all steps
  int32_t outer_rank = 0;
  int64_t outer[kMaxDims] = {};
  int64_t inner = 1;
  int64_t total = 0;             // number of elements
  int64_t tile = 0;              // elements of a full tile
  int64_t tiles_per_row = 1;     // several tiles per row...
  int64_t rows_per_tile = 1;     // ...or several rows per tile
  bool joins_tiles = false;      // no buffer is used, so that the tiles of a row can be computed as one
  Chunks chunks;                 // chunks of tiles
  MeasuredWork* work = nullptr;  // if measured times decide about threads
};

// A program for a problem of elementwise nodes, plain or with channels last.
class Program {
 public:
  // Builds the program. Fails with the reason if the nodes are not supported.
  static Result Build(const Problem& problem, Isa isa, bool channels_last, std::unique_ptr<Program>* out);

  uint32_t args_bytes() const;
  void Write(const Binding& binding, void* args) const;  // `args` has args_bytes() bytes
  double serial_us() const { return serial_us_; }
  // Estimates the same for the program with generated code.
  double code_us(const CodePlan& plan) const;
  const Chain& chain() const { return chain_; }
  // Replaces instructions by machine code where that is possible. Fails, and leaves the program as it is, if the system refuses
  // executable pages. [any]
  Result MakeCode(Isa isa, Compiler compiler);
  // Returns the inputs whose memory the output may use.
  const std::vector<uint32_t>& in_place() const { return in_place_; }

 private:
  friend class ProgramBuilder;
  ProgramHeader header_;
  std::vector<ProgramOperand> operands_;  // sorted by place
  std::vector<int32_t> operand_inputs_;   // for each operand, the number of the problem's input
  std::vector<ProgramOperand> outputs_;
  std::vector<ProgramStep> steps_;
  Chain chain_;  // describes steps_, until MakeCode()
  std::vector<std::shared_ptr<const ChainCode>> codes_;
  std::vector<uint32_t> in_place_;
  double serial_us_ = 0;
  double bytes_ = 0;     // of all operands and outputs
  double calls_us_ = 0;  // the part of it for calls of micro-kernels
  std::unique_ptr<MeasuredWork> work_;
};

mge_code LaunchProgram(const ProgramHeader& header, const mge_run* run);

}  // namespace mge::cpu
