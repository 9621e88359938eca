// SPDX-License-Identifier: Apache-2.0
// The file genai_config.json of a folder of ONNX Runtime GenAI, for models that are one decoder, perhaps with an encoder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/generate/sampling.h"

namespace mge {

// The reason to end a text after a token.
enum class EndOfText { kNone, kEndToken, kLength };

// The names of one kind of cache. "%d" stands for the number of the layer.
struct CacheNames {
  std::string past;     // of the input
  std::string present;  // of the output that is the next run's input
};

// An output of the encoder that the decoder reads. "%d" stands for the number of the layer.
struct EncoderLink {
  std::string output;  // of the encoder
  std::string input;   // of the decoder
};

// The encoder of a model that turns one sequence, the source, into another.
struct EncoderConfig {
  std::string model = "";  // the file in the folder; "": the model is a decoder alone
  std::string input_ids = "input_ids";
  std::string attention_mask = "attention_mask";           // input of the encoder
  std::string mask_of_decoder = "encoder_attention_mask";  // input of the decoder for the same mask
  std::vector<EncoderLink> links = {};
};

struct GenerationConfig {
  std::string model = "model.onnx";      // the file in the folder
  int64_t vocabulary = 0;                // number of token ids; 0: not stated
  int64_t context = 0;                   // most tokens of a sequence that the model can see; 0: not stated
  int64_t max_length = 0;                // most tokens of a sequence, the prompt included; 0: the context
  std::vector<int64_t> end_tokens = {};  // ids that end a text
  int64_t kv_heads = 0, head_size = 0;   // of a key-value cache; 0: the model's inputs state them
  bool shared_cache = false;             // the model writes new keys into free rows of the cache that it is given
  int64_t window_slack = 0;              // rows beyond the window of a cache that holds only the latest tokens
  int64_t chunk = 512;                   // most tokens of a prompt in one run
  SamplingOptions sampling = {};         // as `search` asks for
  bool seeded = false;                   // `search` has a seed
  std::string input_ids = "input_ids";
  std::string attention_mask = "attention_mask";
  std::string position_ids = "position_ids";
  std::string past_length = "past_sequence_length";  // inputs that some models have in place of a mask
  std::string total_length = "total_sequence_length";
  std::string logits = "logits";
  std::vector<CacheNames> caches = {};
  EncoderConfig encoder = {};
};

// Parses the file's text. Logs one warning that lists unknown keys, with the nearest known name of each, and what the file asks for
// but generation does not do. Fails with kConfigFile if the text is not such a file, and with kUnsupportedFeature for a pipeline,
// images, speech and recurrent decoders.
absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view text, const Logger& logger);

// Reads the file of a folder. Fails like ParseGenerationConfig(), and with kFileAccess.
absl::StatusOr<GenerationConfig> ReadGenerationConfig(const std::string& folder, const Logger& logger);

}  // namespace mge
