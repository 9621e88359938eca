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

// A square matrix: row `from`, column `to`. A line is a row, its cells are separated by ',' or spaces; '#' begins a comment.
// A cell is
//
//   0            nothing: the device itself, or a way over the host of which no more is said
//   1, 2, 3      PCIe over the host, one NVLink, two NVLinks: the classes of the well-known DGX-1V matrix
//   BANDWIDTH/LATENCY       a peer link of so many GB/s and µs: 25/1.9
//   BANDWIDTH/LATENCY/host  over the host, which both devices reach so: 12/10/host
//
// Over the host a copy is two, each between the host and one device. So the cells over the host say how a device reaches the
// host, all that it takes part in the same; on the diagonal such a cell says only that.
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
