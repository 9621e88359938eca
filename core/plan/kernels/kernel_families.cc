// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/kernel_families.h"

#include <algorithm>

namespace mge {

KernelHandle KernelFamilies::Find(const std::string& family) {
  std::lock_guard lock(mutex_);
  auto at = kernels_.find(family);
  return at == kernels_.end() ? nullptr : at->second.lock();
}

void KernelFamilies::Add(const std::string& family, const KernelHandle& kernel) {
  std::lock_guard lock(mutex_);
  if (kernels_.size() >= sweep_at_) {
    std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * std::max<size_t>(kernels_.size(), 32);
  }
  kernels_[family] = kernel;
}

}  // namespace mge
