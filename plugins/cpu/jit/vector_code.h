// SPDX-License-Identifier: Apache-2.0
// Writes vector instructions for AVX2 or AVX-512 with one set of functions. Each function emits code that computes its result;
// nothing is computed when it is called.
//
//   Reg y = v.Fma(x, v.Const(2.0f), v.Const(1.0f));   // emits y = 2 x + 1
//
// The vectors of several iterations, the copies, are computed side by side: each operation emits an instruction for each of them.
// Chains of dependent instructions are long, and the processor looks only a limited number of instructions ahead.
//
// A lane is 32 bits: a float, an integer, or a truth value (all bits set or none). All sequences of operations are those of
// vec/simd.h, so results have the same bits as those of the interpreter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "isa.h"
#include "xbyak/xbyak.h"

namespace mge::cpu {

class VectorCode;

inline constexpr int kMaxCopies = 4;

// A register of each copy. A C++ copy is a second name of the registers, valid as long as the original. An operation whose first
// operand is moved into it writes its result to that operand's registers.
class Reg {
 public:
  using Numbers = std::array<int8_t, kMaxCopies>;

  Reg() = default;
  // `is_shared`: all copies read the same register, so that no operation may write to it.
  Reg(VectorCode* code, const Numbers& numbers, bool is_shared)
      : code_(code), numbers_(numbers), valid_(true), owned_(true), shared_(is_shared) {}
  Reg(const Reg& other) : code_(other.code_), numbers_(other.numbers_), valid_(other.valid_), shared_(other.shared_) {}
  Reg(Reg&& other) noexcept
      : code_(other.code_),
        numbers_(other.numbers_),
        valid_(std::exchange(other.valid_, false)),
        owned_(std::exchange(other.owned_, false)),
        shared_(other.shared_) {}
  Reg& operator=(Reg other) noexcept {
    std::swap(code_, other.code_);
    std::swap(numbers_, other.numbers_);
    std::swap(valid_, other.valid_);
    std::swap(owned_, other.owned_);
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~Reg();

  bool valid() const { return valid_; }
  bool owned() const { return owned_; }  // whether it frees the registers at its end
  bool writable() const { return owned_ && !shared_; }
  int number(int copy) const { return numbers_[static_cast<size_t>(copy)]; }

 private:
  VectorCode* code_ = nullptr;
  Numbers numbers_ = {};
  bool valid_ = false;
  bool owned_ = false;
  bool shared_ = false;
};

// The last operand of an instruction: registers, or memory that all copies share or that is `step` bytes further in each.
class Arg {
 public:
  Arg(const Reg& r) : reg_(r) {}
  Arg(const Xbyak::Address& memory, int step = 0) : memory_(memory), step_(step) {}
  const Reg& reg() const { return reg_; }
  bool is_memory() const { return memory_.has_value(); }
  // Returns the memory of a copy.
  Xbyak::Address memory(int copy) const;

 private:
  Reg reg_;
  std::optional<Xbyak::Address> memory_;
  int step_ = 0;
};

// A condition of each lane: vectors for AVX2, mask registers for AVX-512.
struct Mask {
  Reg vector;
  std::array<int8_t, kMaxCopies> masks = {};
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

  int copies() const { return copies_; }
  // Only while no register is in use.
  void SetCopies(int copies) { copies_ = copies; }

  // Returns a register as an operand with the full width.
  Xbyak::Xmm Full(int number) const {
    if (wide_) return Xbyak::Zmm(number);
    return Xbyak::Ymm(number);
  }
  Xbyak::Xmm Full(const Reg& r, int copy) const { return Full(r.number(copy)); }
  // Calls f with the operand of a copy.
  template <typename F>
  void With(const Arg& a, int copy, F f) const {
    if (a.is_memory())
      f(a.memory(copy));
    else
      f(Full(a.reg(), copy));
  }

  // Returns a free register of each copy. If there are not enough, asks Spill() for them; throws Xbyak::Error if it has none.
  Reg New() { return New(copies_); }
  void Free(const Reg& r);

  // Constants of all lanes, as operands and in a register.
  Xbyak::Address Const(float value);
  Xbyak::Address Bits(uint32_t value);
  Reg Load(float value) { return Load(Const(value)); }
  Reg Shared(float value);  // one register for all copies
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
  Reg Scale(Reg a, const Reg& power);  // a * 2^power; AVX-512 only
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
  Reg RoundToHalf(Reg a);  // to the nearest number of float16

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
  virtual void Spill() = 0;
  // The register that holds the address of the constants.
  const Xbyak::Reg64 constants_ = r9;

 private:
  Reg New(int count);
  // Emits an instruction of two operands. First is Operand or Xmm.
  template <typename First>
  Reg Apply(void (CodeGenerator::*instruction)(const Xbyak::Xmm&, const First&, const Xbyak::Operand&), Reg a,
            const Arg& b) {
    const Reg first = a;
    Reg r = ResultOf(a);
    for (int k = 0; k < copies_; ++k) {
      With(b, k, [&](const Xbyak::Operand& o) { (this->*instruction)(Full(r, k), Full(first, k), o); });
    }
    return r;
  }
  // Emits f(result, a) for each copy.
  template <typename F>
  Reg Convert(Reg a, F f) {
    const Reg from = a;
    Reg r = ResultOf(a);
    for (int k = 0; k < copies_; ++k) f(Full(r, k), Full(from, k));
    return r;
  }
  // Returns the registers for the result of an operation whose first operand is a: a's own if they may be overwritten.
  Reg ResultOf(Reg& a) { return a.writable() ? std::move(a) : New(); }
  int8_t NextMask();

  const bool wide_;
  int copies_ = 1;
  uint32_t free_;
  int8_t next_mask_ = 2;
  std::vector<uint32_t> pool_;
};

inline Reg::~Reg() {
  if (owned_) code_->Free(*this);
}

}  // namespace mge::cpu
