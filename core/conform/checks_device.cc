// SPDX-License-Identifier: Apache-2.0
// Checks of settings and devices.
#include <algorithm>
#include <set>

#include "core/conform/kernel_run.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

absl::Status CheckSettings(BackendUnderTest& s) {
  const mge_plugin& p = s.plugin();
  if (p.setting_count == 0) return NotOffered("the backend has no settings");
  std::set<std::string> keys;
  std::string prefix = CopyText(p.name) + ".";
  for (uint64_t i = 0; i < p.setting_count; ++i) {
    const mge_setting& row = *p.settings[i];
    std::string key = CopyText(row.key), default_value = CopyText(row.default_value);
    std::string choices = fmt::format("|{}|", CopyText(row.choices));
    auto bad = [&](std::string_view what) { return Broken(fmt::format("setting '{}': {}", key, what)); };
    if (!key.starts_with(prefix)) return bad("its key does not begin with the backend's name");
    if (!keys.insert(key).second) return bad("it is declared twice");
    if (CopyText(row.doc).empty()) return bad("it has no sentence that explains it");
    if (row.type < MGE_SETTING_BOOL || row.type > MGE_SETTING_CHOICE) return bad("its type is unknown");
    if (row.lifecycle != MGE_LIFECYCLE_FIRST_SET && row.lifecycle != MGE_LIFECYCLE_DYNAMIC)
      return bad("its lifecycle is unknown");
    if (row.min > row.max) return bad("its range is empty");
    if (row.type == MGE_SETTING_CHOICE && choices.find("|" + default_value + "|") == std::string::npos)
      return bad("its default is not one of its choices");
    if (absl::StatusOr<std::string> plain = PlainSetting(row, default_value); !plain.ok()) {
      return bad(fmt::format("its default '{}' {}", default_value, Std(plain.status().message())));
    }
    if ((row.type == MGE_SETTING_INT || row.type == MGE_SETTING_DOUBLE) && (row.min != 0 || row.max != 0)) {
      double value = std::strtod(default_value.c_str(), nullptr);
      if (value < row.min || value > row.max) return bad("its default is outside of its range");
    }
  }
  absl::StatusOr<ResolvedSettings> registered = ResolveSettings(p, {});
  return registered.ok() ? absl::OkStatus() : Broken(FormatError(registered.status()));
}

absl::Status CheckEnumerate(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(NoteReading reading, NoteOf(s.path()));
  MGE_ASSIGN_OR_RETURN(DeviceList first, ListDevices(s.plugin(), &reading.note.classes));
  if (!first.fault.empty()) return Broken(first.fault);
  MGE_ASSIGN_OR_RETURN(DeviceList second, ListDevices(s.plugin()));
  auto alike = [](const DeviceDescription& a, const DeviceDescription& b) {
    return a.index == b.index && a.fingerprint == b.fingerprint && a.score == b.score;
  };
  if (!std::ranges::equal(first.devices, second.devices, alike)) return Broken("a second enumeration lists other devices");
  return absl::OkStatus();
}

absl::Status CheckOpenClose(BackendUnderTest& s) {
  for (const DeviceDescription& d : s.devices()) {
    for (int i = 0; i < 8; ++i) {
      mge_device* device = nullptr;
      MGE_RETURN_IF_ERROR(Call(fmt::format("opening device {} for the {}. time", d.index, i + 1),
                               [&](mge_error* e) { return s.plugin().device->open(d.index, &device, e); }));
      if (!device) return Broken("opening a device returned MGE_OK, but no device");
      s.plugin().device->close(device);
    }
  }
  return s.devices().empty() ? NotOffered("the backend has no usable device on this machine") : absl::OkStatus();
}

absl::Status CheckBadIndex(BackendUnderTest& s) {
  for (uint32_t index : {uint32_t{9999}, UINT32_MAX}) {
    mge_device* device = nullptr;
    MGE_RETURN_IF_ERROR(MustRefuse(fmt::format("opening device {}, which is not listed,", index),
                                   [&](mge_error* e) { return s.plugin().device->open(index, &device, e); }));
  }
  return absl::OkStatus();
}

absl::Status CheckNullError(BackendUnderTest& s) {
  mge_device* device = nullptr;
  if (s.plugin().device->open(9999, &device, nullptr) == MGE_OK) return Broken("opening device 9999 was accepted");
  auto slab = Sized<mge_slab>();
  if (s.plugin().memory->slab_acquire(s.device(), 99, 64, &slab, nullptr) == MGE_OK)
    return Broken("the memory class 99 was accepted");
  return absl::OkStatus();
}

absl::Status CheckStatus(BackendUnderTest& s) {
  if (!s.plugin().device->status) return NotOffered("the slot status is empty");
  return Call("asking for the status of a device that works",
              [&](mge_error* e) { return s.plugin().device->status(s.device(), e); });
}

absl::Status CheckLinks(BackendUnderTest& s) {
  if (!s.plugin().device->link) return NotOffered("the slot link is empty: no two devices are linked");
  if (s.devices().size() < 2) return NotOffered("the backend shows one device");
  mge_device* other = nullptr;
  MGE_RETURN_IF_ERROR(Call("opening the second device",
                           [&](mge_error* e) { return s.plugin().device->open(s.devices()[1].index, &other, e); }));
  for (auto [from, to] : {std::pair{s.device(), other}, std::pair{other, s.device()}}) {
    auto link = Sized<mge_link>();
    MGE_RETURN_IF_ERROR(
        Call("asking for a link", [&](mge_error* e) { return s.plugin().device->link(from, to, &link, e); }));
    if (link.flags & ~MGE_LINK_KNOWN_BITS) return Broken("a link has unknown flags");
    if (!(link.bandwidth_gb_s >= 0) || !(link.latency_us >= 0)) return Broken("a link's bandwidth or latency is negative");
  }
  s.plugin().device->close(other);
  return absl::OkStatus();
}

absl::Status CheckAllocations(BackendUnderTest& s) {
  s.Close();
  s.Stop();
  constexpr double kSeconds = 2;
  return SurvivesFailures(
      s,
      [&s] {
        absl::Status status = UseLikeSession(s);
        s.Close();
        s.Stop();
        return status;
      },
      kSeconds);
}

constexpr Check kRows[] = {
    {"settings.declared", "Settings are declared completely, so that the host can check the user's values.", Needs::kTable,
     CheckSettings},
    {"device.enumerate", "Devices are described completely, and the same ones are listed every time.", Needs::kStarted,
     CheckEnumerate},
    {"device.open_close", "A device can be opened and closed repeatedly.", Needs::kStarted, CheckOpenClose},
    {"device.bad_index", "Opening a device that is not listed fails with a text.", Needs::kStarted, CheckBadIndex},
    {"device.no_error_slot", "Errors are returned even if the host passes NULL for the error.", Needs::kDevice,
     CheckNullError},
    {"device.status", "The status of a working device is MGE_OK.", Needs::kDevice, CheckStatus},
    {"device.links", "Links between devices have known flags and no negative numbers.", Needs::kDevice, CheckLinks},
    {"device.allocations",
     "Starting, opening, memory, queues, a kernel, closing and stopping survive every failing allocation.", Needs::kDevice,
     CheckAllocations},
};

}  // namespace

std::span<const Check> DeviceChecks() { return kRows; }

}  // namespace mge::conform
