// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/softmax.h"

#include <algorithm>

namespace mge {

absl::StatusOr<AxisSplit> SoftmaxRows(const Node& node, std::span<const int64_t> shape) {
  MGE_ASSIGN_OR_RETURN(int64_t axis,
                       NormalizeAxis(node.attrs.Int("axis"), std::max<int64_t>(1, static_cast<int64_t>(shape.size()))));
  AxisSplit split = SplitAtAxis(shape, axis);
  if (node.attrs.Int("_flatten") != 0) {
    split.size *= split.inner;
    split.inner = 1;
  }
  return split;
}

absl::Status SoftmaxInfer(InferContext& ctx) {
  if (ctx.input(0).has_rank) MGE_RETURN_IF_ERROR(SoftmaxRows(ctx.node(), ctx.input(0).dims).status());
  return SameTypeAsFirst(ctx);
}

absl::Status UpgradeSoftmax(Graph&, Node& node) {
  if (node.version >= 13) return absl::OkStatus();
  int64_t axis = node.attrs.Int("axis", 1);
  node.attrs.Set("axis", axis);
  if (axis != -1) node.attrs.Set("_flatten", int64_t{1});  // the last axis means the same in both forms
  return absl::OkStatus();
}

}  // namespace mge
