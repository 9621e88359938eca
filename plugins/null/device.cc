// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "backend.h"
#include "settings.h"

namespace backend {

mge::Result Device::List(mge::DeviceList& list) {
  for (int64_t i = 0; i < mge::ToInt(mge::SettingOf(kDevices)); ++i) {
    list.Add({
        .name = "device " + std::to_string(i) + " of the template (host memory, no hardware)",
        // PCI address or UUID: identifies the hardware, also if a second backend drives it.
        .fingerprint = "null-" + std::to_string(i),
        // Equal for cards of one model: times measured on one are used for the others.
        .device_class = "null",
        // Add unusable cards too, with score 0 and a reason: "driver 470 is too old; install 525".
        .score = 1,
        // A real device omits ONLY_BY_NAME, so that xpu can select it. It sets MGE_DEVICE_GPU to be selectable as gpu0. It
        // omits HOST_ACCESSIBLE if the host cannot read its memory, and SURVIVES_FORK if its driver does not survive a fork.
        .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME,
        .memory_total = 0,  // bytes; 0: unknown
        // .max_allocation: largest slab in bytes, if the driver has such a limit; the host then splits its arenas.
    });
  }
  return {};
}

// Opens the device number index_ of the list: create the driver's context here. The destructor closes it. Its queues, slabs
// and kernels are destroyed before.
mge::Result Device::Init() { return {}; }

// Returns MGE_DEVICE_LOST once the device is lost, in this and in every later call.
mge::Result Device::Health() { return {}; }

}  // namespace backend
