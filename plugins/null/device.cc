// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <string>

#include "settings.h"
#include "tables.h"

namespace mge::null {
namespace {

mge_code Enumerate(const mge_device_sink* sink, mge_error* error) noexcept {
  return Guard(error, [&] {
    for (uint32_t i = 0; i < DeviceCount(); ++i) {
      std::string name = "template device " + std::to_string(i) + " (host memory, no hardware)";
      std::string fingerprint = "null-" + std::to_string(i);
      mge_device_info info = {};
      info.struct_size = sizeof(info);
      info.index = i;
      info.class_name = Text("null");
      info.name = Text(name);
      // PCI address or UUID: by it the host sees that two backends drive one card, and numbers
      // cards.
      info.fingerprint = Text(fingerprint);
      // Cards of one model share it, so that what was measured on one serves the other.
      info.device_class = Text("null");
      // A card that cannot be used is reported too, with score 0 and `reason`: "driver 470 is too
      // old; install 525 or newer".
      info.score = 1;
      // A real device leaves out ONLY_BY_NAME, so that xpu finds it, and says MGE_DEVICE_GPU if it
      // answers to gpu0.
      info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME;
      sink->device(sink->self, &info);
    }
    return MGE_OK;
  });
}

mge_code Open(uint32_t index, mge_device** out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    if (index >= DeviceCount())
      return Report(error, MGE_NOT_FOUND, "there is no device " + std::to_string(index));
    *out = new mge_device{index};
    return MGE_OK;
  });
}

// Its queues, slabs and kernels are gone by now.
void Close(mge_device* device) noexcept { delete device; }

// Once a device is lost, this and every other call on it answer MGE_DEVICE_LOST.
mge_code Status(mge_device*, mge_error*) noexcept { return MGE_OK; }

}  // namespace

const mge_device_api kDeviceTable = Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
  t.status = Status;
  t.link = nullptr;  // how one device reaches another: a backend with several devices says so here
});

}  // namespace mge::null
