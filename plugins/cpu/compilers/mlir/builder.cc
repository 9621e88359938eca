// SPDX-License-Identifier: Apache-2.0
#include "compilers/mlir/builder.h"

#include <cstdio>
#include <cstring>
#include <set>

#include "compilers/steps.h"

namespace mge::jit {

const char* MlirBuilder::ElementOf(uint32_t type) {
  switch (type) {
    case MGE_DTYPE_F32: return "f32";
    case MGE_DTYPE_F16: return "f16";
    case MGE_DTYPE_BF16: return "i16";
    case MGE_DTYPE_I8:
    case MGE_DTYPE_U8:
    case MGE_DTYPE_BOOL: return "i8";
    default: throw ChainError("a value has the type " + std::to_string(type));
  }
}

MlirValue MlirBuilder::Number(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08X", bits);
  return Constant(text, "f32");
}

MlirValue MlirBuilder::Select(const Value& t, const Value& yes, const Value& no) {
  const std::string type = (lanes_ == 1 ? "" : Type("i1") + ", ") + Type(yes.element);
  return Line("arith.select " + t.name + ", " + yes.name + ", " + no.name + " : " + type, yes.element);
}

std::string MlirBuilder::Pointer(const mge_jit_value& v, bool single, std::string* type) {
  const std::string element = ElementOf(v.type), plain = "!llvm.ptr<" + element + ">";
  const std::string base = places_.at(v.place);
  if (single) {
    *type = plain;
    return base;
  }
  const std::string at = Line("llvm.getelementptr " + base + "[%at] : (" + plain + ", i64) -> " + plain, "").name;
  *type = "!llvm.ptr<" + Type(element) + ">";
  return lanes_ == 1 ? at : Line("llvm.bitcast " + at + " : " + plain + " to " + *type, "").name;
}

namespace {

// Returns the attribute of a load or store: vectors are aligned like their elements.
std::string AlignmentOf(const std::string& element) {
  const int bytes = element == "f32" ? 4 : element == "i8" ? 1 : 2;
  return " {alignment = " + std::to_string(bytes) + " : i64} : ";
}

}  // namespace

MlirValue MlirBuilder::Load(const mge_jit_value& v) {
  const char* element = ElementOf(v.type);
  std::string type;
  const bool single = (v.flags & MGE_JIT_SINGLE) != 0;
  const std::string pointer = Pointer(v, single, &type);
  Value x = Line("llvm.load " + pointer + AlignmentOf(element) + type, element);
  if (single && lanes_ > 1) {
    const std::string first = Line("arith.constant 0 : i32", "").name;
    const std::string none = Line("llvm.mlir.undef : " + Type(element), "").name;
    const std::string one =
        Line("llvm.insertelement " + x.name + ", " + none + "[" + first + " : i32] : " + Type(element), "").name;
    std::string zeros;
    for (int i = 0; i < lanes_; ++i) zeros += i ? ", 0 : i32" : "0 : i32";
    x = Line("llvm.shufflevector " + one + ", " + none + " [" + zeros + "] : " + Type(element) + ", " + Type(element),
             element);
  }
  switch (v.type) {
    case MGE_DTYPE_F32: return x;
    case MGE_DTYPE_F16: return Convert("arith.extf", x, "f32");
    case MGE_DTYPE_BF16: return FloatOfBits(ShiftLeft(Convert("arith.extui", x, "i32"), 16));
    case MGE_DTYPE_I8: return Convert("arith.extsi", x, "i32");
    case MGE_DTYPE_U8: return Convert("arith.extui", x, "i32");
    default: {
      const Value zero = Constant("0", "i8");
      return Line("arith.cmpi ne, " + x.name + ", " + zero.name + " : " + Type("i8"), "i1");
    }
  }
}

void MlirBuilder::Store(const mge_jit_value& v, const Value& value) {
  Value x = value;
  switch (v.type) {
    case MGE_DTYPE_F32: break;
    case MGE_DTYPE_F16: x = Convert("arith.truncf", x, "f16"); break;
    case MGE_DTYPE_BF16: x = Convert("arith.trunci", Functions<MlirBuilder>(this).Bfloat16Bits(x), "i16"); break;
    case MGE_DTYPE_BOOL: x = Convert("arith.extui", x, "i8"); break;
    default: x = Convert("arith.trunci", x, "i8"); break;
  }
  std::string type;
  const std::string pointer = Pointer(v, /*single=*/false, &type);
  text_ += "      llvm.store " + x.name + ", " + pointer + AlignmentOf(ElementOf(v.type)) + type + "\n";
}

namespace {

// Writes the pointers of all places, and returns their names. A place may hold operands and results of different types.
std::map<int, std::string> WritePointers(const mge_jit_chain& chain, int* next, std::string* text) {
  std::map<int, std::string> names;
  std::map<int, std::string> elements;
  std::set<int> computed;
  for (uint32_t i = 0; i < chain.step_count; ++i) computed.insert(chain.steps[i].out);
  for (uint32_t i = 0; i < chain.value_count; ++i) {
    const mge_jit_value& v = chain.values[i];
    const bool in_memory =
        (v.flags & MGE_JIT_STORED) || (!computed.contains(static_cast<int>(i)) && !(v.flags & MGE_JIT_CONSTANT));
    if (!in_memory) continue;
    const std::string element = MlirBuilder::ElementOf(v.type);
    if (const auto it = elements.find(v.place); it != elements.end()) {
      if (it->second != element) throw ChainError("a place holds values of different types");
      continue;
    }
    elements[v.place] = element;
    const auto line = [&](const std::string& operation) {
      const std::string name = "%" + std::to_string((*next)++);
      *text += "    " + name + " = " + operation + "\n";
      return name;
    };
    const std::string index = line("arith.constant " + std::to_string(v.place) + " : i64");
    const std::string at =
        line("llvm.getelementptr %places[" + index + "] : (!llvm.ptr<ptr<i8>>, i64) -> !llvm.ptr<ptr<i8>>");
    const std::string bytes = line("llvm.load " + at + " : !llvm.ptr<ptr<i8>>");
    names[v.place] = line("llvm.bitcast " + bytes + " : !llvm.ptr<i8> to !llvm.ptr<" + element + ">");
  }
  return names;
}

// Writes the body of a loop: every result is computed before one is stored.
void WriteBody(const mge_jit_chain& chain, int lanes, const std::map<int, std::string>& places, int* next,
               std::string* text) {
  *text += "      %at = arith.index_cast %i : index to i64\n";
  MlirBuilder builder(lanes, places, next, text);
  const std::vector<std::optional<MlirValue>> stored = Steps<MlirBuilder>(chain, &builder).Run();
  for (uint32_t i = 0; i < chain.value_count; ++i) {
    if (stored[i]) builder.Store(chain.values[i], *stored[i]);
  }
}

}  // namespace

std::string ModuleOf(const mge_jit_chain& chain, int lanes) {
  int next = 0;
  std::string text =
      "module {\n"
      "  func.func @mge_jit_chain(%places: !llvm.ptr<ptr<i8>>, %count: i64) {\n";
  const std::map<int, std::string> places = WritePointers(chain, &next, &text);
  text +=
      "    %n = arith.index_cast %count : i64 to index\n"
      "    %zero = arith.constant 0 : index\n"
      "    %one = arith.constant 1 : index\n"
      "    %lanes = arith.constant " +
      std::to_string(lanes) +
      " : index\n"
      "    %rest = arith.remui %n, %lanes : index\n"
      "    %whole = arith.subi %n, %rest : index\n"
      "    scf.for %i = %zero to %whole step %lanes {\n";
  WriteBody(chain, lanes, places, &next, &text);
  text +=
      "    }\n"
      "    scf.for %i = %whole to %n step %one {\n";
  WriteBody(chain, 1, places, &next, &text);
  text +=
      "    }\n"
      "    return\n"
      "  }\n"
      "}\n";
  return text;
}

}  // namespace mge::jit
