// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/kernel_families.h"

namespace mge {

KernelHandle KernelFamilies::Find(const std::string& family) {
  std::lock_guard lock(mutex_);
  auto at = kernels_.find(family);
  return at == kernels_.end() ? nullptr : at->second.lock();
}

void KernelFamilies::Add(const std::string& family, const KernelHandle& kernel) {
  std::lock_guard lock(mutex_);
  kernels_[family] = kernel;
}

}  // namespace mge
