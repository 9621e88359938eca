// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collective_step.h"

#include <utility>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "fmt/format.h"

namespace mge {

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
  return step.communicator->Run(step, run);
}

}  // namespace mge
