// SPDX-License-Identifier: Apache-2.0
#include "core/plan/layout/reorder.h"

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kReorderBytesPerUs = 8000;  // bytes read and written per microsecond
constexpr double kCallUs = 1;
constexpr double kUnableUs = 1e9;

}  // namespace

absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode, const UnableKernels* unable) {
  ReorderProblem problem(type, from, to, threads);
  MGE_ASSIGN_OR_RETURN(CandidateList list, EnumerateCandidates(device, *problem.problem(), constraints));
  if (unable) unable->Remove(device, *problem.problem(), list);
  if (list.offered.empty()) {
    std::string what = fmt::format("{} to {} of {}", LayoutText(from), LayoutText(to), type.ToString());
    for (const Refusal& r : list.refused) what += fmt::format("; {}: {}", r.id, r.reason);
    return Fail(errors::kKernelFailed, fmt::format("device {} offers a layout but no reorder for it", device.name()),
                {.what = std::move(what)});
  }
  // Measuring a reorder would take longer than it saves.
  if (mode == MGE_SELECT_PROFILE) mode = MGE_SELECT_HEURISTIC;
  std::string fault;  // the choice of the models' kernels reports it
  MGE_ASSIGN_OR_RETURN(std::vector<int> order, OrderCandidates(device, *problem.problem(), list.offered, mode, &fault));
  return std::move(list.offered[order[0]]);
}

absl::StatusOr<OwnedCandidate> ChooseReorder(const PlanContext& context, Device& device, const TensorType& type,
                                             const mge_layout& from, const mge_layout& to) {
  mge_constraints constraints = context.kernels.ConstraintsOn(device);
  constraints.workspace_limit = UINT64_MAX;
  return ChooseReorder(device, type, from, to, context.threads, constraints, context.kernels.ModeOn(device),
                       &context.caches->unable);
}

double ReorderCosts::Us(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) {
  // The bytes of all that the time depends on.
  std::string key(reinterpret_cast<const char*>(type.dims.data()), type.dims.size() * sizeof(int64_t));
  auto add = [&key](const auto& part) { key.append(reinterpret_cast<const char*>(&part), sizeof(part)); };
  const Device* on = &device;
  add(on);
  add(type.dtype);
  add(from);
  add(to);
  auto [at, is_new] = known_.try_emplace(std::move(key), 0);
  if (is_new) at->second = Ask(device, type, from, to);
  return at->second;
}

bool ReorderCosts::Exists(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) {
  return SameLayout(from, to) || Us(device, type, from, to) < kUnableUs;
}

double ReorderCosts::Ask(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) const {
  absl::StatusOr<OwnedCandidate> best = ChooseReorder(context_, device, type, from, to);
  if (!best.ok()) return kUnableUs;
  if (best->cost_us >= 0) return best->cost_us;
  return kCallUs + 2.0 * static_cast<double>(Elements(type.dims) * ElementBytes(type.dtype)) / kReorderBytesPerUs;
}

}  // namespace mge
