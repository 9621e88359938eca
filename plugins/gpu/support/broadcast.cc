// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/broadcast.h"

namespace mge::gpu {

void Collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides) {
  for (size_t d = dims.size(); d-- > 0;) {
    bool drop = dims[d] == 1, join = !drop && d + 1 < dims.size();
    for (auto& s : strides) join = join && s[d] == s[d + 1] * dims[d + 1];
    if (!drop && !join) continue;
    if (join) dims[d + 1] *= dims[d];
    dims.erase(dims.begin() + static_cast<int64_t>(d));
    for (auto& s : strides) s.erase(s.begin() + static_cast<int64_t>(d));
  }
  if (dims.empty()) {
    dims.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
}

Broadcast BroadcastTo(std::span<const int64_t> out, const std::vector<Value>& operands, Layout layout) {
  const std::vector<size_t> order = MemoryOrder(layout, out.size());
  Broadcast b;
  b.dims = InOrder(order, out);
  for (const Value& v : operands) {
    const std::vector<int64_t> own = StridesOf(v, static_cast<int>(out.size()), layout);
    std::vector<int64_t> strides(out.size(), 0);
    const size_t shift = out.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d) {
      if (v.dims()[d] != 1) strides[d + shift] = own[d];
    }
    b.strides.push_back(InOrder<int64_t>(order, strides));
  }
  Collapse(b.dims, b.strides);
  return b;
}

}  // namespace mge::gpu
