// SPDX-License-Identifier: Apache-2.0
// The loop over a chain's elements: reads operands, keeps values in registers, stores results.
#pragma once

#include "jit/chain.h"
#include "jit/vector_code.h"

namespace mge::cpu {

class LoopCode : public VectorCode {
 public:
  LoopCode(const Chain& chain, ChainRange range, Isa isa, uint8_t* buffer, size_t bytes);
  // Emits the whole function, whose loop computes up to `max_copies` vectors side by side. Throws Xbyak::Error if the code exceeds
  // the buffer, or if there are too few registers for so many copies.
  void Run(int max_copies);

 private:
  // A value while a body is emitted.
  struct State {
    Reg reg;                 // the register that holds it
    int slot = -1;           // its place on the stack; that of a single element is filled before the loop
    bool in_slot = false;    // whether the slot holds it
    bool in_memory = false;  // whether it is an operand, which can be read again
    bool pinned = false;     // whether the current step reads it
    std::vector<int> reads;  // the steps that read it, in order
  };

  const ChainValue& Value(int v) const { return chain_.values[static_cast<size_t>(v)]; }
  State& Of(int v) { return states_[static_cast<size_t>(v)]; }
  bool IsStored(int v) const { return Value(v).output || Value(v).last_use >= range_.last; }

  // Before the code: finds aliases, reads of values, and registers of addresses.
  void Plan();
  bool PlanAlias(ChainStep& step);
  void PlanRead(int v, int step);
  void PlanAddresses();

  // The parts of the function.
  void Prologue();
  void SplatElement(int v);
  void ComputeSingles();
  void Epilogue();
  void Loop(int copies);
  void Tail();
  void Body(int copies, bool is_tail);
  void EmitStep(const ChainStep& s);
  Reg Compute(const ChainStep& s, Reg a);
  Reg EmitLimit(TileOp op, const Reg& x, float limit);
  Reg EmitCast(const ChainStep& s, Reg a);
  Reg EmitQuantization(const ChainStep& s, Reg a);

  // Returns a value in a register, which the caller owns if no later step reads it.
  Reg Take(int v);
  // Returns a value as the last operand of an instruction.
  Arg ArgOf(int v, Reg* holder);
  void Spill() override;
  Xbyak::Address SlotOf(State& s, int copy);

  // Memory.
  Reg Read(int v);
  void ReadTail(mge_dtype type, int number, const Xbyak::Address& from);
  void Widen(mge_dtype type, int number, const Xbyak::Operand& from);
  void Write(int v, const Reg& r);
  void WriteElement(int v, const Reg& r);
  void WriteTail(int v, const Reg& packed);
  void Store(int number, int bytes, const Xbyak::Address& to);
  Reg Pack(mge_dtype type, const Reg& r);
  void PackBytes(int to, int from);
  void CopyTail(const Xbyak::RegExp& at, int bytes, bool in);
  Xbyak::RegExp AddressOf(int v);
  Xbyak::Opmask TailMask() const { return Xbyak::Opmask(1); }

  const Chain& chain_;
  const ChainRange range_;
  std::vector<ChainStep> steps_;    // for whole tiles, without aliases
  std::vector<ChainStep> singles_;  // of single elements, which run before the loop
  std::vector<int> same_;           // for each value, the value that it is another name of
  std::vector<State> states_;
  std::vector<std::pair<int, int>> addresses_;  // place, number of its general register
  size_t frame_at_ = 0;                         // position of the frame's size in the code
  int weight_ = 0;
  int slots_ = 0;
  int step_ = 0;          // of the body that is emitted
  bool is_tail_ = false;  // whether the body is that of the last elements
  Xbyak::Label constant_label_, mask_label_;
};

}  // namespace mge::cpu
