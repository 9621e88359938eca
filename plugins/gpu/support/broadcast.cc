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

Broadcast BroadcastTo(std::span<const int64_t> out, const std::vector<Value>& operands) {
  Broadcast b;
  b.dims.assign(out.begin(), out.end());
  for (const Value& v : operands) {
    std::vector<int64_t> strides(out.size(), 0);
    int64_t step = 1;
    size_t shift = out.size() - v.dims().size();
    for (size_t d = v.dims().size(); d-- > 0; step *= v.dims()[d]) {
      if (v.dims()[d] != 1) strides[d + shift] = step;
    }
    b.strides.push_back(std::move(strides));
  }
  Collapse(b.dims, b.strides);
  return b;
}

}  // namespace mge::gpu
