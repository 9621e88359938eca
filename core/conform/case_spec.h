// SPDX-License-Identifier: Apache-2.0
// The parts of a spec, the text that describes a case: "Conv@11(T[1,2,9,8], T[3,2,3,4]) {strides=[2,3]} -> 1". The form is
// described in cases.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mge::conform {

struct CaseSpec {
  std::string op;
  int version = 0;                                              // 0: the newest
  std::vector<std::string> operands;                            // "T[3,5]@0:1"
  std::vector<std::pair<std::string, std::string>> attributes;  // "strides", "[2,3]"
  int outputs = 1;

  std::string AttributesText() const;  // "{strides=[2,3]}", or "" if there are none
  std::string Text() const;
};

CaseSpec ParseSpec(std::string_view text);

// The parts of one operand of a spec.
struct SpecOperand {
  std::string type;    // "T[3,5]" or "int64[2]"
  std::string values;  // the text between < and >
  bool absent = false, constant = false, ranged = false, special = false;
  double low = 0, high = 0;
  int same_as = -1;  // the operand that is used again; -1: none
};

SpecOperand ParseOperand(std::string_view text);

}  // namespace mge::conform
