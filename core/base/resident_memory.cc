// SPDX-License-Identifier: Apache-2.0
#include "core/base/resident_memory.h"

#include <fstream>
#include <string>

namespace mge {

ResidentMemory ReadResidentMemory() {
  ResidentMemory out;
  std::ifstream in("/proc/self/smaps_rollup");
  std::string line;
  std::getline(in, line);  // the range of addresses
  for (std::string key; in >> key;) {
    uint64_t kib = 0;
    in >> kib;
    std::getline(in, line);
    if (key == "Rss:") out.total = kib * 1024;
    if (key == "Anonymous:") out.anonymous = kib * 1024;
  }
  out.mapped = out.total - out.anonymous;
  return out;
}

}  // namespace mge
