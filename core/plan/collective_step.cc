// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collective_step.h"

#include <tuple>
#include <utility>

#include "core/base/element_range.h"
#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "fmt/format.h"

namespace mge {

namespace {

absl::Status NoRank(const Node& node, std::string_view attribute, int64_t rank, uint32_t ranks) {
  return Fail(errors::kInvalidNode, fmt::format("{} is {}, but the group has {} ranks", attribute, rank, ranks),
              {.where = NodePlace(node), .fix = "name a rank below the setting collective.ranks"});
}

absl::Status ReadExchange(const Node& node, uint32_t ranks, CollectiveStepArgs& args) {
  CollectiveOperand* operand = args.list();
  for (const auto& [peer, key, sends] : {std::tuple("to", "to_key", true), std::tuple("from", "from_key", false)}) {
    const Ints peers = node.attrs.IntList(peer), keys = node.attrs.IntList(key);
    for (size_t i = 0; i < peers.size(); ++i, ++operand) {
      if (peers[i] < -1 || peers[i] >= int64_t{ranks}) return NoRank(node, peer, peers[i], ranks);
      operand->sends = sends;
      operand->peer = static_cast<int32_t>(peers[i]);
      operand->key = keys[i];
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGather(const Node& node, uint32_t rank, uint32_t ranks, CollectiveStepArgs& args) {
  for (uint32_t i = 0; i < args.operands; ++i) {
    const CollectiveOperand& o = args.list()[i];
    const auto expected = PartOfElements(static_cast<int64_t>(o.whole), rank, ranks).count;
    if (static_cast<int64_t>(o.count) == expected) continue;
    return Fail(
        errors::kInvalidNode,
        fmt::format("input {} has {} elements, but the part of rank {} of {} has {}", i, o.count, rank, ranks, expected),
        {.where = NodePlace(node), .fix = "divide the elements evenly over the ranks"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCollective(const Node& node, uint32_t rank, uint32_t ranks, CollectiveStepArgs& args) {
  constexpr std::pair<std::string_view, int32_t> kReductions[] = {
      {"sum", MGE_REDUCE_SUM}, {"product", MGE_REDUCE_PRODUCT}, {"min", MGE_REDUCE_MIN}, {"max", MGE_REDUCE_MAX}};
  constexpr std::pair<Trait, CollectiveKind> kKinds[] = {
      {kAllReduce, CollectiveKind::kAllReduce}, {kBroadcast, CollectiveKind::kBroadcast},
      {kExchange, CollectiveKind::kExchange},   {kStartsSum, CollectiveKind::kStartSum},
      {kEndsSum, CollectiveKind::kEndSum},      {kGathers, CollectiveKind::kAllGather}};
  for (const auto& [trait, kind] : kKinds) {
    if (node.def->Is(trait)) args.kind = kind;
  }
  if (args.kind == CollectiveKind::kExchange) return ReadExchange(node, ranks, args);
  if (args.kind == CollectiveKind::kAllGather) return CheckGather(node, rank, ranks, args);
  if (args.kind == CollectiveKind::kStartSum || args.kind == CollectiveKind::kEndSum) {
    args.bucket = static_cast<uint32_t>(node.attrs.Int("bucket"));
    args.parts = args.kind == CollectiveKind::kStartSum && node.attrs.Int("parts") != 0;
    return absl::OkStatus();
  }
  const std::string reduction = node.attrs.Text("reduction");
  for (const auto& [name, number] : kReductions) {
    if (name == reduction) args.reduction = number;
  }
  const int64_t root = node.attrs.Int("root");
  if (root < 0 || root >= int64_t{ranks}) return NoRank(node, "root", root, ranks);
  args.root = static_cast<uint32_t>(root);
  return absl::OkStatus();
}

mge_code RunCollectiveStep(const void* args, const mge_run* run) {
  const auto& step = *static_cast<const CollectiveStepArgs*>(args);
  return step.communicator->Run(step, run);
}

}  // namespace mge
