// SPDX-License-Identifier: Apache-2.0
// A kernel of oneDNN primitives, each on a slice of the output, for as many threads as the library has good code for. And when
// oneDNN is offered at all.
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
  int64_t work = 1;                              // beside that of the other slices
  uint64_t weights = 0, scratch = 0;             // bytes from the beginnings of what is packed and of the workspace
};

// Describes a problem's slices for so many threads; fails if the library has no good code for one of them.
using OnednnCut = std::function<Result(int64_t ways, std::vector<OnednnSlice>* slices)>;

// The library's answer to a problem.
struct OnednnChoice {
  int64_t ways = 0;        // threads that its slices keep busy; 0: it has no good code
  double share = 1;        // of the work, that the busiest thread does
  std::string code;        // short names of the slices' implementations, "brgconv"
  uint64_t workspace = 0;  // bytes
  std::string reason;      // for no good code
};

// Cuts for `most` threads, and for one if the library has no code for such slices. `problem` is all that the answer depends on:
// it is asked for once, since the planner asks for a node alone, and for every group that the node is part of.
OnednnChoice ChooseOnednn(std::vector<int64_t> problem, int64_t most, const OnednnCut& cut);

// Where a problem's operands are; -1: there is none.
struct OnednnPlaces {
  int x = -1, weights = -1, bias = -1, add = -1;
  uint64_t y_bytes = 0;
};

// Compiles the slices that were chosen. Null if that fails, or they need more workspace than the candidate promised.
KernelPtr MakeOnednnKernel(const OnednnPlaces& places, const OnednnChoice& choice, const OnednnCut& cut, const Candidate& candidate);

// Refuses, and answers false, where oneDNN may not or cannot serve.
bool OnednnUsable(Offers& offers, double serial_us);

// Into how many slices work of that length is cut at most.
int64_t OnednnWays(const Problem& p, double serial_us);
double OnednnCostUs(double serial_us, const OnednnChoice& choice);

// NHWC images under windows. Whole images for every thread where that is balanced, else bands of every image.
struct OnednnImages {
  int64_t images = 0, channels = 0, outputs = 0;
  ConvWindows windows = {};

  using Describe = std::function<Result(const onednn::Band& band, onednn::PrimitivePtr* out)>;
  Result Cut(int64_t ways, const Describe& describe, std::vector<OnednnSlice>* slices) const;
};

// The numbers of an epilogue that oneDNN's choice may depend on, behind those of `problem`.
void AppendEpilogue(const Epilogue& e, bool bias, bool add, std::vector<int64_t>& problem);

}  // namespace mge::cpu
