// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mge/plugin.hpp"

namespace mge::null {
namespace {

constexpr uint64_t kChunk =
    1 << 14;  // elements; fixed, so that results never depend on the number of threads

// What a step needs, bound once. Slots are offsets: their addresses are known only in a run.
struct Args {
  Slot x, y;
  uint64_t count;
};

// Runs often, and on several threads at once with different runs: no allocation, no lock, no
// look-up. On a device with a driver this would enqueue the work on run->queue and return.
mge_code Launch(const Args& args, const mge_run* run) {
  const float* x = At<const float>(run, args.x);
  float* y = At<float>(run, args.y);
  ParallelFor(run, (args.count + kChunk - 1) / kChunk, [&](uint64_t chunk) {
    uint64_t begin = chunk * kChunk, end = std::min(args.count, begin + kChunk);
    for (uint64_t i = begin; i < end; ++i) y[i] = x[i] < 0 ? 0 : x[i];  // NaN stays NaN
  });
  return MGE_OK;
}

// A refusal is a sentence: the user reads it in `mge plan --why`.
void Offer(const Problem& problem, Offers& offers) {
  if (problem.node_count() != 1) return offers.Refuse("only a Relu by itself");
  if (problem.input(0).dtype() != MGE_DTYPE_F32) return offers.Refuse("only float32");
  if (!problem.is_static()) return offers.Refuse("only shapes that are known before the run");
  if (problem.adds(0)) return offers.Refuse("it writes its result, it does not add to it");
  offers.Add({.id = "null.relu",
              .attributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT,
              .in_place = {{0, 0}}});
}

KernelPtr Make(const Problem& problem, const Candidate&) {
  return MakeSimple<Args, Launch>([count = problem.input(0).elements()](const Binding& binding) {
    return Args{binding.input(0), binding.output(0), count};
  });
}

}  // namespace

extern const KernelRow kRelu;
const KernelRow kRelu = {"Relu", Offer, Make};

}  // namespace mge::null
