// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include "isa.h"
#include "memory.h"

// An open device has no state.
struct mge_device {};

namespace mge::cpu {
namespace {

mge_code Enumerate(const mge_device_sink* sink, mge_error* error) noexcept {
  return Guard(error, [&] {
    mge_device_info info = {};
    info.struct_size = sizeof(info);
    info.index = 0;
    info.class_name = Text("cpu");
    info.name = Text(ThisProcessor().name);
    info.fingerprint = Text("cpu:0");
    info.device_class = Text(DeviceClass());
    info.score = 50;
    info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK;
    info.memory_total = HostMemoryAmount().total_bytes;
    sink->device(sink->self, &info);
    return MGE_OK;
  });
}

mge_code Open(uint32_t index, mge_device** out, mge_error* error) noexcept {
  static mge_device device;
  if (index != 0) return Report(error, MGE_NOT_FOUND, "the cpu backend has one device, number 0");
  *out = &device;
  return MGE_OK;
}

void Close(mge_device*) noexcept {}

}  // namespace

const std::string& DeviceClass() {
  static const std::string key = [] {
    const Processor& p = ThisProcessor();
    return "cpu-" + std::string(IsaName(p.isa)) + "-" + std::to_string(p.family) + "." + std::to_string(p.model);
  }();
  return key;
}

const mge_device_api kDeviceApi = Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
});

}  // namespace mge::cpu
