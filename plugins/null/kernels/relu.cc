// SPDX-License-Identifier: Apache-2.0
// Relu: the whole of a kernel, and the place to begin.
#include <algorithm>

#include "kernels/kernels.h"

namespace backend {
namespace {

constexpr uint64_t kChunk = 1 << 14;  // elements; fixed, so that results never depend on the number of threads

struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = "null.relu";  // stable: it stands in caches and in `mge plan --why`
  static constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

  // A refusal is a sentence: the user reads it in `mge plan --why`.
  static mge::Support Supports(const mge::Problem& problem) {
    if (problem.node_count() != 1) return mge::No("only a Relu by itself");
    if (problem.input(0).dtype() != MGE_DTYPE_F32) return mge::No("only float32");
    if (!problem.is_static()) return mge::No("only shapes that are known before the run");
    if (problem.adds(0)) return mge::No("it writes its result, it does not add to it");
    return mge::Yes();
  }
  static void Describe(const mge::Problem& problem, mge::Candidate& candidate) {
    candidate.cost_us = 0.1 + static_cast<double>(problem.output(0).bytes()) / 5000;  // 10 GB/s, read and written
    candidate.in_place = {{0, 0}};  // output 0 may lie where input 0 was
  }

  // Made once for a problem, bound to the offsets of each plan: addresses are known only in a run.
  explicit Relu(const mge::Problem& problem) : count(problem.input(0).elements()) {}
  void Bind(const mge::Binding& binding) {
    x = binding.input(0);
    y = binding.output(0);
  }

  // Runs often, and on several threads at once with different runs: no allocation, no lock, no look-up. On a device with a
  // driver it enqueues the work on mge::QueueOf<Queue>(run) and returns.
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    mge::ParallelFor(run, (count + kChunk - 1) / kChunk, [&](uint64_t chunk) {
      uint64_t end = std::min(count, (chunk + 1) * kChunk);
      for (uint64_t i = chunk * kChunk; i < end; ++i) to[i] = from[i] < 0 ? 0 : from[i];  // NaN stays NaN
    });
    return MGE_OK;
  }

  // Where a constant input, such as weights, is better laid out another way, it is packed once, in host memory, and its slot
  // names the packed form from then on; 0 bytes: it stays as it is.
  //   uint64_t prepack_bytes(int input) const;
  //   mge::Result Prepack(int input, const void* from, void* to) const;
  //   std::string prepack_form(int input) const;  // "panels of 16": equal names, equal bytes
  // Where runs that go on at once need something each, such as a handle of a library, that is the struct State: one is made
  // for every instance of a plan, and destroyed with it. Bind keeps binding.state_index(), and Launch reads
  // mge::StateOf<State>(run, index).

  uint64_t count;
  mge::Slot x, y;
};

}  // namespace

constexpr mge::KernelRow kRelu = mge::Row<Relu>();

}  // namespace backend
