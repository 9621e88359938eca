// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "backend.h"
#include "settings.h"

namespace backend {

mge::Result Device::List(mge::DeviceList& list) {
  for (int64_t i = 0; i < mge::ToInt(mge::SettingOf(kDevices)); ++i) {
    list.Add({
        .name = "device " + std::to_string(i) + " of the template (host memory, no hardware)",
        // PCI address or UUID: by it the host sees that two backends drive one card, and numbers cards.
        .fingerprint = "null-" + std::to_string(i),
        // Cards of one model share it, so that what was measured on one serves the other.
        .device_class = "null",
        // A card that cannot be used is listed, too, with score 0 and a reason: "driver 470 is too old; install 525".
        .score = 1,
        // A real device leaves out ONLY_BY_NAME, so that xpu finds it; says GPU if it answers to gpu0; and leaves out
        // HOST_ACCESSIBLE if the host cannot read its memory, SURVIVES_FORK if its driver does not.
        .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME,
        .memory_total = 0,  // bytes; 0: not known
        // .max_allocation: most bytes of one slab, where the driver has such a limit; the host splits its arenas to fit.
    });
  }
  return {};
}

// Open device number index_, which is one of the list: create the driver's context. The destructor closes it, when its queues,
// slabs and kernels are gone.
mge::Result Device::Init() { return {}; }

// Once a device is lost, this and every later call on it answer MGE_DEVICE_LOST.
mge::Result Device::Health() { return {}; }

}  // namespace backend
