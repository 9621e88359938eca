// SPDX-License-Identifier: Apache-2.0
#include "jit/generator.h"

#include <algorithm>
#include <memory>

#include "jit/loop_code.h"
#include "jit/step_code.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

bool IsFloat(mge_dtype t) { return t == MGE_DTYPE_F32 || IsHalf(t); }
bool IsByte(mge_dtype t) { return t == MGE_DTYPE_I8 || t == MGE_DTYPE_U8; }
bool IsTruth(mge_dtype t) { return t == MGE_DTYPE_BOOL; }

bool HasCastCode(mge_dtype from, mge_dtype to) {
  if (IsFloat(from)) return IsFloat(to) || IsTruth(to);
  return (IsTruth(from) || IsByte(from)) && IsFloat(to);
}

}  // namespace

const char* WhyNoGenerator(Isa isa) {
  return isa == Isa::kPortable ? "code is generated for AVX2 and AVX-512, which the processor lacks or cpu.isa forbids" : "";
}

bool HasCode(const Chain& chain, const ChainStep& step) {
  auto type = [&](int value) { return value < 0 ? MGE_DTYPE_UNDEFINED : chain.values[static_cast<size_t>(value)].type; };
  const mge_dtype a = type(step.a), b = type(step.b), c = type(step.c), out = type(step.out);
  const bool floats = a == MGE_DTYPE_F32 && (step.b < 0 || b == MGE_DTYPE_F32);
  switch (step.op) {
    case TileOp::kCopy:
    case TileOp::kSplat: return a == out && (IsFloat(a) || IsTruth(a) || IsByte(a));
    case TileOp::kCast: return HasCastCode(a, out);
    case TileOp::kRoundTo: return a == MGE_DTYPE_F32;
    case TileOp::kWhere: return IsTruth(a) && b == MGE_DTYPE_F32 && c == MGE_DTYPE_F32;
    case TileOp::kQuantize: return IsByte(out);
    case TileOp::kDequantize: return IsByte(a);
    case TileOp::kNot:
    case TileOp::kAnd:
    case TileOp::kOr:
    case TileOp::kXor: return IsTruth(a);
    default: return floats && (step.b < 0 ? IsFloatUnary(step.op) : IsFloatBinary(step.op));
  }
}

int WeightOf(TileOp op) {
  switch (op) {
    case TileOp::kExp: return 26;
    case TileOp::kSigmoid:
    case TileOp::kSwish: return 34;
    case TileOp::kLog:
    case TileOp::kTanh: return 48;
    case TileOp::kErf:
    case TileOp::kGelu:
    case TileOp::kGeluTanh: return 64;
    case TileOp::kSoftplus: return 90;
    case TileOp::kElu:
    case TileOp::kCelu:
    case TileOp::kSelu: return 90;
    case TileOp::kMish: return 140;
    case TileOp::kQuantize:
    case TileOp::kRoundTo:
    case TileOp::kHardSwish:
    case TileOp::kShrink: return 9;
    default: return 3;
  }
}

Result GenerateCode(const Chain& chain, ChainRange range, Isa isa, std::vector<uint8_t>* code) {
  constexpr size_t kMaxBytes = 128 << 10, kAlignment = 64;
  const std::unique_ptr<uint8_t[]> buffer(new uint8_t[kMaxBytes + kAlignment]);
  const size_t past = reinterpret_cast<uintptr_t>(buffer.get()) % kAlignment;
  uint8_t* aligned = buffer.get() + (kAlignment - past) % kAlignment;
  // More copies are faster, if there are registers for them.
  for (int copies = kMaxCopies;; copies /= 2) {
    try {
      LoopCode loop(chain, range, isa, aligned, kMaxBytes);
      loop.Run(copies);
      code->assign(aligned, aligned + loop.getSize());
      return {};
    } catch (const Xbyak::Error& error) {
      if (copies > 1) continue;
      return {MGE_INTERNAL, std::string("no machine code for a chain: ") + error.what()};
    }
  }
}

}  // namespace mge::cpu
