// SPDX-License-Identifier: Apache-2.0
// Writes a chain as a module of MLIR: a loop over vectors, then one over the last elements. The operations of functions.h become
// operations of the dialects arith and math on vectors, or on numbers if there is one lane.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compilers/compiler.h"

namespace mge::jit {

// A value of the module.
struct MlirValue {
  std::string name;          // as in "%12"
  const char* element = "";  // "f32", "i32" or "i1"
};

class MlirBuilder {
 public:
  using Value = MlirValue;

  // Writes to `text`. `places` are the names of the operands' pointers, by place.
  MlirBuilder(int lanes, const std::map<int, std::string>& places, int* next, std::string* text)
      : lanes_(lanes), places_(places), next_(*next), text_(*text) {}

  Value Number(float x);
  Value Integer(int32_t i) { return Constant(std::to_string(i), "i32"); }
  Value Truth(bool t) { return Constant(t ? "true" : "false", "i1"); }

  Value Add(const Value& a, const Value& b) { return Two("arith.addf", a, b); }
  Value Sub(const Value& a, const Value& b) { return Two("arith.subf", a, b); }
  Value Mul(const Value& a, const Value& b) { return Two("arith.mulf", a, b); }
  Value Div(const Value& a, const Value& b) { return Two("arith.divf", a, b); }
  Value Fma(const Value& a, const Value& b, const Value& c) {
    return Line("math.fma " + a.name + ", " + b.name + ", " + c.name + " : " + Type("f32"), "f32");
  }
  Value Sqrt(const Value& a) { return One("math.sqrt", a); }
  Value Floor(const Value& a) { return One("math.floor", a); }
  Value Ceil(const Value& a) { return One("math.ceil", a); }

  Value Less(const Value& a, const Value& b) { return Compare("olt", a, b); }
  Value Equal(const Value& a, const Value& b) { return Compare("oeq", a, b); }
  Value IsNaN(const Value& a) { return Compare("uno", a, a); }
  Value And(const Value& a, const Value& b) { return Two("arith.andi", a, b); }
  Value Or(const Value& a, const Value& b) { return Two("arith.ori", a, b); }
  Value Xor(const Value& a, const Value& b) { return Two("arith.xori", a, b); }
  Value Not(const Value& a) { return Two("arith.xori", a, Truth(true)); }
  Value Select(const Value& t, const Value& yes, const Value& no);

  Value IntAdd(const Value& a, const Value& b) { return Two("arith.addi", a, b); }
  Value IntSub(const Value& a, const Value& b) { return Two("arith.subi", a, b); }
  Value IntAnd(const Value& a, const Value& b) { return Two("arith.andi", a, b); }
  Value IntOr(const Value& a, const Value& b) { return Two("arith.ori", a, b); }
  Value IntXor(const Value& a, const Value& b) { return Two("arith.xori", a, b); }
  Value ShiftLeft(const Value& a, int n) { return Two("arith.shli", a, Integer(n)); }
  Value ShiftRight(const Value& a, int n) { return Two("arith.shrui", a, Integer(n)); }
  Value ShiftRightArithmetic(const Value& a, int n) { return Two("arith.shrsi", a, Integer(n)); }
  Value Bits(const Value& a) { return Convert("arith.bitcast", a, "i32"); }
  Value FloatOfBits(const Value& a) { return Convert("arith.bitcast", a, "f32"); }
  Value ToFloat(const Value& a) { return Convert("arith.sitofp", a, "f32"); }
  Value ToInt(const Value& a) { return Convert("arith.fptosi", a, "i32"); }
  Value RoundToHalf(const Value& a) { return Convert("arith.extf", Convert("arith.truncf", a, "f16"), "f32"); }

  Value Load(const mge_jit_value& v);
  void Store(const mge_jit_value& v, const Value& value);
  // Returns the type of a value's elements in memory.
  static const char* ElementOf(uint32_t type);

 private:
  std::string Type(const std::string& element) const {
    return lanes_ == 1 ? element : "vector<" + std::to_string(lanes_) + "x" + element + ">";
  }
  // Appends a line that defines a value.
  Value Line(const std::string& operation, const char* element) {
    const std::string name = "%" + std::to_string(next_++);
    text_ += "      " + name + " = " + operation + "\n";
    return {name, element};
  }
  Value Constant(const std::string& number, const char* element) {
    return Line("arith.constant " + (lanes_ == 1 ? number : "dense<" + number + ">") +
                    (lanes_ == 1 && element[1] == '1' ? "" : " : " + Type(element)),
                element);
  }
  Value One(const char* op, const Value& a) { return Line(std::string(op) + " " + a.name + " : " + Type("f32"), "f32"); }
  Value Two(const char* op, const Value& a, const Value& b) {
    return Line(std::string(op) + " " + a.name + ", " + b.name + " : " + Type(a.element), a.element);
  }
  Value Compare(const char* how, const Value& a, const Value& b) {
    return Line(std::string("arith.cmpf ") + how + ", " + a.name + ", " + b.name + " : " + Type("f32"), "i1");
  }
  Value Convert(const char* op, const Value& a, const char* to) {
    return Line(std::string(op) + " " + a.name + " : " + Type(a.element) + " to " + Type(to), to);
  }
  // Returns a pointer to the vector at the loop's position, or to a single element, and its type.
  std::string Pointer(const mge_jit_value& v, bool single, std::string* type);

  const int lanes_;
  const std::map<int, std::string>& places_;
  int& next_;
  std::string& text_;
};

// Returns the module of a chain, whose function is mge_jit_chain(places, count).
std::string ModuleOf(const mge_jit_chain& chain, int lanes);

}  // namespace mge::jit
