// SPDX-License-Identifier: Apache-2.0
// Reads operands into registers and stores results, as whole vectors and for the last elements.
#include "jit/loop_code.h"
#include "jit/step_code.h"
#include "support/kernel.h"

namespace mge::cpu {

// Returns the address of a value at the position of the current body. It may use rax, and is valid until the next call.
Xbyak::RegExp LoopCode::AddressOf(int v) {
  const auto bytes = static_cast<int>(SizeOf(Value(v).type));
  Xbyak::Reg64 base = rax;
  for (const auto& [place, number] : addresses_) {
    if (place == Value(v).place) base = Xbyak::Reg64(number);
  }
  if (base.getIdx() == rax.getIdx()) mov(rax, ptr[rdi + Value(v).place * 8]);
  return base + rcx * bytes + copy_ * lanes() * bytes;
}

// Copies the rdx last elements between memory and the first scratch vector.
void LoopCode::CopyRest(const Xbyak::RegExp& at, int bytes, bool in) {
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
  if (s.in_slot) return Load(SlotOf(s));
  const mge_dtype type = Value(v).type;
  const Xbyak::RegExp at = AddressOf(v);
  const auto bytes = static_cast<int>(SizeOf(type));
  Reg r = New();
  if (rest_ && !is_wide() && bytes < 4) {
    CopyRest(at, bytes, /*in=*/true);
    Widen(type, r, ptr[rsp]);
  } else if (rest_ && !is_wide()) {
    const Reg mask = New();
    vmovups(Full(mask), ptr[rsp + width()]);
    vmaskmovps(Full(r), Full(mask), ptr[at]);
  } else if (rest_) {
    ReadRest(type, r, ptr[at]);
  } else {
    Widen(type, r, ptr[at]);
  }
  return r;
}

// Reads the last elements with a mask register.
void LoopCode::ReadRest(mge_dtype type, const Reg& r, const Xbyak::Address& from) {
  const int n = r.number();
  switch (SizeOf(type)) {
    case 4: vmovups(Full(r) | RestMask() | T_z, from); return;
    case 2: vmovdqu16(Xbyak::Ymm(n) | RestMask() | T_z, from); return Widen(type, r, Xbyak::Ymm(n));
    default: vmovdqu8(Xbyak::Xmm(n) | RestMask() | T_z, from); return Widen(type, r, Xbyak::Xmm(n));
  }
}

// Converts elements in memory or in the low part of a register to lanes.
void LoopCode::Widen(mge_dtype type, const Reg& r, const Xbyak::Operand& from) {
  switch (type) {
    case MGE_DTYPE_F16: vcvtph2ps(Full(r), from); break;
    case MGE_DTYPE_BF16:
      vpmovzxwd(Full(r), from);
      vpslld(Full(r), Full(r), 16);
      break;
    case MGE_DTYPE_I8: vpmovsxbd(Full(r), from); break;
    case MGE_DTYPE_U8: vpmovzxbd(Full(r), from); break;
    case MGE_DTYPE_BOOL: {
      vpmovzxbd(Full(r), from);
      if (is_wide()) {
        vptestmd(Xbyak::Opmask(7), Full(r), Full(r));
        vpmovm2d(Full(r), Xbyak::Opmask(7));
      } else {
        const Reg zero = New();
        vxorps(Full(zero), Full(zero), Full(zero));
        vpcmpgtd(Full(r), Full(r), Full(zero));
      }
      break;
    }
    default: vmovups(Full(r), from); break;
  }
}

// Stores one element.
void LoopCode::WriteElement(int v, const Reg& r) {
  const mge_dtype type = Value(v).type;
  const Reg packed = type == MGE_DTYPE_F32 ? Reg(r) : Pack(type, r);
  vmovd(eax, Xbyak::Xmm(packed.number()));
  mov(r10, ptr[rdi + Value(v).place * 8]);
  switch (SizeOf(type)) {
    case 4: mov(dword[r10], eax); break;
    case 2: mov(word[r10], ax); break;
    default: mov(byte[r10], al); break;
  }
}

void LoopCode::Write(int v, const Reg& r) {
  const mge_dtype type = Value(v).type;
  if (Value(v).single) return WriteElement(v, r);
  if (type == MGE_DTYPE_F32) {
    const Xbyak::RegExp at = AddressOf(v);
    if (!rest_) {
      vmovups(ptr[at], Full(r));
    } else if (is_wide()) {
      vmovups(ptr[at] | RestMask(), Full(r));
    } else {
      const Reg mask = New();
      vmovups(Full(mask), ptr[rsp + width()]);
      vmaskmovps(ptr[at], Full(mask), Full(r));
    }
    return;
  }
  const auto bytes = static_cast<int>(SizeOf(type));
  const Reg packed = Pack(type, r);
  const int n = packed.number();
  const Xbyak::RegExp at = AddressOf(v);
  if (rest_ && is_wide()) {
    if (bytes == 2)
      vmovdqu16(ptr[at] | RestMask(), Xbyak::Ymm(n));
    else
      vmovdqu8(ptr[at] | RestMask(), Xbyak::Xmm(n));
    return;
  }
  const Xbyak::Address to = rest_ ? ptr[rsp] : ptr[at];
  if (is_wide() && bytes == 2)
    vmovdqu16(to, Xbyak::Ymm(n));
  else if (is_wide())
    vmovdqu8(to, Xbyak::Xmm(n));
  else if (bytes == 2)
    vmovdqu(to, Xbyak::Xmm(n));
  else
    vmovq(to, Xbyak::Xmm(n));
  if (rest_) CopyRest(at, bytes, /*in=*/false);
}

// Returns a register whose low part has the elements of a vector, as they are in memory.
Reg LoopCode::Pack(mge_dtype type, const Reg& r) {
  constexpr uint8_t kNearestEven = 8;
  if (type == MGE_DTYPE_F16) {
    Reg packed = New();
    if (is_wide())
      vcvtps2ph(Xbyak::Ymm(packed.number()), Xbyak::Zmm(r.number()), kNearestEven);
    else
      vcvtps2ph(Xbyak::Xmm(packed.number()), Xbyak::Ymm(r.number()), kNearestEven);
    return packed;
  }
  Reg lanes = type == MGE_DTYPE_BF16 ? EmitBfloat16(*this, r) : type == MGE_DTYPE_BOOL ? ShiftRight(r, 31) : Reg(r);
  Reg packed = New();
  if (is_wide()) {
    if (type == MGE_DTYPE_BF16)
      vpmovdw(Xbyak::Ymm(packed.number()), Xbyak::Zmm(lanes.number()));
    else
      vpmovdb(Xbyak::Xmm(packed.number()), Xbyak::Zmm(lanes.number()));
    return packed;
  }
  const Xbyak::Ymm to(packed.number());
  if (type == MGE_DTYPE_BF16) {
    vpackusdw(to, Xbyak::Ymm(lanes.number()), Xbyak::Ymm(lanes.number()));
    vpermq(to, to, 0x08);
  } else {  // the lowest byte of each lane of both halves, side by side
    vpshufb(to, Xbyak::Ymm(lanes.number()), Bits(0x0c080400u));
    const Reg high = New();
    vextracti128(Xbyak::Xmm(high.number()), to, 1);
    vpunpckldq(Xbyak::Xmm(packed.number()), Xbyak::Xmm(packed.number()), Xbyak::Xmm(high.number()));
  }
  return packed;
}

}  // namespace mge::cpu
