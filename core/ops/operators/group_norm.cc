// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/image_group_norm.h"

namespace mge::op_group_norm {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) { return AddGroupNorm(f, f.input(0)); }

}  // namespace

MGE_OP(group_norm) = {
    .name = "GroupNorm",
    .domain = "com.microsoft",
    .doc = "Normalizes each group of channels, scales and shifts. The activation 1 is x * sigmoid(x).",
    .inputs = {{"X", kFloating}, {"gamma", kFloating}, {"beta", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"activation", AttrType::kInt, Presence::kRequired, "1: Swish follows"},
              {"channels_last", 1, "not 0: the channels are the last axis"},
              {"epsilon", 1e-5f, "added to the variance"},
              {"groups", AttrType::kInt, Presence::kRequired, "the number of groups of channels"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5,4], T[4], T[4]) {groups=2, activation=1}",
                 "(T[2,4,3,5], T[4], T[4]) {groups=2, activation=0, channels_last=0}"},
};

}  // namespace mge::op_group_norm
