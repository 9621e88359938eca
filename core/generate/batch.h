// SPDX-License-Identifier: Apache-2.0
// Several sequences of one model, whose next tokens one run computes. Sequences join and leave at any time.
//
//   MGE_ASSIGN_OR_RETURN(auto batch, Batch::Load(runtime, folder, {}, {}));
//   MGE_ASSIGN_OR_RETURN(int64_t sequence, batch->Add(prompt, batch->sampling(), 100));
//   MGE_ASSIGN_OR_RETURN(std::vector<BatchToken> tokens, batch->Step());
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/generate/config.h"
#include "core/generate/decoder.h"
#include "core/generate/joined_caches.h"
#include "core/generate/sampling.h"

namespace mge {

struct BatchOptions {
  int64_t max_length = 0;  // most tokens of each sequence; 0: what the folder says
  // Most memory of the caches of all sequences; 0: no limit but that of the device. While sequences join or leave, caches are copied and need
  // twice as much.
  uint64_t cache_bytes = 0;
};

struct BatchToken {
  int64_t sequence;
  int64_t id;
  EndOfText end;
};

// Functions fail with kApiMisuse while another thread is in one of them. After any error the sequences are as before the call.
class Batch {
 public:
  // Fails like Generator::Load().
  static absl::StatusOr<std::unique_ptr<Batch>> Load(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                                     const SessionOptions& session, const BatchOptions& options);
  static absl::StatusOr<std::unique_ptr<Batch>> Create(std::shared_ptr<Session> session, GenerationConfig config,
                                                       const BatchOptions& options);

  int64_t max_length() const { return max_length_; }
  const SamplingOptions& sampling() const { return sampling_; }  // what the folder says
  // Why each sequence has a run of its own, or "" if one run continues all of them.
  const std::string& reason_for_single_runs() const { return reason_; }
  uint64_t cache_bytes_per_token() const { return bytes_per_token_; }

  // Adds a sequence that begins with `prompt`, and returns its number. It ends after `max_tokens` new tokens; 0: at max_length(). Fails like
  // Generator::Append(), like CheckSampling(), and with kOverBudget, which says how many tokens fit, if the caches of all sequences could
  // need more than BatchOptions::cache_bytes.
  absl::StatusOr<int64_t> Add(std::span<const int64_t> prompt, const SamplingOptions& sampling, int64_t max_tokens);
  // Computes the next token of each sequence that has not ended. Returns no token if all have. Fails like Generator::Next(); an error that
  // belongs to one sequence names it.
  absl::StatusOr<std::vector<BatchToken>> Step(RunControl* control = nullptr);
  // Returns the prompt and the new tokens. Fails with kApiMisuse if there is no such sequence.
  absl::StatusOr<std::span<const int64_t>> Tokens(int64_t sequence) const;
  // Ends and forgets a sequence.
  absl::Status Remove(int64_t sequence);

 private:
  struct Sequence {
    std::vector<int64_t> tokens = {};
    SamplingOptions sampling = {};
    int64_t most = 0;  // tokens at its end
    bool ended = false;
    std::vector<float> logits = {};  // of the next token; empty: not computed
    std::unique_ptr<Decoder> own =
        nullptr;  // of the prompt, and of all tokens without common runs; null: not begun, or joined
  };
  using Sequences = std::map<int64_t, Sequence>;

  Batch(std::shared_ptr<Session> session, GenerationConfig config, std::unique_ptr<Decoder> decoder, int64_t max_length,
        uint64_t cache_bytes);
  absl::Status CheckMemory(int64_t tokens) const;
  absl::Status RunAlone(Sequence& sequence, RunControl* control);
  absl::Status RunTogether(RunControl* control);
  absl::Status Join(const std::vector<int64_t>& sequences);

  const std::shared_ptr<Session> session_;
  const GenerationConfig config_;
  const std::unique_ptr<Decoder> decoder_;  // runs joined sequences
  const int64_t max_length_;
  const uint64_t cache_bytes_, bytes_per_token_;
  const SamplingOptions sampling_;
  const std::string reason_;
  Sequences sequences_;
  int64_t next_ = 0;  // number of the next sequence
  JoinedCaches joined_;
  std::vector<int64_t> rows_;  // the sequences of joined_, in order
  std::atomic<bool> busy_{false};
};

}  // namespace mge
