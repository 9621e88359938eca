// SPDX-License-Identifier: Apache-2.0
// A kernel of oneDNN primitives. Each computes a slice of the output, so that the slices run on several threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "onednn.h"

namespace mge::cpu {

// May take heap memory while it runs; its code is compiled for the thread count and the machine.
inline constexpr uint64_t kOnednnAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
inline constexpr int kOnednnRank = 20;

struct OnednnSlice {
  std::shared_ptr<onednn::Primitive> primitive;  // equal slices share theirs
  uint64_t x = 0, y = 0;                         // bytes from the operands' beginnings
  int64_t work = 1;                              // relative to the other slices
  uint64_t weights = 0, scratch = 0;             // bytes from the beginnings of what is packed and of the workspace
};

// Describes a problem's slices for `ways` threads. Fails if the library has only reference code for one of them.
using OnednnCut = std::function<Result(int64_t ways, std::vector<OnednnSlice>* slices)>;

// The library's answer to a problem.
struct OnednnChoice {
  int64_t ways = 0;        // threads that the slices are cut for; 0: the library has only reference code
  double share = 1;        // part of the work that the busiest thread does
  std::string code;        // short names of the slices' implementations, "brgconv"
  uint64_t workspace = 0;  // bytes
  std::string reason;      // if ways is 0
};

// Cuts for `most` threads. If the library has only reference code for these slices, tries half as many threads, down to one.
// `problem` holds all numbers that the answer depends on. Answers are kept, because the planner asks about a node alone and
// about every group that contains it.
OnednnChoice ChooseOnednn(std::vector<int64_t> problem, int64_t most, const OnednnCut& cut);

// Where a problem's operands are; -1: there is none.
struct OnednnPlaces {
  int x = -1, weights = -1, bias = -1, add = -1;
  uint64_t y_bytes = 0;
};

// Compiles the slices that were chosen. Null if that fails, or they need more workspace than the candidate promised.
KernelPtr MakeOnednnKernel(const OnednnPlaces& places, const OnednnChoice& choice, const OnednnCut& cut, const Candidate& candidate);

// Returns true if oneDNN may be used; otherwise refuses with the reason.
bool OnednnUsable(Offers& offers, double serial_us);

// Returns the largest number of threads that work of that length is cut for.
int64_t OnednnWays(const Problem& p, double serial_us);
double OnednnCostUs(double serial_us, const OnednnChoice& choice);

// NHWC images under windows. Threads get whole images if that is balanced, otherwise bands of each image.
struct OnednnImages {
  int64_t images = 0, channels = 0, outputs = 0;
  ConvWindows windows = {};

  using Describe = std::function<Result(const onednn::Band& band, onednn::PrimitivePtr* out)>;
  Result Cut(int64_t ways, const Describe& describe, std::vector<OnednnSlice>* slices) const;
};

// Appends the numbers of an epilogue that oneDNN's choice may depend on to `problem`.
void AppendEpilogue(const Epilogue& e, bool bias, bool add, std::vector<int64_t>& problem);

}  // namespace mge::cpu
