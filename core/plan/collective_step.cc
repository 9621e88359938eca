// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collective_step.h"

#include <utility>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "core/plan/plan.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

mge_code Enqueue(const CollectiveStepArgs& step, const CollectiveOperand& o, const mge_run* run) {
  const mge_collective_api& api = step.communicator->api();
  mge_communicator* rank = step.communicator->handle();
  void *from = Address(run, o.from), *to = Address(run, o.to);
  if (step.reduces) return api.all_reduce(rank, run->queue, from, to, o.count, o.dtype, step.reduction, run->error);
  return api.broadcast(rank, run->queue, from, to, o.count, o.dtype, step.root, run->error);
}

}  // namespace

absl::Status ReadCollective(const Node& node, uint32_t ranks, CollectiveStepArgs& args) {
  constexpr std::pair<std::string_view, int32_t> kReductions[] = {
      {"sum", MGE_REDUCE_SUM}, {"product", MGE_REDUCE_PRODUCT}, {"min", MGE_REDUCE_MIN}, {"max", MGE_REDUCE_MAX}};
  args.reduces = node.def->Is(kAllReduce);
  const std::string reduction = node.attrs.Text("reduction", "sum");
  for (const auto& [name, number] : kReductions) {
    if (name == reduction) args.reduction = number;
  }
  const int64_t root = node.attrs.Int("root", 0);
  if (root < 0 || root >= int64_t{ranks}) {
    return Fail(errors::kInvalidNode, fmt::format("root is {}, but the group has {} ranks", root, ranks),
                {.where = NodePlace(node), .fix = "name a rank below the setting collective.ranks"});
  }
  args.root = static_cast<uint32_t>(root);
  return absl::OkStatus();
}

mge_code RunCollectiveStep(const void* args, const mge_run* run) {
  const auto& step = *static_cast<const CollectiveStepArgs*>(args);
  if (step.communicator->aborted()) {
    return CodeForBackend(Fail(errors::kDeviceUnusable, "the session has left its group of ranks",
                               {.what = "an earlier run with collective operators was stopped or has failed",
                                .fix = "create the sessions of all ranks again, with a new id (collective.id)"}),
                          run->error);
  }
  const mge_collective_api& api = step.communicator->api();
  mge_code code = api.group_begin(run->error);
  if (code != MGE_OK) return code;
  for (uint32_t i = 0; i < step.operands && code == MGE_OK; ++i) code = Enqueue(step, step.list()[i], run);
  const mge_code ended = api.group_end(code == MGE_OK ? run->error : nullptr);
  return code == MGE_OK ? ended : code;
}

}  // namespace mge
