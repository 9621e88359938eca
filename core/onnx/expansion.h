// SPDX-License-Identifier: Apache-2.0
// Counts the nodes of inlined functions before any function is inlined. A file of 2 KB may stand for billions of nodes: each
// of thirty functions that calls the next one twice doubles their number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/onnx/graph_reader.h"

namespace mge::onnx {

class ExpansionCounter {
 public:
  // Both must outlive this object.
  ExpansionCounter(const WireSource& source, const Functions& functions) : source_(source), functions_(functions) {}

  // Fails with kLimit if the calls among `nodes` and in their bodies stand for more nodes than `limit`. The error names the
  // function that adds most. Ignores malformed messages and functions that call themselves, which the reader refuses.
  absl::Status Check(std::span<const Bytes> nodes, int64_t limit);

 private:
  // The contents of a list of nodes and their bodies.
  struct Content {
    int64_t nodes = 0;
    std::vector<std::pair<const Function*, int64_t>> calls;  // with the number of calls of each
  };
  Content ContentOf(std::span<const Bytes> nodes) const;
  // Sets sizes_ of all functions that `root` needs.
  void Count(const Function& root);

  const WireSource& source_;
  const Functions& functions_;
  std::unordered_map<const Function*, double> sizes_;  // number of nodes of one call
};

}  // namespace mge::onnx
