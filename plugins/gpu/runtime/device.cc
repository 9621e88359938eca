// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace mge::gpu {
namespace {

constexpr uint32_t kAlignment = 256;  // of every allocation of both drivers
constexpr uint64_t kMinGranule = 64 << 10;
constexpr int kProhibited = 2;  // compute mode: no process may use the device

// Returns an attribute, or 0 if the driver has none.
int AttributeOf(int device, int number) {
  int value = 0;
  if (number < 0 || TheDriver().device_attribute.call(&value, number, device) != kDriverOk) return 0;
  return value;
}

std::string UuidText(const std::array<unsigned char, 16>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += two;
  }
  return text;
}

// Returns the bytes per microsecond of a device's memory: two transfers per clock.
double MemoryPeak(int device) {
  const AttributeNumbers& numbers = TheVendor().numbers;
  return 2e-3 * AttributeOf(device, numbers.memory_clock_khz) * (AttributeOf(device, numbers.bus_bits) / 8.0);
}

double RateOf(const mge_setting* setting) { return setting ? ToDouble(SettingOf(*setting)) : 0; }

// Returns the roofs of a device: the measured rates of the settings, or else what its properties tell.
Roofs RoofsOfDevice(int device) {
  // The share of the peaks that kernels without matrix units usually reach, and how much faster matrix units usually are.
  constexpr double kMemoryShare = 0.8, kComputeShare = 0.5, kMatrixGain = 8;
  const Vendor& v = TheVendor();
  Roofs roofs = kAverageRoofs;
  const double bytes = MemoryPeak(device);
  if (bytes > 0) roofs.bytes_per_us = kMemoryShare * bytes;
  const int multiprocessors = AttributeOf(device, v.numbers.multiprocessors);
  if (multiprocessors > 0) roofs.multiprocessors = multiprocessors;
  const int per_clock = v.operations_per_clock(AttributeOf(device, v.numbers.major), AttributeOf(device, v.numbers.minor));
  const double clocks_per_us = 1e-3 * AttributeOf(device, v.numbers.clock_khz);
  if (clocks_per_us > 0) roofs.operations_per_us = kComputeShare * roofs.multiprocessors * per_clock * clocks_per_us;
  if (const double gb_s = RateOf(v.rates.memory); gb_s > 0) roofs.bytes_per_us = 1e3 * gb_s;
  if (const double tflop_s = RateOf(v.rates.compute); tflop_s > 0) roofs.operations_per_us = 1e6 * tflop_s;
  const double tflop_s = RateOf(v.rates.matrix);
  roofs.matrix_operations_per_us = tflop_s > 0 ? 1e6 * tflop_s : kMatrixGain * roofs.operations_per_us;
  return roofs;
}

Result Describe(int ordinal, DeviceInfo* info) {
  const Driver& d = TheDriver();
  const Vendor& v = TheVendor();
  int device = 0;
  char name[256] = {}, pci[32] = {};
  std::array<unsigned char, 16> uuid = {};
  size_t memory = 0;
  if (Result r = Call(d.device_get, &device, ordinal); !r.ok()) return r;
  if (Result r = Call(d.device_name, name, int{sizeof(name)}, device); !r.ok()) return r;
  if (Result r = Call(d.device_pci, pci, int{sizeof(pci)}, device); !r.ok()) return r;
  if (Result r = Call(d.device_uuid, uuid.data(), device); !r.ok()) return r;
  if (Result r = Call(d.device_memory, &memory, device); !r.ok()) return r;
  const int major = AttributeOf(device, v.numbers.major), minor = AttributeOf(device, v.numbers.minor);
  info->name = name;
  info->fingerprint = pci;
  info->device_class = std::string(v.name) + "-" + v.capability(major, minor) + "-" + name;
  info->score = 90;
  info->flags = MGE_DEVICE_GPU;
  info->memory_total = memory;
  info->driver = std::string(v.product) + " " + v.version_text(d.version);
  info->buffer_alignment = kAlignment;
  info->compute_queues = static_cast<uint32_t>(ToInt(SettingOf(*v.queues_setting)));
  info->properties = {{"uuid", UuidText(uuid)},
                      {"pci", pci},
                      {"capability", v.capability(major, minor)},
                      {"multiprocessors", std::to_string(AttributeOf(device, v.numbers.multiprocessors))},
                      {"memory_gb_s", std::to_string(static_cast<int>(MemoryPeak(device) / 1e3 + 0.5))}};
  info->reason = v.refusal(major, minor);
  if (AttributeOf(device, v.numbers.compute_mode) == kProhibited) {
    info->reason = "its compute mode is 'prohibited'; the administrator can change it";
  }
  if (!info->reason.empty()) info->score = 0;
  return {};
}

}  // namespace

Result Device::List(DeviceList& list) {
  int count = 0;
  if (Result r = Call(TheDriver().device_count, &count); !r.ok()) return {MGE_UNAVAILABLE, r.text()};
  for (int i = 0; i < count; ++i) {
    DeviceInfo info;
    if (Result r = Describe(i, &info); !r.ok()) {
      info.name = std::string(TheVendor().product) + " device";
      info.score = 0;
      info.reason = "it cannot be queried: " + r.text();
    }
    list.Add(info);
  }
  return {};
}

Result Device::Init() {
  int device = 0;
  if (Result r = Call(TheDriver().device_get, &device, ordinal_); !r.ok()) return Keep(std::move(r));
  if (Result r = Call(TheDriver().context_retain, &context_, device); !r.ok()) {
    context_ = nullptr;
    if (r.code() == MGE_RESOURCE_EXHAUSTED) r = {r.code(), r.text() + ": other processes use the memory of the device"};
    return Keep(std::move(r));
  }
  PhysicalProperties properties;
  properties.location = ordinal_;
  size_t bytes = 0;
  if (AttributeOf(device, TheVendor().numbers.virtual_memory) > 0 &&
      TheDriver().range_granularity.call(&bytes, &properties, 0) == kDriverOk) {
    granularity_ = std::max<uint64_t>(bytes, kMinGranule);
  }
  FindAccessors();
  roofs_ = RoofsOfDevice(device);
  return compiled_.CheckSetting(*this);
}

void Device::FindAccessors() {
  accessors_.push_back({.location = ordinal_});
  int count = 0;
  if (TheDriver().device_count.call(&count) != kDriverOk) return;
  for (int peer = 0; peer < count; ++peer) {
    int can = 0;
    if (peer != ordinal_ && TheDriver().can_access_peer.call(&can, peer, ordinal_) == kDriverOk && can) {
      accessors_.push_back({.location = peer});
    }
  }
}

Device::~Device() {
  if (!context_) return;
  Always([this] {
    events_.Destroy();
    compiled_.Unload();
    images_.Unload();
  });
  TheDriver().context_release.call(ordinal_);
}

Architecture Device::architecture() const {
  const Vendor& v = TheVendor();
  return {AttributeOf(ordinal_, v.numbers.major), AttributeOf(ordinal_, v.numbers.minor),
          v.architecture_name ? v.architecture_name(ordinal_) : ""};
}

Result Device::Keep(Result r) {
  std::string text = name_ + ": " + r.text();
  if (r.code() != MGE_DEVICE_LOST) return {r.code(), r.code() == MGE_DEADLINE_EXCEEDED ? r.text() : std::move(text)};
  std::lock_guard lock(mutex_);
  if (!lost_) loss_ = name_ + " is lost: " + r.text();
  lost_ = true;
  return {MGE_DEVICE_LOST, loss_};
}

Result Device::Health() {
  if (!lost_) return {};
  std::lock_guard lock(mutex_);
  return {MGE_DEVICE_LOST, loss_};
}

Result Device::EnablePeer(Device& peer) {
  std::lock_guard lock(mutex_);
  if (peers_.count(peer.ordinal_)) return {};
  const int code = TheDriver().enable_peer.call(peer.context_, 0u);
  if (code != kDriverOk && code != kDriverPeerEnabled) return ResultOf(code, TheDriver().enable_peer.name);
  peers_.insert(peer.ordinal_);
  return {};
}

Result Device::Link(Device& to, LinkInfo* out) {
  int can = 0, atomics = 0;
  const Driver& d = TheDriver();
  if (Result r = Call(d.can_access_peer, &can, ordinal_, to.ordinal_); !r.ok()) return Keep(std::move(r));
  if (can && d.peer_attribute.call(&atomics, TheVendor().numbers.native_atomics, ordinal_, to.ordinal_) != kDriverOk)
    atomics = 0;
  // Only direct links such as NVLink have atomic operations of their own.
  *out = {can != 0, 0, 0, !can ? "host" : atomics ? "direct link" : "PCIe"};
  return {};
}

}  // namespace mge::gpu
