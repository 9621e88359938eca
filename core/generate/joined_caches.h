// SPDX-License-Identifier: Apache-2.0
// The caches of several sequences of different length in common tensors, so that one run continues all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/generate/caches.h"

namespace mge {

// Used by one thread at a time.
class JoinedCaches {
 public:
  // A sequence of the next Join(): its index in the present caches, or its own caches with the number of their tokens.
  struct Source {
    int present = -1;
    const Caches* own = nullptr;
    int64_t length = 0;  // of `own`
  };

  // `like` are the caches of one sequence. `aligns_left`: the tokens of a short sequence come first, and free rows after them.
  JoinedCaches(const Caches& like, bool aligns_left);

  // Replaces the caches by those of these sequences. Fails with kOutOfMemory or kOverBudget; the caches are then unchanged.
  absl::Status Join(std::span<const Source> sources);
  // Makes room for one more token of each sequence. Fails in the same way.
  absl::Status Reserve();

  size_t sequences() const { return lengths_.size(); }
  std::span<const int64_t> lengths() const { return lengths_; }  // tokens of each sequence
  int64_t longest() const;
  int64_t rows() const { return rows_; }  // of the tensors: at least longest()

  HostValue InputOf(size_t i) const;
  HostValue OutputOf(size_t i) const;  // as in Caches
  // Checks output `i` of a run of one token of each sequence, as Caches::Check().
  absl::Status Check(size_t i, const HostValue& output) const;
  // Makes the outputs of that run the caches, which then have one more token of each sequence. `outputs` are in the order of the caches.
  void Keep(std::vector<Tensor> outputs);

 private:
  using Cache = Caches::Cache;
  Shape DimsOf(const Cache& cache, int64_t sequences, int64_t rows) const;
  bool InPlace(const Cache& cache) const { return shared_ && cache.rows_axis >= 0; }
  // The rows of the tensors after a run of one token.
  int64_t NextRows() const;
  absl::Status Rebuild(std::span<const Source> sources, int64_t room);

  std::vector<Cache> caches_;
  HostAllocator* allocator_;
  bool shared_, aligns_left_;
  std::vector<int64_t> lengths_;
  int64_t rows_ = 0;
};

}  // namespace mge
