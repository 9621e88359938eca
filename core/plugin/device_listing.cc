// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device_listing.h"

#include <algorithm>
#include <cstddef>

#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr size_t kMaxDevices = 1024;
constexpr uint32_t kMaxScore = 100;

// The receiver of the devices that enumerate() reports.
struct DeviceCollector {
  DeviceListing& out;
  const std::vector<std::string>* classes;
  Deferred deferred = {};

  void Add(const mge_device_info* info) {
    auto& [devices, bad] = out;
    if (!bad.empty()) return;
    if (!info || info->struct_size < offsetof(mge_device_info, memory_total)) {
      bad = "it describes a device with a struct that is NULL or too short";
      return;
    }
    mge_device_info known = Widen(*info);
    if (bad = WhyDeviceInfoIsBad(known); !bad.empty()) return;
    DeviceDescription d = {.index = known.index,
                           .class_name = CopyText(known.class_name, 64),
                           .name = EscapeControl(CopyText(known.name, 256)),
                           .fingerprint = CopyText(known.fingerprint, 256),
                           .device_class = CopyText(known.device_class, 256),
                           .reason = OneLine(CopyText(known.reason)),
                           .score = known.score,
                           .flags = known.flags,
                           .memory_total = known.memory_total,
                           .driver = EscapeControl(CopyText(known.driver, 256)),
                           .max_allocation = known.max_allocation,
                           .buffer_alignment = std::max(known.buffer_alignment, 64u),
                           .compute_queues = std::clamp(known.compute_queues, 1u, 64u)};
    for (uint64_t i = 0; i < known.property_count; ++i) {
      d.properties.emplace_back(CopyText(known.properties[i]->key), EscapeControl(CopyText(known.properties[i]->value)));
    }
    auto declares = [&](std::string_view cls) {
      return !classes || std::find(classes->begin(), classes->end(), cls) != classes->end();
    };
    if (devices.size() >= kMaxDevices) {
      bad = fmt::format("it reports more than {} devices", kMaxDevices);
    } else if (classes && (!declares(d.class_name) || d.class_name == "gpu")) {
      bad = fmt::format("it reports a device of class '{}'; its identity note declares {}", EscapeControl(d.class_name),
                        fmt::join(*classes, ", "));
    } else if ((d.flags & MGE_DEVICE_GPU) && !declares("gpu")) {
      bad =
          "it reports a device as a GPU, but its identity note does not declare the "
          "class gpu";
    } else if (d.flags & ~MGE_DEVICE_KNOWN_BITS) {
      bad = fmt::format("it sets unknown flags of a device ({:#x})", d.flags & ~MGE_DEVICE_KNOWN_BITS);
    } else if (d.score > kMaxScore) {
      bad = fmt::format("it gives a device the score {}; the highest is {}", d.score, kMaxScore);
    } else if (std::any_of(devices.begin(), devices.end(), [&](const auto& o) { return o.index == d.index; })) {
      bad = fmt::format("it reports two devices with the index {}", d.index);
    } else {
      devices.push_back(std::move(d));
    }
  }
};

}  // namespace

mge_code ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes, DeviceListing* out,
                     mge_error& error) {
  DeviceCollector collector = {*out, classes};
  mge_device_sink sink = {sizeof(sink), 0, &collector, [](void* self, const mge_device_info* info) {
                            auto& to = *static_cast<DeviceCollector*>(self);
                            to.deferred.Run([&] { to.Add(info); });
                          }};
  const mge_code code = CallBackend(error, [&](mge_error* e) { return plugin.device->enumerate(&sink, e); });
  collector.deferred.Rethrow();
  return code;
}

}  // namespace mge
