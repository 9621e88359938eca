// SPDX-License-Identifier: Apache-2.0
// Backends whose strategy returned nonsense. The host's order is used in its place, with one warning per session.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace mge {

// A set of names of backends. Thread-safe.
class FaultyStrategies {
 public:
  // Returns true if the backend was not added before.
  bool Add(const std::string& backend) {
    std::lock_guard lock(mutex_);
    return backends_.insert(backend).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> backends_;
};

}  // namespace mge
