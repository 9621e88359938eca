// SPDX-License-Identifier: Apache-2.0
// The links between the devices of a machine, read from a matrix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::software {

// One direction of the link between two devices.
struct Link {
  bool peer = true;           // copies go directly; otherwise through the host
  double bandwidth_gb_s = 0;  // 10^9 bytes per second; 0: the speed of memory
  double latency_us = 0;
  std::string name = "memory";
};

// A matrix in the format of configs/links/README.md.
class LinkMatrix {
 public:
  // Parses a matrix. `place` is the prefix of error texts: the file's name.
  static Result Parse(std::string_view text, std::string_view place, LinkMatrix* out);
  static Result Read(const std::string& path, LinkMatrix* out);

  int size() const { return size_; }  // devices; 0: no matrix
  const Link& at(int from, int to) const { return cells_[static_cast<size_t>(from * size_ + to)]; }
  // Returns a device's link to the host, or null if the matrix does not contain it.
  const Link* to_host(int device) const {
    auto index = static_cast<size_t>(device);
    return index < hosts_.size() && hosts_[index].bandwidth_gb_s > 0 ? &hosts_[index] : nullptr;
  }

 private:
  int size_ = 0;
  std::vector<Link> cells_;
  std::vector<Link> hosts_;  // by device
};

}  // namespace mge::software
