// SPDX-License-Identifier: Apache-2.0
// Reads operands into registers and stores results, as whole vectors and for the last elements.
#include "jit/loop_code.h"
#include "jit/step_code.h"
#include "support/kernel.h"

namespace mge::cpu {

// Returns the address of a value for the first copy. It may use rax, and is valid until the next call.
Xbyak::RegExp LoopCode::AddressOf(int v) {
  const auto bytes = static_cast<int>(SizeOf(Value(v).type));
  Xbyak::Reg64 base = rax;
  for (const auto& [place, number] : addresses_) {
    if (place == Value(v).place) base = Xbyak::Reg64(number);
  }
  if (base.getIdx() == rax.getIdx()) mov(rax, ptr[rdi + Value(v).place * 8]);
  return base + rcx * bytes;
}

// Copies the rdx last elements between memory and the first scratch vector.
void LoopCode::CopyTail(const Xbyak::RegExp& at, int bytes, bool in) {
  Xbyak::Label next;
  lea(r11, ptr[at]);
  xor_(eax, eax);
  L(next);
  const Xbyak::RegExp memory = r11 + rax * bytes, scratch = rsp + rax * bytes;
  if (bytes == 1) {
    mov(r10b, byte[in ? memory : scratch]);
    mov(byte[in ? scratch : memory], r10b);
  } else {
    mov(r10w, word[in ? memory : scratch]);
    mov(word[in ? scratch : memory], r10w);
  }
  inc(rax);
  cmp(rax, rdx);
  jl(next);
}

Reg LoopCode::Read(int v) {
  State& s = Of(v);
  if (Value(v).constant) return Load(Value(v).number);
  if (s.in_slot) return Load({SlotOf(s, 0), Value(v).single ? 0 : width()});
  const mge_dtype type = Value(v).type;
  Reg r = New();
  const Xbyak::RegExp at = AddressOf(v);
  const auto bytes = static_cast<int>(SizeOf(type));
  if (!is_tail_) {
    for (int k = 0; k < copies(); ++k) Widen(type, r.number(k), ptr[at + k * lanes() * bytes]);
  } else if (is_wide()) {
    ReadTail(type, r.number(0), ptr[at]);
  } else if (bytes == 4) {
    const Reg mask = New();
    vmovups(Full(mask, 0), ptr[rsp + width()]);
    vmaskmovps(Full(r, 0), Full(mask, 0), ptr[at]);
  } else {
    CopyTail(at, bytes, /*in=*/true);
    Widen(type, r.number(0), ptr[rsp]);
  }
  return r;
}

// Reads the last elements with a mask register.
void LoopCode::ReadTail(mge_dtype type, int number, const Xbyak::Address& from) {
  switch (SizeOf(type)) {
    case 4: vmovups(Full(number) | TailMask() | T_z, from); return;
    case 2: vmovdqu16(Xbyak::Ymm(number) | TailMask() | T_z, from); return Widen(type, number, Xbyak::Ymm(number));
    default: vmovdqu8(Xbyak::Xmm(number) | TailMask() | T_z, from); return Widen(type, number, Xbyak::Xmm(number));
  }
}

// Converts elements in memory or in the low part of a register to lanes.
void LoopCode::Widen(mge_dtype type, int number, const Xbyak::Operand& from) {
  const Xbyak::Xmm to = Full(number);
  switch (type) {
    case MGE_DTYPE_F16: vcvtph2ps(to, from); break;
    case MGE_DTYPE_BF16:
      vpmovzxwd(to, from);
      vpslld(to, to, 16);
      break;
    case MGE_DTYPE_I8: vpmovsxbd(to, from); break;
    case MGE_DTYPE_U8: vpmovzxbd(to, from); break;
    case MGE_DTYPE_BOOL:  // the sign of x + 0x7fffffff fills the lane, unless x is 0
      vpmovzxbd(to, from);
      vpaddd(to, to, Bits(0x7fffffffu));
      vpsrad(to, to, 31);
      break;
    default: vmovups(to, from); break;
  }
}

void LoopCode::Write(int v, const Reg& r) {
  if (Value(v).single) return WriteElement(v, r);
  const mge_dtype type = Value(v).type;
  const Reg packed = Pack(type, r);
  if (is_tail_) return WriteTail(v, packed);
  const auto bytes = static_cast<int>(SizeOf(type));
  const Xbyak::RegExp at = AddressOf(v);
  for (int k = 0; k < copies(); ++k) Store(packed.number(k), bytes, ptr[at + k * lanes() * bytes]);
}

// Stores the elements of a packed vector.
void LoopCode::Store(int number, int bytes, const Xbyak::Address& to) {
  switch (lanes() * bytes) {
    case 64: vmovups(to, Xbyak::Zmm(number)); break;
    case 32: vmovups(to, Xbyak::Ymm(number)); break;
    case 16: vmovups(to, Xbyak::Xmm(number)); break;
    default: vmovq(to, Xbyak::Xmm(number)); break;
  }
}

// Stores the last elements.
void LoopCode::WriteTail(int v, const Reg& packed) {
  const auto bytes = static_cast<int>(SizeOf(Value(v).type));
  const int number = packed.number(0);
  const Xbyak::RegExp at = AddressOf(v);
  if (is_wide()) {
    switch (bytes) {
      case 4: vmovups(ptr[at] | TailMask(), Xbyak::Zmm(number)); break;
      case 2: vmovdqu16(ptr[at] | TailMask(), Xbyak::Ymm(number)); break;
      default: vmovdqu8(ptr[at] | TailMask(), Xbyak::Xmm(number)); break;
    }
  } else if (bytes == 4) {
    const Reg mask = New();
    vmovups(Full(mask, 0), ptr[rsp + width()]);
    vmaskmovps(ptr[at], Full(mask, 0), Full(number));
  } else {
    Store(number, bytes, ptr[rsp]);
    CopyTail(at, bytes, /*in=*/false);
  }
}

// Stores one element.
void LoopCode::WriteElement(int v, const Reg& r) {
  const mge_dtype type = Value(v).type;
  const Reg packed = Pack(type, r);
  vmovd(eax, Xbyak::Xmm(packed.number(0)));
  mov(r10, ptr[rdi + Value(v).place * 8]);
  switch (SizeOf(type)) {
    case 4: mov(dword[r10], eax); break;
    case 2: mov(word[r10], ax); break;
    default: mov(byte[r10], al); break;
  }
}

// Returns registers whose low parts have the elements of vectors, as they are in memory.
Reg LoopCode::Pack(mge_dtype type, const Reg& r) {
  if (type == MGE_DTYPE_F32) return r;
  constexpr uint8_t kNearestEven = 8;
  const Reg lanes = type == MGE_DTYPE_BF16 ? EmitBfloat16(*this, r) : type == MGE_DTYPE_BOOL ? ShiftRight(r, 31) : Reg(r);
  Reg packed = New();
  for (int k = 0; k < copies(); ++k) {
    const int to = packed.number(k);
    const Xbyak::Xmm from = Full(lanes, k), low = is_wide() ? Xbyak::Ymm(to) : Xbyak::Xmm(to);
    if (type == MGE_DTYPE_F16) {
      vcvtps2ph(low, from, kNearestEven);
    } else if (type == MGE_DTYPE_BF16 && is_wide()) {
      vpmovdw(low, from);
    } else if (type == MGE_DTYPE_BF16) {
      vpackusdw(Xbyak::Ymm(to), Xbyak::Ymm(from.getIdx()), Xbyak::Ymm(from.getIdx()));
      vpermq(Xbyak::Ymm(to), Xbyak::Ymm(to), 0x08);
    } else if (is_wide()) {
      vpmovdb(Xbyak::Xmm(to), from);
    } else {
      PackBytes(to, from.getIdx());
    }
  }
  return packed;
}

// Moves the lowest byte of each lane to the low half of a register; AVX2 only.
void LoopCode::PackBytes(int to, int from) {
  vpshufb(Xbyak::Ymm(to), Xbyak::Ymm(from), Bits(0x0c080400u));
  vpermq(Xbyak::Ymm(to), Xbyak::Ymm(to), 0x08);  // both halves' results in one
  vpshufd(Xbyak::Xmm(to), Xbyak::Xmm(to), 0x08);
}

}  // namespace mge::cpu
