// SPDX-License-Identifier: Apache-2.0
// The built-in device `host`: host memory with the same tables as a plugin, so that no code needs a special case for it.
#pragma once

#include <memory>

#include "mge/plugin.h"

namespace mge {

// The plugin table of the device `host`, for Backend::FromTable().
class HostDevice {
 public:
  // `kernels` is optional, is not owned and must outlive this object. Without it the device offers no kernel. It is passed
  // in because this layer does not know operators.
  explicit HostDevice(const mge_kernel_api* kernels);
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  const mge_plugin* plugin() const { return &plugin_; }

 private:
  mge_plugin plugin_;
};

}  // namespace mge
