// SPDX-License-Identifier: Apache-2.0
// Generation of text by a language model, token by token.
//
//   MGE_ASSIGN_OR_RETURN(auto generator, Generator::Load(runtime, folder, {}));
//   MGE_RETURN_IF_ERROR(generator->Append(prompt));
//   MGE_ASSIGN_OR_RETURN(NextToken next, generator->Next());
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/generate/config.h"
#include "core/generate/decoder.h"
#include "core/generate/encoder.h"
#include "core/generate/sampling.h"

namespace mge {

struct NextToken {
  int64_t id;
  EndOfText end;
};

// A sequence of tokens and the model that continues it. Functions that read or change the sequence fail with kApiMisuse while another
// thread is in one of them. After any other error the sequence is as before the call, and can be continued.
class Generator {
 public:
  // Loads the model of a folder of ONNX Runtime GenAI. `max_length` is the most tokens of the sequence; 0: what the folder says. Fails
  // like ReadGenerationConfig(), Session::Load() and Create().
  static absl::StatusOr<std::unique_ptr<Generator>> Load(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                                         const SessionOptions& options, int64_t max_length = 0);
  // Generates with a session, and one of the encoder if the config has one. Fails with kUnsupportedFeature if the model is not a decoder as `config` describes it, and with
  // kApiMisuse if `max_length` is larger than the context.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(std::shared_ptr<Session> session, GenerationConfig config,
                                                           int64_t max_length = 0,
                                                           std::shared_ptr<Session> encoder = nullptr);

  const Session& session() const { return decoder_->session(); }
  const std::vector<int64_t>& end_tokens() const { return config_.end_tokens; }
  int64_t vocabulary() const { return config_.vocabulary; }  // 0: not known
  int64_t max_length() const { return max_length_; }         // most tokens of the sequence
  uint64_t weight_bytes() const { return weight_bytes_; }    // of the weights that each token reads
  uint64_t cache_bytes_per_token() const { return decoder_->caches().bytes_per_token(); }
  uint64_t cache_bytes() const { return decoder_->caches().bytes(); }

  // The sequence: what was appended and generated.
  const std::vector<int64_t>& tokens() const { return tokens_; }
  // The options of later calls of Next(). The seed of a folder that has none is random.
  const SamplingOptions& sampling() const { return sampling_; }
  // Fails like CheckSampling().
  absl::Status SetSampling(const SamplingOptions& options);

  // Runs the encoder on its inputs, by name. The tokens of the sequence then run again. Fails with kApiMisuse if the model has no encoder, and
  // like Encoder::Run().
  absl::Status SetSource(std::span<const NamedTensor> inputs, RunControl* control = nullptr);
  // Appends tokens. They run when the next logits are needed. Fails with kIndexOutOfRange for an id outside of the vocabulary, and with
  // kLimit if the sequence would be longer than max_length().
  absl::Status Append(std::span<const int64_t> ids);
  // Chooses the next token and appends it. Fails with kApiMisuse if the sequence is empty, with kLimit if it has max_length() tokens,
  // like SelectToken(), and with errors of the run. `control` may be null.
  absl::StatusOr<NextToken> Next(RunControl* control = nullptr);
  // Returns the logits of the next token. The caller may change them before Next() uses them. They are valid until the sequence changes.
  // Fails like Next().
  absl::StatusOr<std::span<float>> Logits(RunControl* control = nullptr);
  // Keeps the first `count` tokens of the sequence, and what the caches know of them. Fails with kApiMisuse if there are fewer.
  absl::Status Rewind(int64_t count);

 private:
  Generator(std::unique_ptr<Decoder> decoder, GenerationConfig config, int64_t max_length);
  // Runs the tokens that the decoder has not seen.
  absl::Status RunPending(RunControl* control);

  const std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Encoder> encoder_;  // may be null
  const GenerationConfig config_;
  const int64_t max_length_;
  uint64_t weight_bytes_;
  SamplingOptions sampling_;
  std::vector<int64_t> tokens_;
  std::vector<float> logits_;  // of the next token; empty: not computed
  std::atomic<bool> busy_{false};
};

}  // namespace mge
