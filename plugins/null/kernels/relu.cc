// SPDX-License-Identifier: Apache-2.0
// A complete kernel, as an example: Relu.
#include <algorithm>

#include "kernels/kernels.h"

namespace backend {
namespace {

constexpr uint64_t kChunk = 1 << 14;  // elements; fixed, so that results never depend on the number of threads

struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = "null.relu";  // stable name in caches and in `mge plan --why`
  static constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

  // Returns why the kernel cannot compute the problem, as a sentence. The user reads it in `mge plan --why`.
  static mge::Support Supports(const mge::Problem& problem) {
    if (problem.node_count() != 1) return mge::No("only a Relu by itself");
    if (problem.input(0).dtype() != MGE_DTYPE_F32) return mge::No("only float32");
    if (!problem.is_static()) return mge::No("only shapes that are known before the run");
    if (problem.adds(0)) return mge::No("it writes its result, it does not add to it");
    return mge::Yes();
  }
  static void Describe(const mge::Problem& problem, mge::Candidate& candidate) {
    candidate.cost_us = 0.1 + static_cast<double>(problem.output(0).bytes()) / 5000;  // 10 GB/s, reading and writing
    candidate.in_place = {{0, 0}};  // output 0 may use the memory of input 0
  }

  // Created once per problem and bound to the offsets of each plan. Addresses are known only in a run.
  explicit Relu(const mge::Problem& problem) : count(problem.input(0).elements()) {}
  void Bind(const mge::Binding& binding) {
    x = binding.input(0);
    y = binding.output(0);
  }

  // Runs the kernel, also on several threads at once with different runs: must not allocate, lock or search. For a device
  // with a driver, enqueue the work on mge::QueueOf<Queue>(run) and return.
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    mge::ParallelFor(run, (count + kChunk - 1) / kChunk, [&](uint64_t chunk) {
      uint64_t end = std::min(count, (chunk + 1) * kChunk);
      for (uint64_t i = chunk * kChunk; i < end; ++i) to[i] = from[i] < 0 ? 0 : from[i];  // NaN stays NaN
    });
    return MGE_OK;
  }

  // Optional: packs a constant input, such as weights, once, in host memory, into a form that the kernel reads faster. Its
  // slot then refers to the packed form. 0 bytes: the input stays unpacked.
  //   uint64_t prepack_bytes(int input) const;
  //   mge::Result Prepack(int input, const void* from, void* to) const;
  //   mge::Result PrepackOn(int input, mge_queue* queue, const void* from, void* to) const;  // the same on the device
  //   std::string prepack_form(int input) const;  // "panels of 16": equal names promise equal bytes
  // Optional, for a kernel that is expensive to create: a class derived from mge::Kernel has Rebind(const mge::Problem&),
  // which creates its like for other shapes.
  // Optional: a struct State, for data that each concurrent run needs of its own, such as a library handle. One is created
  // per instance of a plan, and destroyed with it. Bind stores binding.state_index(), and Launch calls
  // mge::StateOf<State>(run, index).

  uint64_t count;
  mge::Slot x, y;
};

}  // namespace

constexpr mge::KernelRow kRelu = mge::Row<Relu>();

}  // namespace backend
