// SPDX-License-Identifier: Apache-2.0
// Writes vector instructions for AVX2 or AVX-512 with one set of functions. Each function emits code that computes its result;
// nothing is computed when it is called.
//
//   Reg y = v.Fma(x, v.Const(2.0f), v.Const(1.0f));   // emits y = 2 x + 1
//
// A lane is 32 bits: a float, an integer, or a truth value (all bits set or none). All sequences of operations are those of
// vec/simd.h, so results have the same bits as those of the interpreter.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "isa.h"
#include "xbyak/xbyak.h"

namespace mge::cpu {

class VectorCode;

// A vector register. A copy is a second name of the register, valid as long as the original. An operation whose first operand
// is moved into it writes its result to that operand's register.
class Reg {
 public:
  Reg() = default;
  Reg(VectorCode* code, int number, bool owned) : code_(code), number_(number), owned_(owned) {}
  Reg(const Reg& other) : code_(other.code_), number_(other.number_) {}
  Reg(Reg&& other) noexcept
      : code_(other.code_), number_(std::exchange(other.number_, -1)), owned_(std::exchange(other.owned_, false)) {}
  Reg& operator=(Reg other) noexcept {
    std::swap(code_, other.code_);
    std::swap(number_, other.number_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~Reg();

  bool valid() const { return number_ >= 0; }
  bool owned() const { return owned_; }
  int number() const { return number_; }
  // Returns the register's number; the caller now frees it.
  int Release() {
    owned_ = false;
    return number_;
  }

 private:
  VectorCode* code_ = nullptr;
  int number_ = -1;
  bool owned_ = false;
};

// The last operand of an instruction: a register or memory.
class Arg {
 public:
  Arg(const Xbyak::Address& memory) : at_(memory) {}
  Arg(const Xbyak::Xmm& reg) : at_(reg) {}
  const Xbyak::Operand& get() const {
    if (auto* memory = std::get_if<Xbyak::Address>(&at_)) return *memory;
    return std::get<Xbyak::Xmm>(at_);
  }
  bool is_memory() const { return at_.index() == 0; }

 private:
  std::variant<Xbyak::Address, Xbyak::Xmm> at_;
};

// A condition of each lane: a vector for AVX2, a mask register for AVX-512.
struct Mask {
  Reg vector;
  int mask = -1;
};

// The predicates of comparisons. All but kNotEqual and kUnordered are false if an operand is NaN.
enum class Compare : uint8_t {
  kEqual = 0,
  kLess = 1,
  kLessOrEqual = 2,
  kUnordered = 3,
  kNotEqual = 4,
  kGreaterOrEqual = 13,
  kGreater = 14
};

class VectorCode : public Xbyak::CodeGenerator {
 public:
  VectorCode(Isa isa, uint8_t* buffer, size_t bytes);
  VectorCode(const VectorCode&) = delete;
  virtual ~VectorCode() = default;

  bool is_wide() const { return wide_; }
  int lanes() const { return wide_ ? 16 : 8; }
  int width() const { return wide_ ? 64 : 32; }  // bytes

  // Returns the register as an operand with the full width.
  Xbyak::Xmm Full(int number) const;
  Xbyak::Xmm Full(const Reg& r) const { return Full(r.number()); }
  Arg Of(const Reg& r) const { return Full(r); }

  // Returns a free register. If there is none, asks MakeRoom() for one.
  Reg New();
  void Free(int number) { free_ |= 1u << number; }

  // Constants of all lanes, as operands and in a register.
  Xbyak::Address Const(float value);
  Xbyak::Address Bits(uint32_t value);
  Reg Load(float value) { return Load(Arg(Const(value))); }
  Reg Load(const Arg& from);

  Reg Add(Reg a, const Arg& b) { return Apply(&CodeGenerator::vaddps, std::move(a), b); }
  Reg Sub(Reg a, const Arg& b) { return Apply(&CodeGenerator::vsubps, std::move(a), b); }
  Reg Mul(Reg a, const Arg& b) { return Apply(&CodeGenerator::vmulps, std::move(a), b); }
  Reg Div(Reg a, const Arg& b) { return Apply(&CodeGenerator::vdivps, std::move(a), b); }
  Reg And(Reg a, const Arg& b) { return Apply(&CodeGenerator::vandps, std::move(a), b); }
  Reg Or(Reg a, const Arg& b) { return Apply(&CodeGenerator::vorps, std::move(a), b); }
  Reg Xor(Reg a, const Arg& b) { return Apply(&CodeGenerator::vxorps, std::move(a), b); }
  // Return b if either operand is NaN, or if both are zero.
  Reg MinRaw(Reg a, const Arg& b) { return Apply(&CodeGenerator::vminps, std::move(a), b); }
  Reg MaxRaw(Reg a, const Arg& b) { return Apply(&CodeGenerator::vmaxps, std::move(a), b); }
  // Return NaN if either operand is NaN.
  Reg Min(const Reg& a, const Arg& b);
  Reg Max(const Reg& a, const Arg& b);
  // Returns a * b + c, rounded once. AddProduct adds to a register: c + a * b.
  Reg Fma(Reg a, const Reg& b, const Arg& c);
  Reg AddProduct(Reg c, const Reg& a, const Arg& b);
  Reg Sqrt(Reg a);
  enum class Rounding : uint8_t { kEven = 0, kDown = 1, kUp = 2 };
  Reg Round(Reg a, Rounding rounding);
  Reg Abs(Reg a) { return And(std::move(a), Bits(0x7fffffffu)); }
  Reg Negate(Reg a) { return Xor(std::move(a), Bits(0x80000000u)); }
  // Returns the magnitude of one number with the sign of the other.
  Reg CopySign(Reg magnitude, const Reg& sign);

  Reg AddInt(Reg a, const Arg& b) { return Apply(&CodeGenerator::vpaddd, std::move(a), b); }
  Reg SubInt(Reg a, const Arg& b) { return Apply(&CodeGenerator::vpsubd, std::move(a), b); }
  Reg ShiftLeft(Reg a, int bits);
  Reg ShiftRight(Reg a, int bits);            // zeros enter
  Reg ShiftRightArithmetic(Reg a, int bits);  // the sign enters
  Reg ToInt(Reg a);                           // truncates
  Reg ToNearestInt(Reg a);                    // halves to even
  Reg ToFloat(Reg a);

  Mask Where(Compare predicate, const Reg& a, const Arg& b);
  // Returns yes where the mask is set, and no elsewhere.
  Reg Blend(const Mask& mask, const Arg& yes, Reg no);
  // Convert between a mask and a vector of truth values.
  Reg TruthOf(Mask mask);
  Mask MaskOf(const Reg& truth);

  // Writes the constants behind the code. `label` is bound there.
  void WriteConstants(Xbyak::Label& label);

 protected:
  // Frees a register of a value. Called only while New() has none.
  virtual void MakeRoom() = 0;
  // The register that holds the address of the constants.
  const Xbyak::Reg64 constants_ = r9;

 private:
  // Emits an instruction of two operands. First is Operand or Xmm.
  template <typename First>
  Reg Apply(void (CodeGenerator::*instruction)(const Xbyak::Xmm&, const First&, const Xbyak::Operand&), Reg a,
            const Arg& b) {
    const Xbyak::Xmm first = Full(a);
    Reg r = ResultOf(a);
    (this->*instruction)(Full(r), first, b.get());
    return r;
  }
  // Returns the register for the result of an operation whose first operand is a: a's own if it may be overwritten.
  Reg ResultOf(Reg& a);
  Xbyak::Opmask NextMask();

  const bool wide_;
  uint32_t free_;
  int next_mask_ = 2;
  std::vector<uint32_t> pool_;
};

inline Reg::~Reg() {
  if (owned_) code_->Free(number_);
}

}  // namespace mge::cpu
