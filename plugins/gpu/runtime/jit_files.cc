// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/jit_files.h"

#include "mge/plugin/jit_files.hpp"
#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {

void KeepJitFiles(const KernelSource& source, const std::string& image) {
  if (!KeepsJitFiles()) return;
  if (image.empty()) return mge::KeepJitFiles(source.name, {{".cu", source.text}});
  const char* suffix = TheVendor().is_hip ? ".hsaco" : image.starts_with("\177ELF") ? ".cubin" : ".ptx";
  mge::KeepJitFiles(source.name, {{".cu", source.text}, {suffix, image}});
}

}  // namespace mge::gpu
