// SPDX-License-Identifier: Apache-2.0
// GroupNorm and SkipGroupNorm of com.microsoft.
#pragma once

#include "core/ops/families/channels_last.h"
#include "fmt/format.h"

namespace mge {

// Computes output 0: normalizes the groups of channels of `x`, which has the type of input 0, and applies the activation.
// Inputs 1 and 2 are scale and shift. Returns false if the rank of input 0 is unknown.
inline absl::StatusOr<bool> AddGroupNorm(FunctionBody& f, ValueId x) {
  if (!f.has_rank(0)) return false;
  if (f.rank(0) < 3) return f.Invalid("X must have at least 3 dimensions");
  const int64_t activation = f.attrs().Int("activation");
  if (activation != 0 && activation != 1) return f.Unsupported(fmt::format("the attribute activation = {}", activation));
  const bool last = f.attrs().Int("channels_last") != 0;
  Attributes attrs = f.Only({"epsilon"});
  attrs.Set("num_groups", f.attrs().Int("groups"));
  const DType type = f.dtype(0);
  ValueId y = f.Add("GroupNormalization",
                    {last ? ChannelsSecond(f, x, f.rank(0)) : x, f.Cast(f.input(1), f.dtype(1), type),
                     f.Cast(f.input(2), f.dtype(2), type)},
                    std::move(attrs));
  if (activation == 1) y = f.Add("Swish", {y});
  if (last) {
    f.Result(0, "Transpose", {y}, OneAttribute("perm", ChannelsLast(f.rank(0))));
  } else {
    f.Result(0, "Identity", {y});
  }
  return true;
}

}  // namespace mge
