// SPDX-License-Identifier: Apache-2.0
#include "jit/vector_code.h"

#include <algorithm>
#include <cstring>

namespace mge::cpu {

Xbyak::Address Arg::memory(int copy) const {
  if (step_ == 0) return *memory_;
  return Xbyak::util::ptr[memory_->getRegExp() + copy * step_];
}

VectorCode::VectorCode(Isa isa, uint8_t* buffer, size_t bytes)
    : CodeGenerator(bytes, buffer), wide_(isa == Isa::kAvx512), free_(wide_ ? 0xffffffffu : 0xffffu) {}

Reg VectorCode::New(int count) {
  if (__builtin_popcount(free_) < count) Spill();
  if (__builtin_popcount(free_) < count) throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  Reg::Numbers numbers = {};
  for (int k = 0; k < copies_; ++k) {
    if (k < count) {
      numbers[static_cast<size_t>(k)] = static_cast<int8_t>(__builtin_ctz(free_));
      free_ &= free_ - 1;
    } else {
      numbers[static_cast<size_t>(k)] = numbers[0];
    }
  }
  return Reg(this, numbers, /*is_shared=*/count < copies_);
}

Reg VectorCode::Shared(float value) {
  Reg r = New(1);
  vbroadcastss(Full(r, 0), ptr[Const(value).getRegExp()]);
  return r;
}

void VectorCode::Free(const Reg& r) {
  for (int k = 0; k < copies_; ++k) free_ |= 1u << r.number(k);
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
  for (int k = 0; k < copies_; ++k) {
    if (!from.is_memory()) {
      vmovaps(Full(r, k), Full(from.reg(), k));
    } else if (const Xbyak::Address memory = from.memory(k); memory.isBroadcast()) {
      vbroadcastss(Full(r, k), ptr[memory.getRegExp()]);
    } else {
      vmovups(Full(r, k), memory);
    }
  }
  return r;
}

Reg VectorCode::Min(const Reg& a, const Arg& b) {
  Reg r = MinRaw(a, b);
  return Blend(Where(Compare::kUnordered, a, a), a, std::move(r));
}

Reg VectorCode::Max(const Reg& a, const Arg& b) {
  Reg r = MaxRaw(a, b);
  return Blend(Where(Compare::kUnordered, a, a), a, std::move(r));
}

Reg VectorCode::Fma(Reg a, const Reg& b, const Arg& c) {
  if (!a.writable()) a = Load(a);
  for (int k = 0; k < copies_; ++k) {
    With(c, k, [&](const Xbyak::Operand& o) { vfmadd213ps(Full(a, k), Full(b, k), o); });
  }
  return a;
}

Reg VectorCode::AddProduct(Reg c, const Reg& a, const Arg& b) {
  if (!c.writable()) c = Load(c);
  for (int k = 0; k < copies_; ++k) {
    With(b, k, [&](const Xbyak::Operand& o) { vfmadd231ps(Full(c, k), Full(a, k), o); });
  }
  return c;
}

Reg VectorCode::Sqrt(Reg a) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vsqrtps(to, from); });
}

Reg VectorCode::Round(Reg a, Rounding rounding) {
  constexpr uint8_t kNoException = 8;
  const auto mode = static_cast<uint8_t>(static_cast<uint8_t>(rounding) | kNoException);
  return Convert(std::move(a), [&](const auto& to, const auto& from) {
    if (wide_)
      vrndscaleps(to, from, mode);
    else
      vroundps(to, from, mode);
  });
}

Reg VectorCode::Scale(Reg a, const Reg& power) {
  for (int k = 0; k < copies_; ++k) vscalefps(Full(a, k), Full(a, k), Full(power, k));
  return a;
}

Reg VectorCode::CopySign(Reg magnitude, const Reg& sign) {
  const Reg bit = And(sign, Bits(0x80000000u));
  return Or(Abs(std::move(magnitude)), bit);
}

Reg VectorCode::ShiftLeft(Reg a, int bits) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vpslld(to, from, static_cast<uint8_t>(bits)); });
}

Reg VectorCode::ShiftRight(Reg a, int bits) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vpsrld(to, from, static_cast<uint8_t>(bits)); });
}

Reg VectorCode::ShiftRightArithmetic(Reg a, int bits) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vpsrad(to, from, static_cast<uint8_t>(bits)); });
}

Reg VectorCode::ToInt(Reg a) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vcvttps2dq(to, from); });
}

Reg VectorCode::ToNearestInt(Reg a) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vcvtps2dq(to, from); });
}

Reg VectorCode::ToFloat(Reg a) {
  return Convert(std::move(a), [&](const auto& to, const auto& from) { vcvtdq2ps(to, from); });
}

Reg VectorCode::RoundToHalf(Reg a) {
  constexpr uint8_t kNearestEven = 8;
  return Convert(std::move(a), [&](const Xbyak::Xmm& to, const Xbyak::Xmm& from) {
    const Xbyak::Xmm packed = wide_ ? Xbyak::Ymm(to.getIdx()) : Xbyak::Xmm(to.getIdx());
    vcvtps2ph(packed, from, kNearestEven);
    vcvtph2ps(to, packed);
  });
}

// Mask registers 2 to 7 are used in turn: a mask is read soon after it is written.
int8_t VectorCode::NextMask() {
  return std::exchange(next_mask_, static_cast<int8_t>(next_mask_ == 7 ? 2 : next_mask_ + 1));
}

Mask VectorCode::Where(Compare predicate, const Reg& a, const Arg& b) {
  const auto code = static_cast<uint8_t>(predicate);
  Mask m;
  if (!wide_) m.vector = New();
  for (int k = 0; k < copies_; ++k) {
    With(b, k, [&](const Xbyak::Operand& o) {
      if (wide_)
        vcmpps(Xbyak::Opmask(m.masks[static_cast<size_t>(k)] = NextMask()), Full(a, k), o, code);
      else
        vcmpps(Full(m.vector, k), Full(a, k), o, code);
    });
  }
  return m;
}

Reg VectorCode::Blend(const Mask& mask, const Arg& yes, Reg no) {
  const Reg from = no;
  Reg r = ResultOf(no);
  for (int k = 0; k < copies_; ++k) {
    With(yes, k, [&](const Xbyak::Operand& o) {
      if (wide_)
        vblendmps(Full(r, k) | Xbyak::Opmask(mask.masks[static_cast<size_t>(k)]), Full(from, k), o);
      else
        vblendvps(Full(r, k), Full(from, k), o, Full(mask.vector, k));
    });
  }
  return r;
}

Reg VectorCode::TruthOf(Mask mask) {
  if (!wide_) return std::move(mask.vector);
  Reg r = New();
  for (int k = 0; k < copies_; ++k) vpmovm2d(Full(r, k), Xbyak::Opmask(mask.masks[static_cast<size_t>(k)]));
  return r;
}

Mask VectorCode::MaskOf(const Reg& truth) {
  Mask m;
  if (!wide_) {
    m.vector = truth;
    return m;
  }
  for (int k = 0; k < copies_; ++k) {
    vpmovd2m(Xbyak::Opmask(m.masks[static_cast<size_t>(k)] = NextMask()), Full(truth, k));
  }
  return m;
}

}  // namespace mge::cpu
