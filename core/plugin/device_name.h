// SPDX-License-Identifier: Apache-2.0
// Device names as users write them, and lists of names.
//
//   cpu0  gpu1  cuda0  rocm0             class and number
//   gpu0:1                               the same device, stream 1: asynchronous runs on one named stream follow one another
//   cpux  gpux  gpu                      the lowest usable device of the class
//   xpux  xpu                            the best device present
//   cpu:default                          the CPU; each step runs in the calling thread
//   multithread4:0                       the CPU, device 0, with 4 threads
//   multithread:default:4                the same, but each step runs in the calling thread
//   cpu(0)  gpu(1)  cpu_pinned(0)        contexts
//   gpu0,cpu0    order of preference     gpu0+gpu1    the model is split over both
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace mge {

inline constexpr int kLowestUsable = -1;  // a number written as "x"
inline constexpr int kNoStream = -1;      // no stream is named

struct DeviceName {
  std::string cls;  // "cpu", "gpu", "cuda", "xpu", "multithread", "cpu_pinned"...
  int number = kLowestUsable;
  int threads = 0;           // number of threads of "multithread"; 0: as set elsewhere
  bool synchronous = false;  // steps run in the calling thread
  bool context = false;      // written as cpu(0)
  int stream = kNoStream;    // number after the colon

  std::string text = {};  // as it was written, for messages

  // Returns the canonical text, which parses to an equal name.
  std::string ToString() const;
  std::string Written() const { return text.empty() ? ToString() : text; }
  friend bool operator==(const DeviceName& a, const DeviceName& b) {
    return a.cls == b.cls && a.number == b.number && a.threads == b.threads && a.synchronous == b.synchronous &&
           a.context == b.context && a.stream == b.stream;
  }
};

// A parsed device request: alternatives in order of preference. An alternative is one device, or several to split the model
// over.
struct DeviceSpec {
  std::vector<std::vector<DeviceName>> alternatives;

  std::string ToString() const;
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

// Parses one name, or a list of names. Fails with kBadDeviceName; the error names the wrong part and a correct form. Does
// not check whether the device exists. `where` is the source of the text, for the error: "MGE_DEFAULT_DEVICE".
absl::StatusOr<DeviceName> ParseDeviceName(std::string_view text, std::string_view where = {});
absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text, std::string_view where = {});

// Returns the device classes that are known even if no loaded backend declares them. Used for "did you mean".
std::span<const std::string_view> WellKnownDeviceClasses();

// Returns the class of the devices that a name selects. The result refers to the name, or is a constant.
std::string_view ClassOf(const DeviceName& name);

}  // namespace mge
