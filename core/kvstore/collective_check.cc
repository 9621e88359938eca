// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/collective_check.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/engine/process_group.h"
#include "core/kvstore/process_sum.h"
#include "core/kvstore/training_processes.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Sizes of arrays in elements of float32, and how often each is summed.
struct CheckedSize {
  int64_t elements;
  int times;
};
constexpr CheckedSize kCheckedSizes[] = {{1, 20}, {1 << 14, 20}, {1 << 18, 10}, {1 << 22, 5}, {25'000'000, 3}};

// Sums arrays of one size. Returns the shortest time.
absl::StatusOr<double> TimeOfSum(ProcessGroup& group, ProcessSum& sum, const CheckedSize& size, const GroupWait& wait) {
  MGE_ASSIGN_OR_RETURN(Tensor array, Tensor::Create(DType::kF32, {size.elements}));
  const auto own = static_cast<float>(group.rank() + 1), all = static_cast<float>(group.ranks() * (group.ranks() + 1) / 2);
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < size.times; ++i) {
    std::ranges::fill(array.MutableData<float>(), own);
    const auto begin = std::chrono::steady_clock::now();
    const ProcessStep step = {i, size.elements};
    MGE_RETURN_IF_ERROR(sum.AllReduce(array, &step, wait));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    shortest = std::min(shortest, took.count());
    if (std::ranges::all_of(array.Data<float>(), [&](float x) { return x == all; })) continue;
    return Fail(errors::kRankFailed,
                fmt::format("a sum of {} elements over {} processes is wrong", size.elements, group.ranks()),
                {.what = fmt::format("{} has another result than {}", group.Name(group.rank()), all)});
  }
  return shortest;
}

}  // namespace

absl::StatusOr<CollectiveFacts> CheckCollectives(Runtime& runtime) {
  const auto settings = runtime.registry().snapshot();
  CollectiveFacts out;
  MGE_ASSIGN_OR_RETURN(out.launch, LaunchOfTraining(runtime, *settings));
  if (out.launch.ranks == 1 || !out.launch.mpi) {
    return Fail(errors::kUnsupportedFeature,
                out.launch.ranks == 1 ? "there is one process, so that nothing is to be measured"
                                      : "the processes are not connected by MPI",
                {.fix = "start several processes: mpirun -n 2 mge doctor --collective"});
  }
  const std::chrono::nanoseconds patience = PatienceOf(*settings, true);
  MGE_ASSIGN_OR_RETURN(const std::shared_ptr<ProcessGroup> group, runtime.JoinProcesses(out.launch, patience));
  out.library = group->library();
  for (uint32_t r = 0; r < group->ranks(); ++r) out.processes.push_back(group->Name(r));
  ProcessSum sum(group, {});
  for (const CheckedSize& size : kCheckedSizes) {
    const GroupWait wait = {fmt::format("the sum of {} elements", size.elements), patience};
    MGE_ASSIGN_OR_RETURN(const double seconds, TimeOfSum(*group, sum, size, wait));
    out.sums.push_back({size.elements * 4, seconds});
  }
  return out;
}

}  // namespace mge
