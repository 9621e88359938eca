// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/rows.h"

#include "plugins/gpu/launch.h"
#include "plugins/gpu/runtime/compiled_chains.h"

namespace mge::gpu {

std::vector<const KernelRow*> RowsWith(std::initializer_list<KernelFamily> own) {
  std::vector<const KernelRow*> all;
  for (const KernelRow& row : mge_kernels_compiled_chains) all.push_back(&row);
  uint64_t count = 0;
  const KernelRow* const* const common = KernelRows::Rows(&count);
  all.insert(all.end(), common, common + count);
  for (const KernelFamily& family : own) {
    for (const KernelRow& row : family) all.push_back(&row);
  }
  return all;
}

}  // namespace mge::gpu
