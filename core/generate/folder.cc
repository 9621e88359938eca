// SPDX-License-Identifier: Apache-2.0
#include "core/generate/folder.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns whether a path stays in the folder that it is relative to.
bool IsWithin(const std::filesystem::path& path) {
  return !path.empty() && path.is_relative() && std::ranges::find(path, "..") == path.end();
}

}  // namespace

absl::StatusOr<ModelFolder> LoadModelFolder(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                            const SessionOptions& options) {
  ModelFolder out;
  MGE_ASSIGN_OR_RETURN(out.config, ReadGenerationConfig(folder, runtime->logger()));
  SessionOptions own = options;
  own.outputs_on_device = true;  // caches stay there
  const auto load = [&](const std::string& file, std::string_view key) -> absl::StatusOr<std::shared_ptr<Session>> {
    if (IsWithin(file)) return Session::Load(runtime, folder + "/" + file, own);
    return Fail(errors::kConfigFile, fmt::format("{} '{}' is outside of the folder", key, file),
                {.where = folder, .fix = "put the model's file into the folder"});
  };
  MGE_ASSIGN_OR_RETURN(out.session, load(out.config.model, "model.decoder.filename"));
  const std::string& encoder = out.config.encoder.model;
  if (encoder.empty()) return out;
  MGE_ASSIGN_OR_RETURN(out.encoder, load(encoder, "model.encoder.filename"));
  return out;
}

absl::StatusOr<int64_t> MaxLengthOf(const GenerationConfig& config, int64_t asked) {
  const int64_t context = config.context > 0 ? config.context : std::max<int64_t>(config.max_length, 0);
  if (context == 0) {
    return Fail(errors::kConfigFile, "the length of the model's context is not known",
                {.fix = "set model.context_length of genai_config.json"});
  }
  if (asked < 0 || asked > context) {
    return Fail(errors::kApiMisuse, fmt::format("the maximal length is {}", asked),
                {.what = fmt::format("the model's context has {} tokens", context), .fix = "use a smaller length, or 0"});
  }
  if (asked > 0) return asked;
  return config.max_length > 0 ? std::min(config.max_length, context) : context;
}

absl::Status CheckAppended(std::span<const int64_t> ids, int64_t vocabulary, int64_t length, int64_t max_length) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && (vocabulary == 0 || ids[i] < vocabulary)) continue;
    return Fail(
        errors::kIndexOutOfRange, fmt::format("token {} of the appended ones has the id {}", i, ids[i]),
        {.what = vocabulary ? fmt::format("the vocabulary has the ids 0 to {}", vocabulary - 1) : "ids are not negative",
         .fix = "use the tokenizer that belongs to the model"});
  }
  const int64_t room = max_length - length;
  if (static_cast<int64_t>(ids.size()) <= room) return absl::OkStatus();
  return Fail(errors::kLimit, fmt::format("{} tokens cannot be appended", ids.size()),
              {.what = fmt::format("the sequence has {} of at most {} tokens, so {} fit", length, max_length, room),
               .fix = "shorten the prompt, or rewind the sequence"});
}

SamplingOptions SamplingOf(const GenerationConfig& config) {
  SamplingOptions out = config.sampling;
  if (config.seeded) return out;
  std::random_device device;
  out.seed = uint64_t{device()} << 32 | device();
  return out;
}

EndOfText EndAfter(int64_t id, int64_t length, int64_t max_length, const GenerationConfig& config) {
  if (std::ranges::find(config.end_tokens, id) != config.end_tokens.end()) return EndOfText::kEndToken;
  return length >= max_length ? EndOfText::kLength : EndOfText::kNone;
}

}  // namespace mge
