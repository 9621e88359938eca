// SPDX-License-Identifier: Apache-2.0
#include "jit/loop_code.h"

#include <algorithm>
#include <cmath>

#include "jit/expressible.h"
#include "jit/generator.h"
#include "jit/step_code.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

// The frame begins with two scratch vectors: elements of CopyTail(), and the mask of the last elements for AVX2.
constexpr int kScratchSlots = 2;
constexpr int kSavedRegisters = 5;
constexpr int kLightWeight = 30;  // bodies up to it have kMaxCopies copies
constexpr int kHeavyWeight = 90;  // steps from it on need most of the 16 registers of AVX2
constexpr int kBeforeLoop = -1;   // the number of every step of single elements

// Registers that hold addresses of operands and results through the loop. rdi: places, rsi: count, rcx: position, rdx: its
// limit, r9: constants; rax, r10, r11: scratch.
constexpr Xbyak::Operand::Code kAddressRegisters[] = {Xbyak::Operand::R8,  Xbyak::Operand::RBX, Xbyak::Operand::R12,
                                                      Xbyak::Operand::R13, Xbyak::Operand::R14, Xbyak::Operand::R15};

}  // namespace

LoopCode::LoopCode(const Chain& chain, ChainRange range, Isa isa, uint8_t* buffer, size_t bytes)
    : VectorCode(isa, buffer, bytes), chain_(chain), range_(range), slots_(kScratchSlots) {}

void LoopCode::Run(int max_copies) {
  Plan();
  Prologue();
  xor_(ecx, ecx);
  const bool is_heavy = !is_wide() && std::any_of(steps_.begin(), steps_.end(),
                                                  [](const ChainStep& s) { return WeightOf(s.op) >= kHeavyWeight; });
  const int copies = std::min(weight_ <= kLightWeight ? kMaxCopies : is_heavy ? 1 : 2, max_copies);
  if (copies > 1) Loop(copies);
  Loop(1);
  Tail();
  Epilogue();
}

// ---------------------------------------------------------------- planning

void LoopCode::Plan() {
  states_.resize(chain_.values.size());
  same_.resize(chain_.values.size());
  for (size_t v = 0; v < same_.size(); ++v) same_[v] = static_cast<int>(v);
  for (int i = range_.first; i < range_.last; ++i) {
    ChainStep step = chain_.steps[static_cast<size_t>(i)];
    for (int* operand : {&step.a, &step.b, &step.c}) {
      if (*operand >= 0) *operand = same_[static_cast<size_t>(*operand)];
    }
    if (PlanAlias(step)) continue;
    const bool single = Value(step.out).single;
    const int number = single ? kBeforeLoop : static_cast<int>(steps_.size());
    for (int operand : {step.a, step.b, step.c}) {
      if (operand >= 0) PlanRead(operand, number);
    }
    (single ? singles_ : steps_).push_back(step);
    weight_ += single ? 0 : WeightOf(step.op);
  }
  PlanAddresses();
}

// Handles steps that change no lane: the result is another name of the operand. Returns whether no code is needed. A stored
// result is a copy.
bool LoopCode::PlanAlias(ChainStep& step) {
  const mge_dtype from = Value(step.a).type, to = Value(step.out).type;
  const bool read = Value(step.out).last_use >= 0 && Value(step.out).last_use >= range_.first;
  bool alias = step.op == TileOp::kCopy || step.op == TileOp::kSplat;
  if (step.op == TileOp::kCast) {
    alias = from == to || (IsHalf(from) && to == MGE_DTYPE_F32);
    if (!alias && IsHalf(to) && (from == MGE_DTYPE_F32 || IsHalf(from))) {
      if (read) {
        step.op = TileOp::kRoundTo;
        step.half = to;
      } else {
        alias = true;  // a store rounds
      }
    }
  }
  if (!alias) return false;
  same_[static_cast<size_t>(step.out)] = step.a;
  step.op = TileOp::kCopy;
  return !IsStored(step.out);
}

void LoopCode::PlanRead(int v, int step) {
  State& s = Of(v);
  if (s.reads.empty()) {
    const auto computes = [&](const ChainStep& t) { return t.out == v && t.op != TileOp::kCopy; };
    const bool computed =
        std::any_of(steps_.begin(), steps_.end(), computes) || std::any_of(singles_.begin(), singles_.end(), computes);
    s.in_memory = !computed;
    if (!computed && Value(v).single && !Value(v).constant) s.slot = slots_++;
  }
  if (std::find(s.reads.begin(), s.reads.end(), step) != s.reads.end()) return;
  s.reads.insert(std::upper_bound(s.reads.begin(), s.reads.end(), step), step);
}

// Gives registers to the places that are read or written first.
void LoopCode::PlanAddresses() {
  auto add = [&](int v) {
    if (Value(v).single) return;
    const int place = Value(v).place;
    const auto known = [&](const auto& p) { return p.first == place; };
    if (std::any_of(addresses_.begin(), addresses_.end(), known)) return;
    if (addresses_.size() < std::size(kAddressRegisters)) {
      addresses_.emplace_back(place, static_cast<int>(kAddressRegisters[addresses_.size()]));
    }
  };
  for (const ChainStep& s : steps_) {
    for (int operand : {s.a, s.b, s.c}) {
      if (operand >= 0 && Of(operand).in_memory) add(operand);
    }
    if (IsStored(s.out)) add(s.out);
  }
}

// ---------------------------------------------------------------- the function around the bodies

void LoopCode::Prologue() {
  push(rbp);
  mov(rbp, rsp);
  for (const Xbyak::Reg64& r : {rbx, r12, r13, r14, r15}) push(r);
  sub(rsp, 0x7fffff00);  // Epilogue() writes the size of the frame
  frame_at_ = getSize() - 4;
  and_(rsp, -64);
  lea(constants_, ptr[rip + constant_label_]);
  for (const auto& [place, number] : addresses_) mov(Xbyak::Reg64(number), ptr[rdi + place * 8]);
  for (size_t v = 0; v < states_.size(); ++v) {
    if (states_[v].slot >= 0) SplatElement(static_cast<int>(v));
  }
  ComputeSingles();
}

// Fills the slot of a single element.
void LoopCode::SplatElement(int v) {
  const Reg r = New();
  const Xbyak::Xmm full = Full(r, 0), low = Xbyak::Xmm(full.getIdx());
  const mge_dtype type = Value(v).type;
  mov(rax, ptr[rdi + Value(v).place * 8]);
  if (type == MGE_DTYPE_F32) {
    vbroadcastss(full, ptr[rax]);
  } else {
    if (IsHalf(type)) {
      movzx(eax, word[rax]);
      if (type == MGE_DTYPE_BF16) shl(eax, 16);
    } else if (type == MGE_DTYPE_I8) {
      movsx(eax, byte[rax]);
    } else {
      movzx(eax, byte[rax]);
    }
    if (type == MGE_DTYPE_BOOL) {  // all bits set, or none
      neg(eax);
      sbb(eax, eax);
    }
    vmovd(low, eax);
    if (type == MGE_DTYPE_F16) vcvtph2ps(low, low);
    vbroadcastss(full, low);
  }
  vmovups(SlotOf(Of(v), 0), full);
  Of(v).in_slot = true;
}

// Computes the steps of single elements, with one element in all lanes, and keeps the results in slots.
void LoopCode::ComputeSingles() {
  step_ = kBeforeLoop;
  for (const ChainStep& s : singles_) {
    EmitStep(s);
    State& out = Of(s.out);
    if (!out.reg.valid()) continue;
    vmovups(SlotOf(out, 0), Full(out.reg, 0));
    out.reg = {};
    out.in_slot = out.in_memory = true;
  }
  for (State& s : states_) s.reg = {};
}

void LoopCode::Epilogue() {
  const int frame = (slots_ * width() + 63) / 64 * 64 + 64;
  rewrite(frame_at_, static_cast<uint64_t>(frame), 4);
  lea(rsp, ptr[rbp - kSavedRegisters * 8]);
  for (const Xbyak::Reg64& r : {r15, r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  vzeroupper();
  ret();
  align(64);
  L(mask_label_);
  for (int i = 0; i < 16; ++i) dd(i < 8 ? 0xffffffffu : 0u);
  WriteConstants(constant_label_);
}

// Runs bodies of so many vectors while enough elements are left.
void LoopCode::Loop(int copies) {
  Xbyak::Label begin, end;
  const int step = copies * lanes();
  mov(rdx, rsi);
  sub(rdx, step);
  cmp(rcx, rdx);
  jg(end, T_NEAR);
  align(32);
  L(begin);
  Body(copies, /*is_tail=*/false);
  add(rcx, step);
  cmp(rcx, rdx);
  jle(begin, T_NEAR);
  L(end);
}

// The last elements: rdx of them, fewer than a vector.
void LoopCode::Tail() {
  Xbyak::Label end;
  mov(rdx, rsi);
  sub(rdx, rcx);
  jz(end, T_NEAR);
  if (is_wide()) {
    mov(eax, 0xffff);
    bzhi(eax, eax, edx);
    kmovw(TailMask(), eax);
  } else {
    const Xbyak::Ymm mask = ymm0;
    lea(r10, ptr[rip + mask_label_ + width()]);
    mov(rax, rdx);
    shl(rax, 2);
    sub(r10, rax);
    vmovups(mask, ptr[r10]);
    vmovups(ptr[rsp + width()], mask);
    vxorps(mask, mask, mask);
    vmovups(ptr[rsp], mask);
  }
  Body(1, /*is_tail=*/true);
  L(end);
}

// ---------------------------------------------------------------- bodies

void LoopCode::Body(int copies, bool is_tail) {
  SetCopies(copies);
  is_tail_ = is_tail;
  for (State& s : states_) {
    if (!s.in_memory) s.in_slot = false;
  }
  for (step_ = 0; step_ < static_cast<int>(steps_.size()); ++step_) EmitStep(steps_[static_cast<size_t>(step_)]);
  SetCopies(1);
}

void LoopCode::EmitStep(const ChainStep& s) {
  for (int operand : {s.a, s.b, s.c}) {
    if (operand >= 0) Of(operand).pinned = true;
  }
  if (s.op == TileOp::kCopy) {
    const Reg a = Take(s.a);
    Write(s.out, a);
  } else {
    Reg r = Compute(s, Take(s.a));
    if (IsStored(s.out)) Write(s.out, r);
    if (State& out = Of(s.out); !out.reads.empty()) out.reg = r.owned() ? std::move(r) : Load(r);
  }
  for (int operand : {s.a, s.b, s.c}) {
    if (operand < 0) continue;
    State& state = Of(operand);
    state.pinned = false;
    if (state.reads.back() <= step_) state.reg = {};
  }
}

Reg LoopCode::Compute(const ChainStep& s, Reg a) {
  Reg b_holder, c_holder;
  switch (s.op) {
    case TileOp::kCast: return EmitCast(s, std::move(a));
    case TileOp::kRoundTo: return EmitRound(*this, s.half, std::move(a));
    case TileOp::kQuantize:
    case TileOp::kDequantize: return EmitQuantization(s, std::move(a));
    case TileOp::kNot: return Xor(std::move(a), Bits(0xffffffffu));
    case TileOp::kWhere: {
      if (s.b == s.c) return Take(s.c);
      Reg no = Take(s.c);
      const Arg yes = ArgOf(s.b, &b_holder);
      return Blend(MaskOf(a), yes, std::move(no));
    }
    default: break;
  }
  if (s.b < 0) return EmitUnary(*this, s.op, std::move(a), s.params);
  const Arg b = s.b == s.a ? Arg(a) : ArgOf(s.b, &b_holder);
  switch (s.op) {
    case TileOp::kAnd: return And(std::move(a), b);
    case TileOp::kOr: return Or(std::move(a), b);
    case TileOp::kXor: return Xor(std::move(a), b);
    case TileOp::kMax:
    case TileOp::kMin:
      if (Value(s.b).constant && Value(s.b).number == Value(s.b).number) return EmitLimit(s.op, a, Value(s.b).number);
      break;
    default: break;
  }
  return EmitBinary(*this, s.op, std::move(a), b);
}

// Returns max(x, limit) or min(x, limit). With the limit as first operand, NaN stays NaN, and of two zeros x is the result: adding
// +0 turns it to the limit, if that is +0.
Reg LoopCode::EmitLimit(TileOp op, const Reg& x, float limit) {
  if (limit == 0 && (op == TileOp::kMin || std::signbit(limit))) return EmitBinary(*this, op, x, Const(limit));
  Reg first = Shared(limit);
  if (op == TileOp::kMin) return MinRaw(std::move(first), x);
  Reg r = MaxRaw(std::move(first), x);
  return limit == 0 ? Add(std::move(r), Const(0.0f)) : std::move(r);
}

Reg LoopCode::EmitCast(const ChainStep& s, Reg a) {
  const mge_dtype from = Value(s.a).type, to = Value(s.out).type;
  if (to == MGE_DTYPE_BOOL) return TruthOf(Where(Compare::kNotEqual, a, Const(0.0f)));
  if (from == MGE_DTYPE_BOOL) return And(std::move(a), Const(1.0f));
  return ToFloat(std::move(a));  // bytes; every value is exact in 16 bits of float16 and bfloat16
}

Reg LoopCode::EmitQuantization(const ChainStep& s, Reg a) {
  Reg scale_holder, zero_holder;
  if (s.op == TileOp::kDequantize) {
    if (s.c < 0) return EmitDequantize(*this, std::move(a), ArgOf(s.b, &scale_holder), nullptr);
    const Arg zero = ArgOf(s.c, &zero_holder);  // first: its address may need the register of the scale's
    return EmitDequantize(*this, std::move(a), ArgOf(s.b, &scale_holder), &zero);
  }
  if (s.b >= 0) a = Div(std::move(a), ArgOf(s.b, &scale_holder));
  const bool is_signed = Value(s.out).type == MGE_DTYPE_I8;
  if (s.c < 0) return EmitQuantize(*this, std::move(a), nullptr, is_signed);
  const Reg zero = Take(s.c);
  return EmitQuantize(*this, std::move(a), &zero, is_signed);
}

// ---------------------------------------------------------------- values in registers

Reg LoopCode::Take(int v) {
  State& s = Of(v);
  if (!s.reg.valid()) s.reg = Read(v);
  if (s.reads.back() <= step_) return std::move(s.reg);
  return s.reg;
}

Arg LoopCode::ArgOf(int v, Reg* holder) {
  State& s = Of(v);
  if (!s.reg.valid()) {
    if (Value(v).constant) return Const(Value(v).number);
    if (s.in_slot) return {SlotOf(s, 0), Value(v).single ? 0 : width()};
    const bool is_last = s.reads.back() <= step_;
    if (is_last && !is_tail_ && s.in_memory && Value(v).type == MGE_DTYPE_F32) return {ptr[AddressOf(v)], lanes() * 4};
  }
  *holder = Take(v);
  return *holder;
}

// Moves the value that is read last out of its registers.
void LoopCode::Spill() {
  State* victim = nullptr;
  int latest = -1;
  for (State& s : states_) {
    if (!s.reg.valid() || s.pinned) continue;
    const auto next = std::upper_bound(s.reads.begin(), s.reads.end(), step_);
    const int read = next == s.reads.end() ? 1 << 30 : *next;
    if (read > latest) latest = read, victim = &s;
  }
  if (!victim) return;
  if (!victim->in_memory && !victim->in_slot) {
    for (int k = 0; k < copies(); ++k) vmovups(SlotOf(*victim, k), Full(victim->reg, k));
    victim->in_slot = true;
  }
  victim->reg = {};
}

// Returns the place of a copy of a value on the stack.
Xbyak::Address LoopCode::SlotOf(State& s, int copy) {
  if (s.slot < 0) {
    s.slot = slots_;
    slots_ += kMaxCopies;
  }
  return ptr[rsp + (s.slot + copy) * width()];
}

}  // namespace mge::cpu
