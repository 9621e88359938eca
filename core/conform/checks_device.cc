// SPDX-License-Identifier: Apache-2.0
// Checks of settings and devices.
#include <algorithm>

#include "core/conform/allocations.h"
#include "core/conform/kernel_run.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

void CheckSettings(BackendUnderTest& s) {
  if (s.plugin().setting_count == 0) NotOffered("the backend has no settings");
  const absl::Status declared = ResolveSettings(s.plugin(), {}).status();
  if (!declared.ok()) Broken(FormatError(declared));
}

void CheckEnumerate(BackendUnderTest& s) {
  NoteReading reading = NoteOf(s.path());
  DeviceListing first = ListDevices(s.plugin(), &reading.note.classes);
  if (!first.fault.empty()) Broken(first.fault);
  DeviceListing second = ListDevices(s.plugin());
  auto alike = [](const DeviceDescription& a, const DeviceDescription& b) {
    return a.index == b.index && a.fingerprint == b.fingerprint && a.score == b.score;
  };
  if (!std::ranges::equal(first.devices, second.devices, alike)) Broken("a second enumeration lists other devices");
}

void CheckOpenClose(BackendUnderTest& s) {
  const mge_device_api& api = *s.plugin().device;
  if (s.devices().empty()) NotOffered("the backend has no usable device on this machine");
  for (const DeviceDescription& d : s.devices()) {
    for (int i = 0; i < 8; ++i) Make("device", api.close, api.open, d.index);
  }
}

void CheckBadIndex(BackendUnderTest& s) {
  for (uint32_t index : {uint32_t{9999}, UINT32_MAX}) {
    mge_device* device = nullptr;
    MustFail(MGE_OK, fmt::format("opening device {}, which is not listed,", index), s.plugin().device->open, index, &device);
  }
}

void CheckNullError(BackendUnderTest& s) {
  mge_device* device = nullptr;
  if (s.plugin().device->open(9999, &device, nullptr) == MGE_OK) Broken("opening device 9999 was accepted");
  auto slab = Sized<mge_slab>();
  if (s.plugin().memory->slab_acquire(s.device(), 99, 64, &slab, nullptr) == MGE_OK)
    Broken("the memory class 99 was accepted");
}

void CheckLinks(BackendUnderTest& s) {
  if (!s.plugin().device->link) NotOffered("the slot link is empty: no two devices are linked");
  Owned<mge_device> other = s.OpenAnother();
  for (auto [from, to] : {std::pair{s.device(), other.get()}, std::pair{other.get(), s.device()}}) {
    auto link = Sized<mge_link>();
    Call("asking for a link", s.plugin().device->link, from, to, &link);
    if (link.flags & ~MGE_LINK_KNOWN_BITS) Broken("a link has unknown flags");
    if (!(link.bandwidth_gb_s >= 0) || !(link.latency_us >= 0)) Broken("a link's bandwidth or latency is negative");
  }
}

void CheckDeviceAllocations(BackendUnderTest& s) {
  s.Close();
  s.Stop();
  constexpr double kSeconds = 2;
  auto live = [&s] { LiveOnce(s); };
  SurvivesFailures(s, live, kSeconds);
}

constexpr Check kDeviceChecks[] = {
    {"settings.declared", "Settings are declared completely, so that the host can check the user's values.", CheckSettings,
     Needs::kTable},
    {"device.enumerate", "Devices are described completely, and the same ones are listed every time.", CheckEnumerate,
     Needs::kStarted},
    {"device.open_close", "A device can be opened and closed repeatedly.", CheckOpenClose, Needs::kStarted},
    {"device.bad_index", "Opening a device that is not listed fails with a text.", CheckBadIndex, Needs::kStarted},
    {"device.no_error_slot", "Errors are returned even if the host passes NULL for the error.", CheckNullError},
    {"device.links", "Links between devices have known flags and no negative numbers.", CheckLinks},
    {"device.allocations",
     "Starting, opening, memory, queues, a kernel, closing and stopping survive every failing allocation.",
     CheckDeviceAllocations},
};

}  // namespace

std::span<const Check> DeviceChecks() { return kDeviceChecks; }

}  // namespace mge::conform
