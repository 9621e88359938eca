// SPDX-License-Identifier: Apache-2.0
// Kernel families: the kernels of a session by what they compute, apart from shapes.
//
// A session makes a plan for each signature of input shapes. Some kernels serve many shapes: with the slot `rebind`, a
// backend derives a kernel for another shape from one that exists, without compiling or packing again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/kernel/kernel.h"

namespace mge {

// The kernels that plans of a session have prepared. Holds weak references. Thread-safe.
class KernelFamilies {
 public:
  // Returns a kernel of the same device, candidate and computation, for other shapes, or nullptr if there is none.
  KernelHandle Find(const std::string& family);
  void Add(const std::string& family, const KernelHandle& kernel);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<mge_kernel>> kernels_;
  size_t sweep_at_ = 64;  // the size at which expired entries are removed
};

}  // namespace mge
