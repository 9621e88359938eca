// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/broadcast.h"

#include "core/base/shape.h"

namespace mge {

bool FitsBroadcastTo(std::span<const int64_t> shape, std::span<const int64_t> target) {
  if (shape.size() > target.size()) return false;
  std::span<const int64_t> tail = target.last(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && shape[d] != tail[d] && shape[d] != kUnknownDim && tail[d] != kUnknownDim) return false;
  }
  return true;
}

}  // namespace mge
