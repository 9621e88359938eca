// SPDX-License-Identifier: Apache-2.0
// A decoder of a language model: runs tokens behind those that it has seen, and computes the logits of the next one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/generate/caches.h"
#include "core/generate/config.h"
#include "core/generate/joined_caches.h"

namespace mge {

// Used by one thread at a time.
class Decoder {
 public:
  // Fails with kUnsupportedFeature if the model has inputs that generation does not know, and like Caches::Find().
  static absl::StatusOr<std::unique_ptr<Decoder>> Create(std::shared_ptr<Session> session, const GenerationConfig& config,
                                                         int64_t most);

  const Session& session() const { return *session_; }
  const Caches& caches() const { return caches_; }
  // The number of tokens that it has seen.
  int64_t length() const { return length_; }

  // The inputs that an encoder computes, by name; empty: the model has none.
  std::vector<std::string> source_inputs() const;
  // Sets these inputs, in their order, and forgets all tokens.
  absl::Status SetSource(std::vector<Tensor> values);

  // Runs tokens. With `logits`, replaces it by the logits of the token behind the last one. If this fails, the decoder has seen the
  // tokens of before. `control` may be null.
  absl::Status Run(std::span<const int64_t> ids, std::vector<float>* logits, RunControl* control);
  // Runs the tokens of a sequence that the decoder has not seen, in chunks of at most `chunk`, and sets the logits of the token behind the
  // last one. A token at least must be left.
  absl::Status RunRest(std::span<const int64_t> tokens, int64_t chunk, std::vector<float>* logits, RunControl* control);
  // Forgets tokens, so that at most `length` remain; a model with a state forgets all of them. Fails with kOutOfMemory or kOverBudget.
  absl::Status Truncate(int64_t length);

  // Returns why the model cannot run tokens of several sequences at once, or "" if it can.
  std::string ReasonAgainstRows() const;
  // Returns whether the tokens of a short sequence come first in joined caches. Otherwise free rows come first.
  bool AlignsLeft() const { return aligns_left_; }
  // Runs one token of each of the sequences whose caches are joined, and sets the logits of each. If this fails, the caches are as before.
  absl::Status RunRows(std::span<const int64_t> ids, JoinedCaches& joined, std::vector<std::vector<float>>* logits,
                       RunControl* control) const;

 private:
  enum class Content { kIds, kMask, kPositions, kPastLength, kTotalLength, kCache, kSource };
  struct Input {
    Content content;
    DType dtype = DType::kUndefined;
    Shape dims = {};   // of kPastLength and kTotalLength
    size_t cache = 0;  // index, for kCache; of the source's values, for kSource
  };
  // The outputs that a run computes: the caches, and perhaps the logits, in the model's order.
  struct OutputSet {
    std::vector<int> places;
    std::vector<size_t> caches;  // by place: the index of the cache; kLogits: the logits
  };
  static constexpr size_t kLogits = static_cast<size_t>(-1);

  Decoder(std::shared_ptr<Session> session, Caches caches) : session_(std::move(session)), caches_(std::move(caches)) {}
  absl::Status BindInputs(const GenerationConfig& config);
  OutputSet OutputsWith(std::vector<std::pair<int, size_t>> outputs) const;
  absl::Status Explained(absl::Status status, int64_t total) const;
  absl::StatusOr<HostValue> InputFor(const Input& input, std::span<const int64_t> ids) const;
  absl::StatusOr<HostValue> RowsFor(const Input& input, std::span<const int64_t> ids, const JoinedCaches& joined) const;

  const std::shared_ptr<Session> session_;
  Caches caches_;
  std::vector<Input> inputs_;  // in the model's order
  OutputSet all_, without_logits_;
  std::vector<Tensor> source_;  // undefined until SetSource()
  bool aligns_left_ = false;
  int64_t length_ = 0;
};

}  // namespace mge
