// SPDX-License-Identifier: Apache-2.0
// A problem in 16-bit floating types as the same problem in float32.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mge/plugin.hpp"
#include "types.h"

namespace mge::cpu {

// Writes `count` elements of a 16-bit type as float32.
void WidenElements(mge_dtype type, const void* from, uint64_t count, float* to);

// Must not outlive the problem that it widens.
class WidenedProblem {
 public:
  // The constants whose elements are converted: those that a row may read in an offer, or all, which a kernel needs. The others
  // keep the elements of 16 bits, which must not be read.
  enum class Constants { kSmall, kAll };

  WidenedProblem(const Problem& p, Constants constants);
  WidenedProblem(const WidenedProblem&) = delete;
  WidenedProblem& operator=(const WidenedProblem&) = delete;

  // Returns whether a value of the problem has a 16-bit floating type, and none of them is a state or is accumulated.
  static bool CanWiden(const Problem& p);

  const mge_problem* raw() const { return &problem_; }
  Problem view() const { return Problem(&problem_, device_); }

 private:
  mge_device* device_;
  std::vector<mge_value> values_;
  std::vector<const mge_value*> pointers_;
  std::vector<std::unique_ptr<float[]>> constants_;
  mge_graph graph_;
  mge_problem problem_;
};

}  // namespace mge::cpu
