// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/image_group_norm.h"

namespace mge::op_skip_group_norm {
namespace {

// A skip of two dimensions is [batch, channels].
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(0) || !f.has_rank(3)) return false;
  const bool last = f.attrs().Int("channels_last") != 0;
  const auto spread = [&](ValueId v, bool has_batch) {
    Ints axes;
    for (int64_t d = 1; d < f.rank(0) - 1; ++d) axes.push_back(last ? (has_batch ? d : d - 1) : (has_batch ? d + 1 : d));
    return axes.empty() ? v : f.Add("Unsqueeze", {v, f.Integers(axes)});
  };
  const ValueId skip = f.rank(3) == 2 && f.rank(0) > 2 ? spread(f.input(3), true) : f.input(3);
  ValueId sum = f.Add("Add", {f.input(0), skip});
  if (f.has_input(4)) sum = f.Add("Add", {sum, last ? f.input(4) : spread(f.input(4), false)});
  MGE_ASSIGN_OR_RETURN(const bool done, AddGroupNorm(f, sum));
  f.Result(1, "Identity", {sum});
  return done;
}

}  // namespace

MGE_OP(skip_group_norm) = {
    .name = "SkipGroupNorm",
    .domain = "com.microsoft",
    .doc = "GroupNorm of X + skip + bias.",
    .inputs = {{"X", kFloating},
               {"gamma", kFloating},
               {"beta", kFloating},
               {"skip", kFloating},
               {"bias", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}, {"S", kAnyType, Arity::kOptional}},
    .attrs = {{"activation", AttrType::kInt, Presence::kRequired, "1: Swish follows"},
              {"channels_last", 1, "not 0: the channels are the last axis"},
              {"epsilon", 1e-5f, "added to the variance"},
              {"groups", AttrType::kInt, Presence::kRequired, "the number of groups of channels"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5,4], T[4], T[4], T[2,3,5,4], T[4]) {groups=2, activation=1} -> 2",
                 "(T[2,4,3,5], T[4], T[4], T[2,4]) {groups=2, activation=0, channels_last=0}"},
};

}  // namespace mge::op_skip_group_norm
