// SPDX-License-Identifier: Apache-2.0
#include "jit/chain.h"

#include <cstring>
#include <map>

#include "support/kernel.h"

namespace mge::cpu {
namespace {

std::string BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return std::to_string(bits);
}

class Printer {
 public:
  Printer(const Chain& chain, ChainRange range) : chain_(chain), range_(range) {}

  std::string Run() {
    for (int i = range_.first; i < range_.last; ++i) {
      const ChainStep& s = chain_.steps[static_cast<size_t>(i)];
      std::string line = std::string(NameOf(s.op)) + "(";
      for (int operand : {s.a, s.b, s.c}) {
        if (operand >= 0) line += (line.back() == '(' ? "" : ", ") + Operand(operand);
      }
      line += ")";
      if (s.half != MGE_DTYPE_UNDEFINED) line += " half=" + std::string(TypeName(s.half));
      if (s.params[0] != 0 || s.params[1] != 0) line += " params=" + BitsOf(s.params[0]) + "," + BitsOf(s.params[1]);
      text_ += Result(s.out) + " = " + line + "\n";
    }
    return std::move(text_);
  }

 private:
  const ChainValue& At(int value) const { return chain_.values[static_cast<size_t>(value)]; }

  // Returns a value's number. One that no step of the range computes is described in a line of its own.
  std::string Operand(int value) {
    auto [it, is_new] = numbers_.try_emplace(value, numbers_.size());
    if (is_new) {
      const ChainValue& v = At(value);
      text_ += '%' + std::to_string(it->second) + " = " + std::string(TypeName(v.type));
      if (v.constant)
        text_ += " bits " + BitsOf(v.number);
      else
        text_ += (v.single ? " element" : " tile") + (" of place " + std::to_string(v.place));
      text_ += '\n';
    }
    return '%' + std::to_string(it->second);
  }

  std::string Result(int value) {
    const size_t number = numbers_.try_emplace(value, numbers_.size()).first->second;
    const ChainValue& v = At(value);
    std::string text = '%' + std::to_string(number) + ' ' + std::string(TypeName(v.type));
    if (v.output || v.last_use >= range_.last) text += " stored to place " + std::to_string(v.place);
    if (v.last_use < range_.last && v.last_use < 0) text += " unread";
    return text;
  }

  const Chain& chain_;
  const ChainRange range_;
  std::map<int, size_t> numbers_;
  std::string text_;
};

}  // namespace

std::string TextOf(const Chain& chain, ChainRange range) { return Printer(chain, range).Run(); }

}  // namespace mge::cpu
