// SPDX-License-Identifier: Apache-2.0
// The model of a folder of ONNX Runtime GenAI, and the limits of its sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/engine/session.h"
#include "core/generate/config.h"

namespace mge {

struct ModelFolder {
  GenerationConfig config;
  std::shared_ptr<Session> session;  // of the decoder; outputs stay on the device
  std::shared_ptr<Session> encoder;  // null: the model has none
};

// Fails like ReadGenerationConfig() and Session::Load().
absl::StatusOr<ModelFolder> LoadModelFolder(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                            const SessionOptions& options);

// Returns the most tokens of a sequence: `asked`, or what the folder says for 0. Fails with kApiMisuse if the context is shorter, and with
// kConfigFile if it is not known.
absl::StatusOr<int64_t> MaxLengthOf(const GenerationConfig& config, int64_t asked);

// Checks tokens that are to be appended to a sequence of `length` ones. Fails with kIndexOutOfRange for an id outside of the vocabulary, and
// with kLimit, which says how many fit, if the sequence would have more than `max_length`.
absl::Status CheckAppended(std::span<const int64_t> ids, int64_t vocabulary, int64_t length, int64_t max_length);

// Returns the sampling of the file. Its seed is random if the file has none.
SamplingOptions SamplingOf(const GenerationConfig& config);

// Returns the reason to end a sequence of `length` tokens after the token `id`.
EndOfText EndAfter(int64_t id, int64_t length, int64_t max_length, const GenerationConfig& config);

}  // namespace mge
