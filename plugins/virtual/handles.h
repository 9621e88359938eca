// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of plugin.h, and the tables of this backend.
#pragma once

#include <memory>

#include "mge/plugin.hpp"
#include "plugins/gpu/software/device.h"
#include "plugins/gpu/software/stream.h"
#include "settings.h"

struct mge_device {
  mge::software::SoftwareDevice gpu;
};
struct mge_queue {
  mge::software::Stream stream;
};
struct mge_fence {
  std::shared_ptr<mge::software::Event> event;  // shared with streams that will signal it
};
struct mge_stamp {
  std::shared_ptr<mge::software::Stamp> stamp;
};

namespace mge::virtual_gpu {

// Returns the settings. Valid between start() and stop().
const Options& CurrentOptions();

const void* Extension(const char* name, uint32_t min_version);

extern const mge_device_api kDeviceTable;
extern const mge_memory_api kMemoryTable;
extern const mge_queue_api kQueueTable;
extern const mge_profile_api kProfileTable;
extern const mge_kernel_api kKernelTable;

}  // namespace mge::virtual_gpu
