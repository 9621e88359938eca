// SPDX-License-Identifier: Apache-2.0
// A kernel that consists of oneDNN primitives. Each computes a slice of the output.
//
// The stage exists because oneDNN is limited to one thread: the slices run in parallel on the host's threads.
//
// Algorithm
//   - ChooseOnednn describes the slices for the wanted number of threads to the library, without generating code.
//   - If the library has only reference code for a slice, it repeats this with half the threads, down to one. If that fails,
//     the kernel is not offered.
//   - Images are cut into whole images per thread if that is balanced, otherwise into bands of rows or columns
//     (OnednnImages).
//   - Equal slices share a primitive, and each form of the packed filter is stored once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "onednn.h"

namespace mge::cpu {

// Compiles code for each size, and may allocate heap memory while it runs. The code depends on the number of threads and on the
// machine.
inline constexpr uint64_t kOnednnAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES | MGE_KERNEL_COMPILES;
inline constexpr int kOnednnRank = 20;

// A part of the output, computed by one primitive.
struct OnednnSlice {
  std::shared_ptr<onednn::Primitive> primitive;  // equal slices share one primitive
  uint64_t x = 0, y = 0;                         // byte offsets in the operands
  int64_t work = 1;                              // relative to the other slices
  uint64_t weights = 0, scratch = 0;             // byte offsets in the packed constant and in the workspace
};

// How to cut a problem: into at most `most` slices, for `threads` threads. Long work has more slices than threads, since a run
// can stop only between slices.
struct OnednnWays {
  int64_t most = 1, threads = 1;
};

// Describes a problem's slices for `ways` threads. Fails if the library has only reference code for one of them.
using OnednnCut = std::function<Result(int64_t ways, std::vector<OnednnSlice>* slices)>;

// The slices chosen for a problem.
struct OnednnChoice {
  int64_t ways = 0;        // number of slices at one time; 0: the library has only reference code
  double share = 1;        // share of the work of the busiest thread
  std::string code;        // short names of the implementations, "brgconv"
  uint64_t workspace = 0;  // bytes
  std::string reason;      // set if ways is 0
};

// Chooses slices. If the library has only reference code for them, tries half as many, down to one. `problem` must contain
// all numbers that the result depends on. Results are cached, because the planner asks about a node and about every group
// that contains it.
OnednnChoice ChooseOnednn(std::vector<int64_t> problem, const OnednnWays& ways, const OnednnCut& cut);

// The operand numbers of a problem; -1: absent.
struct OnednnPlaces {
  int x = -1, weights = -1, bias = -1, add = -1;
  uint64_t y_bytes = 0;
};

// Compiles the chosen slices. Returns null if that fails, or if they need more workspace than the candidate promised.
KernelPtr MakeOnednnKernel(const OnednnPlaces& places, const OnednnChoice& choice, const OnednnCut& cut,
                           const Candidate& candidate);

// Returns whether oneDNN may be used; otherwise refuses with the reason.
bool OnednnUsable(Offers& offers, double serial_us);

// Returns how to cut work of that length.
OnednnWays WaysOf(const Problem& p, double serial_us);
double OnednnCostUs(double serial_us, const OnednnChoice& choice);
// Returns one thread's time of a convolution, or of one of its gradients.
double OnednnConvUs(const Convolution& c);
// Returns one thread's time to pack a filter.
double OnednnPackUs(const Value& weights);

// The state of a plan instance: one instance for each slice.
class OnednnState {
 public:
  explicit OnednnState(const std::vector<OnednnSlice>& slices) : slices_(slices), codes_(slices.size(), MGE_OK) {}
  ~OnednnState();
  OnednnState(const OnednnState&) = delete;
  OnednnState& operator=(const OnednnState&) = delete;
  Result Init();
  // Runs all slices in parallel. operands(i) are those of slice i.
  template <typename F>
  mge_code Run(const mge_run* run, F operands) {
    ParallelFor(run, slices_.size(),
                [&](uint64_t i) { codes_[i] = slices_[i].primitive->Run(instances_[i], operands(slices_[i], i)); });
    for (mge_code code : codes_) {
      if (code != MGE_OK) return Report(run->error, code, "oneDNN failed to run a primitive");
    }
    return MGE_OK;
  }

 private:
  const std::vector<OnednnSlice>& slices_;
  std::vector<void*> instances_;
  std::vector<mge_code> codes_;
};

// NHWC images with windows. Threads get whole images if that is balanced, otherwise bands of each image.
struct OnednnImages {
  int64_t images = 0, channels = 0, outputs = 0;
  ConvWindows windows = {};

  using Describe = std::function<Result(const onednn::Band& band, onednn::PrimitivePtr* out)>;
  Result Cut(int64_t ways, const Describe& describe, std::vector<OnednnSlice>* slices) const;
};

// Appends to `problem` the numbers of an epilogue that oneDNN's choice may depend on.
void AppendEpilogue(const Epilogue& e, bool bias, bool add, std::vector<int64_t>& problem);

}  // namespace mge::cpu
