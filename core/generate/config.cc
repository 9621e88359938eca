// SPDX-License-Identifier: Apache-2.0
#include "core/generate/config.h"

#include <cmath>
#include <limits>
#include <span>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/base/nearest.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

using Json = nlohmann::json;
using Names = std::span<const std::string_view>;

constexpr char kFile[] = "genai_config.json";
constexpr int64_t kMaxBytes = 16 << 20;
constexpr int kMaxDepth = 32;

// The known keys of each object. Those that generation does not use are known too: session options and providers of another
// runtime, facts that the model's file states, search options of beams.
constexpr std::string_view kTop[] = {"model", "search", "engine", "speculative"};
constexpr std::string_view kModel[] = {"type",
                                       "bos_token_id",
                                       "eos_token_id",
                                       "pad_token_id",
                                       "sep_token_id",
                                       "decoder_start_token_id",
                                       "vocab_size",
                                       "context_length",
                                       "decoder",
                                       "encoder",
                                       "embedding",
                                       "vision",
                                       "speech",
                                       "draft",
                                       "mtp",
                                       "tokenizer_dir",
                                       "bot_token_id",
                                       "eot_token_id",
                                       "bor_token_id",
                                       "eor_token_id",
                                       "image_token_id",
                                       "video_token_id",
                                       "vision_start_token_id"};
constexpr std::string_view kDecoder[] = {"session_options",
                                         "run_options",
                                         "filename",
                                         "hidden_size",
                                         "num_attention_heads",
                                         "num_key_value_heads",
                                         "num_hidden_layers",
                                         "head_size",
                                         "inputs",
                                         "outputs",
                                         "layer_types",
                                         "conv_cache_size",
                                         "sliding_window",
                                         "pipeline",
                                         "shared_initializers",
                                         "linear_key_head_dim",
                                         "linear_num_key_heads",
                                         "linear_num_value_heads",
                                         "linear_value_head_dim",
                                         "linear_conv_kernel_dim"};
constexpr std::string_view kInputs[] = {"input_ids",
                                        "attention_mask",
                                        "position_ids",
                                        "past_key_names",
                                        "past_value_names",
                                        "past_names",
                                        "past_conv_names",
                                        "past_recurrent_names",
                                        "inputs_embeds",
                                        "past_sequence_length",
                                        "total_sequence_length",
                                        "current_sequence_length",
                                        "cross_past_key_names",
                                        "cross_past_value_names",
                                        "past_key_values_length",
                                        "cache_indirection",
                                        "encoder_hidden_states",
                                        "encoder_attention_mask",
                                        "rnn_prev_states",
                                        "cumulative_sequence_lengths",
                                        "block_table",
                                        "past_sequence_lengths"};
constexpr std::string_view kOutputs[] = {"logits",
                                         "present_key_names",
                                         "present_value_names",
                                         "present_names",
                                         "present_conv_names",
                                         "present_recurrent_names",
                                         "output_cross_qk_names",
                                         "rnn_states",
                                         "hidden_states"};
constexpr std::string_view kEncoder[] = {
    "session_options",   "run_options",         "filename",  "hidden_size", "num_attention_heads",
    "num_hidden_layers", "num_key_value_heads", "head_size", "inputs",      "outputs"};
constexpr std::string_view kEncoderInputs[] = {"input_ids",    "attention_mask", "audio_features",
                                               "position_ids", "inputs_embeds",  "embeddings"};
constexpr std::string_view kEncoderOutputs[] = {"encoder_hidden_states", "hidden_states", "encoder_outputs",
                                                "cross_present_key_names", "cross_present_value_names"};
constexpr std::string_view kSearch[] = {"do_sample",
                                        "min_length",
                                        "max_length",
                                        "batch_size",
                                        "num_beams",
                                        "top_k",
                                        "num_return_sequences",
                                        "repetition_penalty",
                                        "top_p",
                                        "temperature",
                                        "min_p",
                                        "early_stopping",
                                        "no_repeat_ngram_size",
                                        "length_penalty",
                                        "diversity_penalty",
                                        "random_seed",
                                        "chunk_size",
                                        "past_present_share_buffer"};

absl::Status Wrong(std::string title, std::string what = {}) {
  return Fail(errors::kConfigFile, std::move(title), {.what = std::move(what), .where = kFile});
}

absl::Status Unsupported(std::string_view kind, std::string_view key) {
  return Fail(errors::kUnsupportedFeature, fmt::format("the folder holds {}, which cannot be generated with", kind),
              {.what = fmt::format("only decoders, also with an encoder, are supported; {} is set", key),
               .where = kFile,
               .fix = "use `mge run` or a session for the single ONNX files"});
}

// Reads the members of one object. The first error stays.
class Reader {
 public:
  Reader(const Json& object, std::string path, absl::Status& status)
      : object_(object), path_(std::move(path)), status_(status) {}

  bool Has(std::string_view key) const { return object_.contains(key) && !object_[std::string(key)].is_null(); }
  std::string PathOf(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  void Read(std::string_view key, std::string& to) {
    if (const Json* value = Find(key, &Json::is_string, "a text")) to = value->get<std::string>();
  }
  void Read(std::string_view key, bool& to) {
    if (const Json* value = Find(key, &Json::is_boolean, "true or false")) to = value->get<bool>();
  }
  void Read(std::string_view key, double& to) {
    if (const Json* value = Find(key, &Json::is_number, "a number")) to = value->get<double>();
  }
  // Reads a count, which is not negative.
  void Read(std::string_view key, int64_t& to) {
    const Json* value = Find(key, &Json::is_number_integer, "a whole number");
    if (!value) return;
    if (*value < 0 || *value > std::numeric_limits<int32_t>::max()) {
      status_.Update(Wrong(fmt::format("{} is {}", PathOf(key), value->dump()), "it must be between 0 and 2147483647"));
    } else {
      to = value->get<int64_t>();
    }
  }
  // Reads one id or a list of ids.
  void ReadIds(std::string_view key, std::vector<int64_t>& to) {
    if (!Has(key)) return;
    const Json& value = object_[std::string(key)];
    for (const Json& id : value.is_array() ? value : Json::array({value})) {
      if (id.is_number_integer()) {
        to.push_back(id.get<int64_t>());
      } else {
        status_.Update(Wrong(fmt::format("{} is not a token id or a list of them", PathOf(key))));
      }
    }
  }
  Reader Object(std::string_view key) {
    static const Json kEmpty = Json::object();
    const Json* value = Find(key, &Json::is_object, "an object");
    return Reader(value ? *value : kEmpty, PathOf(key), status_);
  }
  // Appends the keys that are not among the known ones, with the nearest one.
  void AddUnknown(Names known, std::vector<std::string>& out) const {
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      const std::string_view near = Nearest(key, known);
      out.push_back(near.empty() ? PathOf(key) : fmt::format("{} (did you mean {}?)", PathOf(key), near));
    }
  }

 private:
  const Json* Find(std::string_view key, bool (Json::*is)() const noexcept, std::string_view wanted) {
    if (!Has(key)) return nullptr;
    const Json& value = object_[std::string(key)];
    if ((value.*is)()) return &value;
    status_.Update(Wrong(fmt::format("{} is not {}", PathOf(key), wanted)));
    return nullptr;
  }

  const Json& object_;
  const std::string path_;
  absl::Status& status_;
};

// Fails for models that are not one decoder.
absl::Status CheckKind(const Reader& model, const Reader& decoder, std::string_view type) {
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"vision", "a model of images"},
      {"speech", "a model of speech"},
      {"embedding", "a model whose embedding is a file of its own"}};
  for (const auto& [key, kind] : parts) {
    if (model.Has(key)) return Unsupported(kind, model.PathOf(key));
  }
  if (decoder.Has("pipeline")) return Unsupported("a pipeline of several models", decoder.PathOf("pipeline"));
  const std::pair<std::string_view, std::string_view> types[] = {{"marian-ssru", "a recurrent decoder"},
                                                                 {"decoder-pipeline", "a pipeline of several models"}};
  for (const auto& [name, kind] : types) {
    if (type == name) return Unsupported(kind, fmt::format("model.type \"{}\"", name));
  }
  return absl::OkStatus();
}

// Adds the names of all kinds of caches: the file's, or those that the format defines as defaults.
void ReadCaches(Reader& inputs, Reader& outputs, std::vector<CacheNames>& caches) {
  struct Kind {
    std::string_view past_key, present_key, past, present;
  };
  constexpr Kind kinds[] = {
      {"past_key_names", "present_key_names", "past_key_values.%d.key", "present.%d.key"},
      {"past_value_names", "present_value_names", "past_key_values.%d.value", "present.%d.value"},
      {"past_names", "present_names", "past_%d", "present_%d"},
      {"past_conv_names", "present_conv_names", "past_conv.%d", "present_conv.%d"},
      {"past_recurrent_names", "present_recurrent_names", "past_recurrent.%d", "present_recurrent.%d"}};
  for (const Kind& kind : kinds) {
    CacheNames names = {std::string(kind.past), std::string(kind.present)};
    inputs.Read(kind.past_key, names.past);
    outputs.Read(kind.present_key, names.present);
    caches.push_back(std::move(names));
  }
}

// Reads the encoder and how its outputs become inputs of the decoder.
void ReadEncoder(Reader& encoder, Reader& decoder_inputs, EncoderConfig& out, std::vector<std::string>& unknown) {
  out.model = "encoder.onnx";
  encoder.Read("filename", out.model);
  Reader inputs = encoder.Object("inputs"), outputs = encoder.Object("outputs");
  inputs.Read("input_ids", out.input_ids);
  inputs.Read("attention_mask", out.attention_mask);
  decoder_inputs.Read("encoder_attention_mask", out.mask_of_decoder);
  EncoderLink states = {"encoder_hidden_states", "encoder_hidden_states"};
  for (const std::string_view key : {"hidden_states", "encoder_outputs", "encoder_hidden_states"})
    outputs.Read(key, states.output);
  decoder_inputs.Read("encoder_hidden_states", states.input);
  EncoderLink keys = {"present_key_cross_%d", "past_key_cross_%d"},
              values = {"present_value_cross_%d", "past_value_cross_%d"};
  outputs.Read("cross_present_key_names", keys.output);
  outputs.Read("cross_present_value_names", values.output);
  decoder_inputs.Read("cross_past_key_names", keys.input);
  decoder_inputs.Read("cross_past_value_names", values.input);
  out.links = {std::move(states), std::move(keys), std::move(values)};
  encoder.AddUnknown(kEncoder, unknown);
  inputs.AddUnknown(kEncoderInputs, unknown);
  outputs.AddUnknown(kEncoderOutputs, unknown);
}

void ReadSearch(Reader& search, GenerationConfig& config, std::vector<std::string>& ignored) {
  bool sample = false;
  SamplingOptions& s = config.sampling;
  s.temperature = 1;
  s.top_k = 50;
  double top_p = 0, seed = -1;
  search.Read("do_sample", sample);
  search.Read("temperature", s.temperature);
  search.Read("top_k", s.top_k);
  search.Read("top_p", top_p);
  search.Read("min_p", s.min_p);
  search.Read("repetition_penalty", s.repetition_penalty);
  search.Read("random_seed", seed);
  search.Read("max_length", config.max_length);
  search.Read("past_present_share_buffer", config.shared_cache);
  search.Read("chunk_size", config.chunk);
  if (!sample) s.temperature = 0;
  if (top_p > 0) s.top_p = top_p;
  config.seeded = seed >= 0;
  if (config.seeded) s.seed = static_cast<uint64_t>(std::min(seed, 0x1p63));
  if (config.chunk == 0) config.chunk = GenerationConfig().chunk;
  const std::pair<std::string_view, int64_t> fixed[] = {
      {"num_beams", 1}, {"batch_size", 1}, {"num_return_sequences", 1}, {"min_length", 0}, {"no_repeat_ngram_size", 0}};
  for (const auto& [key, value] : fixed) {
    int64_t given = value;
    search.Read(key, given);
    if (given != value) ignored.push_back(fmt::format("{} = {} (the value {} is used)", search.PathOf(key), given, value));
  }
}

}  // namespace

absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view text, const Logger& logger) {
  int deepest = 0;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth < kMaxDepth;
  };
  const Json json = Json::parse(text.begin(), text.end(), limit, false);
  if (deepest >= kMaxDepth) return Wrong("the file is nested too deeply", fmt::format("the limit is {} levels", kMaxDepth));
  if (json.is_discarded() || !json.is_object()) return Wrong("the file is not a JSON object");

  absl::Status status;
  GenerationConfig config;
  Reader top(json, "", status), model = top.Object("model"), decoder = model.Object("decoder"),
                                search = top.Object("search"), inputs = decoder.Object("inputs"),
                                outputs = decoder.Object("outputs");
  MGE_RETURN_IF_ERROR(status);
  if (!top.Has("model") || !model.Has("decoder")) {
    return Wrong("the file describes no decoder", "model.decoder is missing");
  }
  std::string type;
  model.Read("type", type);
  MGE_RETURN_IF_ERROR(CheckKind(model, decoder, type));
  model.Read("vocab_size", config.vocabulary);
  model.Read("context_length", config.context);
  model.ReadIds("eos_token_id", config.end_tokens);
  decoder.Read("filename", config.model);
  decoder.Read("num_key_value_heads", config.kv_heads);
  decoder.Read("head_size", config.head_size);
  decoder.Object("sliding_window").Read("cache_slack", config.window_slack);
  inputs.Read("input_ids", config.input_ids);
  inputs.Read("attention_mask", config.attention_mask);
  inputs.Read("position_ids", config.position_ids);
  inputs.Read("past_sequence_length", config.past_length);
  inputs.Read("total_sequence_length", config.total_length);
  outputs.Read("logits", config.logits);
  ReadCaches(inputs, outputs, config.caches);
  std::vector<std::string> unknown, ignored;
  if (model.Has("encoder")) {
    Reader encoder = model.Object("encoder");
    ReadEncoder(encoder, inputs, config.encoder, unknown);
  }
  ReadSearch(search, config, ignored);
  MGE_RETURN_IF_ERROR(status);
  MGE_RETURN_IF_ERROR(AddWhere(CheckSampling(config.sampling), fmt::format("search of {}", kFile)));

  top.AddUnknown(kTop, unknown);
  model.AddUnknown(kModel, unknown);
  decoder.AddUnknown(kDecoder, unknown);
  inputs.AddUnknown(kInputs, unknown);
  outputs.AddUnknown(kOutputs, unknown);
  search.AddUnknown(kSearch, unknown);
  if (!unknown.empty()) logger.Warning("{} has unknown keys, which are ignored: {}", kFile, fmt::join(unknown, ", "));
  if (!ignored.empty()) logger.Warning("{} asks for what is not supported: {}", kFile, fmt::join(ignored, ", "));
  return config;
}

absl::StatusOr<GenerationConfig> ReadGenerationConfig(const std::string& folder, const Logger& logger) {
  const std::string path = fmt::format("{}/{}", folder, kFile);
  absl::StatusOr<InputBytes> file = ReadInput(path, kMaxBytes);
  if (!file.ok()) {
    return Fail(errors::kFileAccess, fmt::format("'{}' is not a folder of a language model", folder),
                {.what = ErrorTitle(file.status()) + ": " + PartsOf(file.status()).what,
                 .where = path,
                 .fix = "name a folder of ONNX Runtime GenAI: it holds genai_config.json beside the model"});
  }
  absl::StatusOr<GenerationConfig> config = ParseGenerationConfig(AsText(file->bytes), logger);
  if (!config.ok()) return AddWhere(config.status(), folder);
  return config;
}

}  // namespace mge
