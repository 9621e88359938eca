// SPDX-License-Identifier: Apache-2.0
#include "jit/vector_code.h"

#include <algorithm>
#include <cstring>

namespace mge::cpu {

VectorCode::VectorCode(Isa isa, uint8_t* buffer, size_t bytes)
    : CodeGenerator(bytes, buffer), wide_(isa == Isa::kAvx512), free_(wide_ ? 0xffffffffu : 0xffffu) {}

Xbyak::Xmm VectorCode::Full(int number) const {
  if (wide_) return Xbyak::Zmm(number);
  return Xbyak::Ymm(number);
}

Reg VectorCode::New() {
  if (!free_) MakeRoom();
  if (!free_) throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  const int number = __builtin_ctz(free_);
  free_ &= free_ - 1;
  return Reg(this, number, true);
}

Xbyak::Address VectorCode::Const(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return Bits(bits);
}

Xbyak::Address VectorCode::Bits(uint32_t value) {
  auto it = std::find(pool_.begin(), pool_.end(), value);
  const auto index = static_cast<int>(it - pool_.begin());
  if (it == pool_.end()) pool_.push_back(value);
  if (wide_) return ptr_b[constants_ + index * 4];
  return ptr[constants_ + index * width()];
}

void VectorCode::WriteConstants(Xbyak::Label& label) {
  align(64);
  L(label);
  for (uint32_t bits : pool_) {
    for (int lane = 0; lane < (wide_ ? 1 : lanes()); ++lane) dd(bits);
  }
}

Reg VectorCode::Load(const Arg& from) {
  Reg r = New();
  if (const auto& o = from.get(); o.isMEM() && static_cast<const Xbyak::Address&>(o).isBroadcast()) {
    vbroadcastss(Full(r), ptr[static_cast<const Xbyak::Address&>(o).getRegExp()]);
  } else {
    vmovups(Full(r), o);
  }
  return r;
}

Reg VectorCode::ResultOf(Reg& a) {
  if (a.owned()) return std::move(a);
  return New();
}

Reg VectorCode::Min(const Reg& a, const Arg& b) {
  Mask nan = Where(Compare::kUnordered, a, Full(a));
  return Blend(nan, Of(a), MinRaw(a, b));
}

Reg VectorCode::Max(const Reg& a, const Arg& b) {
  Mask nan = Where(Compare::kUnordered, a, Full(a));
  return Blend(nan, Of(a), MaxRaw(a, b));
}

Reg VectorCode::Fma(Reg a, const Reg& b, const Arg& c) {
  if (!a.owned()) a = Load(Of(a));
  vfmadd213ps(Full(a), Full(b), c.get());
  return a;
}

Reg VectorCode::AddProduct(Reg c, const Reg& a, const Arg& b) {
  if (!c.owned()) c = Load(Of(c));
  vfmadd231ps(Full(c), Full(a), b.get());
  return c;
}

Reg VectorCode::Sqrt(Reg a) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vsqrtps(Full(r), from);
  return r;
}

Reg VectorCode::Round(Reg a, Rounding rounding) {
  constexpr uint8_t kNoException = 8;
  const auto mode = static_cast<uint8_t>(static_cast<uint8_t>(rounding) | kNoException);
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  if (wide_)
    vrndscaleps(Full(r), from, mode);
  else
    vroundps(Full(r), from, mode);
  return r;
}

Reg VectorCode::CopySign(Reg magnitude, const Reg& sign) {
  Reg bit = And(sign, Bits(0x80000000u));
  return Or(Abs(std::move(magnitude)), Of(bit));
}

Reg VectorCode::ShiftLeft(Reg a, int bits) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vpslld(Full(r), from, static_cast<uint8_t>(bits));
  return r;
}

Reg VectorCode::ShiftRight(Reg a, int bits) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vpsrld(Full(r), from, static_cast<uint8_t>(bits));
  return r;
}

Reg VectorCode::ShiftRightArithmetic(Reg a, int bits) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vpsrad(Full(r), from, static_cast<uint8_t>(bits));
  return r;
}

Reg VectorCode::ToInt(Reg a) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vcvttps2dq(Full(r), from);
  return r;
}

Reg VectorCode::ToNearestInt(Reg a) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vcvtps2dq(Full(r), from);
  return r;
}

Reg VectorCode::ToFloat(Reg a) {
  const Xbyak::Xmm from = Full(a);
  Reg r = ResultOf(a);
  vcvtdq2ps(Full(r), from);
  return r;
}

// Mask registers 2 to 7 are used in turn: a mask is read soon after it is written.
Xbyak::Opmask VectorCode::NextMask() {
  const int number = next_mask_;
  next_mask_ = next_mask_ == 7 ? 2 : next_mask_ + 1;
  return Xbyak::Opmask(number);
}

Mask VectorCode::Where(Compare predicate, const Reg& a, const Arg& b) {
  const auto code = static_cast<uint8_t>(predicate);
  Mask m;
  if (wide_) {
    const Xbyak::Opmask k = NextMask();
    vcmpps(k, Full(a), b.get(), code);
    m.mask = k.getIdx();
    return m;
  }
  m.vector = New();
  vcmpps(Full(m.vector), Full(a), b.get(), code);
  return m;
}

Reg VectorCode::Blend(const Mask& mask, const Arg& yes, Reg no) {
  const Xbyak::Xmm from = Full(no);
  Reg r = ResultOf(no);
  if (wide_)
    vblendmps(Full(r) | Xbyak::Opmask(mask.mask), from, yes.get());
  else
    vblendvps(Full(r), from, yes.get(), Full(mask.vector));
  return r;
}

Reg VectorCode::TruthOf(Mask mask) {
  if (!wide_) return std::move(mask.vector);
  Reg r = New();
  vpmovm2d(Full(r), Xbyak::Opmask(mask.mask));
  return r;
}

Mask VectorCode::MaskOf(const Reg& truth) {
  Mask m;
  if (!wide_) {
    m.vector = truth;
    return m;
  }
  const Xbyak::Opmask k = NextMask();
  vpmovd2m(k, Full(truth));
  m.mask = k.getIdx();
  return m;
}

}  // namespace mge::cpu
