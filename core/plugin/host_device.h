// SPDX-License-Identifier: Apache-2.0
// The built-in device `host`: host memory behind the same tables as a plugin's, so that nothing treats it specially.
#pragma once

#include <memory>

#include "mge/plugin.h"

namespace mge {

// A table for Backend::FromTable. `kernels` (nullable: no kernel is offered) comes from a layer that knows operators, and
// outlives the table.
class HostDevice {
 public:
  explicit HostDevice(const mge_kernel_api* kernels);
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  const mge_plugin* plugin() const { return &plugin_; }

 private:
  mge_plugin plugin_;
};

}  // namespace mge
