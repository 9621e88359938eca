// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "handles.h"

namespace mge::virtual_gpu {
namespace {

mge_code Enumerate(const mge_device_sink* sink, mge_error* error) noexcept {
  return Guard(error, [&] {
    const Options& o = CurrentOptions();
    std::string cls = "virtual-warp" + std::to_string(o.device.emulator.warp);
    for (int i = 0; i < o.devices; ++i) {
      std::string fingerprint = "virtual:" + std::to_string(i);
      mge_device_info info = {};
      info.struct_size = sizeof(info);
      info.index = static_cast<uint32_t>(i);
      info.class_name = Text("virtual");
      info.name = Text("GPU in software, emulated on the processor");
      info.fingerprint = Text(fingerprint);
      info.device_class = Text(cls);
      info.reason = Text(o.problem.text());
      info.score = o.problem.ok() ? 1 : 0;
      info.flags = MGE_DEVICE_ONLY_BY_NAME | (o.gpu ? MGE_DEVICE_GPU : 0);
      info.memory_total = o.device.memory_bytes;
      info.max_allocation = o.max_allocation;
      sink->device(sink->self, &info);
    }
    return MGE_OK;
  });
}

mge_code Open(uint32_t index, mge_device** out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    const Options& o = CurrentOptions();
    if (!o.problem.ok()) return Report(error, o.problem);
    if (index >= static_cast<uint32_t>(o.devices)) {
      return Report(error, MGE_NOT_FOUND, "there is no device virtual" + std::to_string(index));
    }
    software::DeviceOptions device = o.device;
    device.number = static_cast<int>(index);
    device.name = "virtual" + std::to_string(index);
    device.helpers = {Host()->thread_count(Host()->self), Host()->parallel_for, Host()->self};
    *out = new mge_device{software::SoftwareDevice(std::move(device))};
    return MGE_OK;
  });
}

void Close(mge_device* device) noexcept { delete device; }

mge_code Status(mge_device* device, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, device->gpu.Health()); });
}

mge_code LinkOf(mge_device* from, mge_device* to, mge_link* out, mge_error* error) noexcept {
  return Guard(error, [&] {
    const software::Link& link = from->gpu.LinkTo(to->gpu);
    Fill<mge_link>(out, {sizeof(mge_link), link.peer ? uint32_t{MGE_LINK_PEER} : 0, link.bandwidth_gb_s, link.latency_us,
                         Text(link.name)});
    return MGE_OK;
  });
}

}  // namespace

const mge_device_api kDeviceTable = Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
  t.status = Status;
  t.link = LinkOf;
});

}  // namespace mge::virtual_gpu
