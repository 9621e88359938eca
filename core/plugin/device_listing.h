// SPDX-License-Identifier: Apache-2.0
// The devices that a started backend lists.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mge/plugin.h"

namespace mge {

// A device as described by its backend. Texts are copied and limited in length.
struct DeviceDescription {
  uint32_t index = 0;
  std::string class_name;
  std::string name;
  std::string fingerprint;
  std::string device_class;
  std::string reason;
  uint32_t score = 0;
  uint32_t flags = 0;
  uint64_t memory_total = 0;
  std::string driver = {};
  uint64_t max_allocation = 0;     // bytes of one slab of class DEVICE; 0: no limit
  uint32_t buffer_alignment = 64;  // of every operand, in bytes: a power of two, 64 to 4096
  uint32_t compute_queues = 1;     // number of compute queues whose work can overlap; at least 1
  std::vector<std::pair<std::string, std::string>> properties = {};  // keys and values, in the backend's order
};

// The devices that a backend lists.
struct DeviceListing {
  std::vector<DeviceDescription> devices;
  std::string fault;  // the first violation of the rules, after which no device is listed; "" if there is none
};
// Lists the devices of a started backend. `classes` are the classes that its identity note declares; nullptr: any. Returns
// the backend's code, with its text in `error`.
mge_code ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes, DeviceListing* out,
                     mge_error& error);

}  // namespace mge
