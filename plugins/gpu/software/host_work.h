// SPDX-License-Identifier: Apache-2.0
// HostWork: work of a stream that is not a kernel, such as a collective.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"

namespace mge::software {

// The memory of one call, as the stream's thread may access it.
struct HostWorkCall {
  void* destination = nullptr;
  const void* source = nullptr;
  uint64_t bytes = 0;
};

// Work that a stream's thread runs on memory of its device. Streams keep it alive until it has run.
class HostWork {
 public:
  virtual ~HostWork() = default;
  // Runs one call. Must end by itself, because the stream's destructor waits for it.
  virtual Result Run(const HostWorkCall& call) = 0;
};

}  // namespace mge::software
