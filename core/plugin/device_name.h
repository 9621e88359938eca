// SPDX-License-Identifier: Apache-2.0
// Names of devices as users write them, and lists of names.
//
//   cpu0  gpu1  cuda0  rocm0  gpu0:0     class, number; a stream can be named, but there is only 0: every run makes the
//                                        queues that it needs
//   cpux  gpux  gpu                      the lowest usable device of the class
//   xpux  xpu                            the best device present
//   cpu:default                          the CPU, each step in the calling thread
//   multithread4:0  multithread:default:4   device 0 of the CPU with 4 threads; the second in the calling thread
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

struct DeviceName {
  std::string cls;             // "cpu", "gpu", "cuda", "xpu", "multithread", "cpu_pinned"...
  int number = kLowestUsable;
  int threads = 0;             // of multithread; 0: as set elsewhere
  bool synchronous = false;    // steps run in the calling thread
  bool context = false;        // written as cpu(0)

  std::string text = {};       // as it was written, for messages

  // As it would be written; parses to an equal name.
  std::string ToString() const;
  std::string Written() const { return text.empty() ? ToString() : text; }
  friend bool operator==(const DeviceName& a, const DeviceName& b) {
    return a.cls == b.cls && a.number == b.number && a.threads == b.threads && a.synchronous == b.synchronous &&
           a.context == b.context;
  }
};

// What a user asked for: alternatives in order of preference, each of one device or of several to split over.
struct DeviceSpec {
  std::vector<std::vector<DeviceName>> alternatives;

  std::string ToString() const;
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

// Both fail with kBadDeviceName, which says what is wrong with which part and what would be right. Whether a device of that
// class exists is not judged here. `where` is the place of the text, for the error: "MGE_DEFAULT_DEVICE".
absl::StatusOr<DeviceName> ParseDeviceName(std::string_view text, std::string_view where = {});
absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text, std::string_view where = {});

// Classes that the grammar knows beside those of the backends at hand; for "did you mean".
std::span<const std::string_view> WellKnownDeviceClasses();

}  // namespace mge
