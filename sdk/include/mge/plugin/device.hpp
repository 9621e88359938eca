// SPDX-License-Identifier: Apache-2.0
// Devices: the list of devices, and an open device.
//
//   class Device {
//    public:
//     static mge::Result List(mge::DeviceList& list);   // adds every device, unusable ones with the reason
//     explicit Device(uint32_t index);                  // opens a listed device; the destructor closes it
//     mge::Result Init();                               // optional: the part of opening that can fail
//     mge::Result Health();                             // optional: MGE_DEVICE_LOST once the device is lost
//     mge::Result Link(Device& to, mge::LinkInfo* out); // optional: the connection to another device of this backend
//   };
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A fact about a device, which `mge devices --json` lists: "uuid", "pci", "capability", "multiprocessors", "memory_gb_s".
struct DeviceProperty {
  std::string key;  // a-z, 0-9, '_'
  std::string value;
};

// The description of a device for the host. Empty members get defaults from the backend's first class and the index.
struct DeviceInfo {
  std::string name;               // "Demo 9000, 16 GiB"
  std::string fingerprint = {};   // PCI address or UUID: equal for the same hardware in two backends
  std::string class_name = {};    // one of the backend's classes
  std::string device_class = {};  // key of tuning results: equal for devices where the same choices are best
  uint32_t score = 50;            // 1..100: the backend with the highest score is used for one fingerprint; 0: unusable
  std::string reason = {};        // if score is 0: why the device cannot be used, and what to do
  uint32_t flags = 0;             // MGE_DEVICE_...
  uint64_t memory_total = 0;      // bytes; 0: unknown
  std::string driver = {};        // version of the software below the backend; measured times are valid for one version
  uint64_t max_allocation = 0;    // largest slab of device memory in bytes; 0: limited only by the memory itself
  uint32_t buffer_alignment = 0;  // of every operand and slab of device memory: a power of two up to 4096; 0: 64
  uint32_t compute_queues = 1;    // number of compute queues whose work can overlap
  std::vector<DeviceProperty> properties = {};
};

// Returns a device of the host as the backend's own class.
template <typename D>
D& DeviceOf(mge_device* device) {
  return internal::As<D>(device);
}

// A list that List() fills. The first device gets index 0.
class DeviceList {
 public:
  DeviceList(const mge_device_sink* sink, std::string_view default_class) : sink_(sink), default_class_(default_class) {}
  void Add(const DeviceInfo& info) {
    std::string_view cls = info.class_name.empty() ? default_class_ : std::string_view(info.class_name);
    std::string fingerprint = info.fingerprint;
    if (fingerprint.empty()) fingerprint = std::string(cls) + "-" + std::to_string(next_);
    mge_device_info raw = {};
    raw.struct_size = sizeof(raw);
    raw.index = next_++;
    raw.class_name = Text(cls);
    raw.name = Text(info.name);
    raw.fingerprint = Text(fingerprint);
    raw.device_class = info.device_class.empty() ? Text(cls) : Text(info.device_class);
    raw.reason = Text(info.reason);
    raw.score = info.score;
    raw.flags = info.flags;
    raw.memory_total = info.memory_total;
    raw.driver = Text(info.driver);
    raw.max_allocation = info.max_allocation;
    raw.buffer_alignment = info.buffer_alignment;
    raw.compute_queues = info.compute_queues;
    std::vector<mge_property> properties;
    std::vector<const mge_property*> pointers;
    for (const DeviceProperty& p : info.properties) {
      properties.push_back({sizeof(mge_property), 0, Text(p.key), Text(p.value)});
    }
    for (const mge_property& p : properties) pointers.push_back(&p);
    raw.properties = pointers.data();
    raw.property_count = pointers.size();
    sink_->device(sink_->self, &raw);
  }

 private:
  const mge_device_sink* sink_;
  std::string_view default_class_;
  uint32_t next_ = 0;
};

// The connection from one device to another.
struct LinkInfo {
  bool peer = false;          // CopyPeer copies directly; otherwise the host copies through pinned memory
  double bandwidth_gb_s = 0;  // 10^9 bytes per second, one direction; 0: unknown
  double latency_us = 0;
  std::string_view name = {};  // "PCIe"; valid as long as the library is loaded
};

namespace internal {

// The table of B::Device.
template <typename B>
struct DeviceTable {
  using D = typename B::Device;
  static std::string_view FirstClass() {
    std::string_view classes = B::kClasses.empty() ? B::kName : B::kClasses;
    return classes.substr(0, classes.find(','));
  }
  static Result List(const mge_device_sink* sink) {
    DeviceList list(sink, FirstClass());
    return D::List(list);
  }
  static mge_code Enumerate(const mge_device_sink* sink, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return List(sink); });
  }
  // Opens a device. Fails if the index is not in the list.
  static mge_code Open(uint32_t index, mge_device** out, mge_error* error) noexcept {
    uint32_t count = 0;
    mge_device_sink counter = {sizeof(counter), 0, &count,
                               [](void* self, const mge_device_info*) { ++*static_cast<uint32_t*>(self); }};
    mge_code code = WithoutExceptions(error, [&]() -> Result {
      if (Result r = List(&counter); !r.ok()) return r;
      if (index < count) return {};
      return {MGE_NOT_FOUND, "there is no device " + std::string(FirstClass()) + std::to_string(index)};
    });
    return code == MGE_OK ? Make<D>(out, error, index) : code;
  }
  static mge_code Status(mge_device* device, mge_error* error) noexcept {
    return WithoutExceptions(error, [&] { return As<D>(device).Health(); });
  }
  static mge_code Link(mge_device* from, mge_device* to, mge_link* out, mge_error* error) noexcept {
    return FillOut(error, out, [&](mge_link* link) -> Result {
      LinkInfo info;
      if (Result r = As<D>(from).Link(As<D>(to), &info); !r.ok()) return r;
      link->flags = info.peer ? MGE_LINK_PEER : 0;
      link->bandwidth_gb_s = info.bandwidth_gb_s;
      link->latency_us = info.latency_us;
      link->name = Text(info.name);
      return {};
    });
  }
  static constexpr mge_device_api Api() {
    return Table<mge_device_api>([](auto& t) {
      t.enumerate = Enumerate;
      t.open = Open;
      t.close = Unmake<D, mge_device>;
      if constexpr (requires { &D::Health; }) t.status = Status;
      if constexpr (requires { &D::Link; }) t.link = Link;
    });
  }
};

}  // namespace internal
}  // namespace MGE_HIDDEN
