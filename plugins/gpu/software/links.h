// SPDX-License-Identifier: Apache-2.0
// How the devices of a machine are linked, read from a matrix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::software {

// One direction of the way between two devices.
struct Link {
  bool peer = true;           // copies go directly; else over the host
  double bandwidth_gb_s = 0;  // 10^9 bytes a second; 0: as fast as memory
  double latency_us = 0;
  std::string name = "memory";
};

// A matrix in the form that configs/links/README.md describes.
class LinkMatrix {
 public:
  // `place` begins the text of an error: the file's name.
  static Result Parse(std::string_view text, std::string_view place, LinkMatrix* out);
  static Result Read(const std::string& path, LinkMatrix* out);

  int size() const { return size_; }  // devices; 0: no matrix
  const Link& at(int from, int to) const { return cells_[static_cast<size_t>(from * size_ + to)]; }
  // How a device reaches the host; null if the matrix does not say it.
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
