// SPDX-License-Identifier: Apache-2.0
// The caches of a decoder: tensors that one run computes and the next run reads. A cache of keys and values has a row for each
// token. A state, such as that of a convolution, or a cache that holds only the latest tokens, has a fixed size.
//
// A shared cache has room for more rows than there are tokens, and a run writes the new rows into it. Otherwise a run computes a
// new tensor with one row per token, which becomes the next run's input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/session.h"
#include "core/generate/config.h"

namespace mge {

// Used by one thread at a time.
class Caches {
 public:
  // Finds the inputs and outputs of the session that are caches. Fails with kUnsupportedFeature if there are none, if one has no
  // output, or if its sizes are not known. `most` is the most tokens of a sequence.
  static absl::StatusOr<Caches> Find(Session& session, const GenerationConfig& config, int64_t most);

  size_t size() const { return caches_.size(); }
  int input(size_t i) const { return caches_[i].input; }
  int output(size_t i) const { return caches_[i].output; }
  bool shared() const { return shared_; }
  uint64_t bytes_per_token() const;  // that one more token needs; states need none
  uint64_t bytes() const;            // of the memory now

  // Makes room for `tokens` tokens, of which `length` are there. Fails with kOutOfMemory or kOverBudget, which say how many fit; the
  // caches are then unchanged.
  absl::Status Reserve(int64_t length, int64_t tokens);
  // Returns the input of cache `i`, and what is to be its output: the same memory for a shared cache, else an undefined tensor.
  HostValue InputOf(size_t i) const;
  HostValue OutputOf(size_t i) const;
  // Checks output `i` of a run after which there are `tokens` tokens. Fails with kUnsupportedFeature if its type or shape is not that
  // of the cache, or if the run did not write it into the shared cache that it was given.
  absl::Status Check(size_t i, const HostValue& output, int64_t tokens) const;
  // Makes a run's output the value of cache `i`.
  void Keep(size_t i, HostValue output) { caches_[i].value = std::move(output.tensor); }
  // Removes the rows from `tokens` on, where `length` are there. Returns the tokens that remain: `tokens`, or 0 if a cache cannot be
  // cut. Fails with kOutOfMemory or kOverBudget; the caches are then unchanged.
  absl::StatusOr<int64_t> Truncate(int64_t length, int64_t tokens);

 private:
  friend class JoinedCaches;
  struct Cache {
    std::string name;  // of the input
    int input, output;
    DType dtype;
    Shape dims;          // without a token
    int rows_axis = -1;  // -1: a state
    Tensor value = {};
    Shape DimsOf(int64_t rows) const;
  };
  absl::StatusOr<Tensor> Create(const Cache& cache, int64_t rows) const;
  // Returns a tensor of `rows` rows whose first ones are the first `kept` rows of the cache.
  absl::StatusOr<Tensor> Copy(const Cache& cache, int64_t kept, int64_t rows) const;
  absl::Status Resize(int64_t length, int64_t rows);

  std::vector<Cache> caches_;
  HostAllocator* allocator_ = nullptr;
  bool shared_ = false;
  int64_t most_ = 0;
  int64_t capacity_ = 0;  // rows of shared caches
};

}  // namespace mge
