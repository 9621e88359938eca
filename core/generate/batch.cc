// SPDX-License-Identifier: Apache-2.0
#include "core/generate/batch.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/folder.h"
#include "core/generate/turn.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status NoSequence(int64_t number) {
  return Fail(errors::kApiMisuse, fmt::format("there is no sequence {}", number),
              {.what = "it was removed, or never added", .fix = "use the number that the addition returned"});
}

std::string NameOf(int64_t number) { return fmt::format("sequence {}", number); }

}  // namespace

Batch::Batch(std::shared_ptr<Session> session, GenerationConfig config, std::unique_ptr<Decoder> decoder, int64_t max_length,
             uint64_t cache_bytes)
    : session_(std::move(session)),
      config_(std::move(config)),
      decoder_(std::move(decoder)),
      max_length_(max_length),
      cache_bytes_(cache_bytes),
      bytes_per_token_(decoder_->caches().bytes_per_token()),
      sampling_(SamplingOf(config_)),
      reason_(decoder_->ReasonAgainstRows()),
      joined_(decoder_->caches(), decoder_->AlignsLeft()) {}

absl::StatusOr<std::unique_ptr<Batch>> Batch::Load(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                                   const SessionOptions& session, const BatchOptions& options) {
  MGE_ASSIGN_OR_RETURN(ModelFolder model, LoadModelFolder(std::move(runtime), folder, session));
  if (model.encoder) {
    return Fail(errors::kUnsupportedFeature, "a model with an encoder cannot continue several sequences",
                {.what = "each has a source of its own", .where = folder, .fix = "create a generator for each sequence"});
  }
  absl::StatusOr<std::unique_ptr<Batch>> out = Create(std::move(model.session), std::move(model.config), options);
  if (!out.ok()) return AddWhere(out.status(), folder);
  return out;
}

absl::StatusOr<std::unique_ptr<Batch>> Batch::Create(std::shared_ptr<Session> session, GenerationConfig config,
                                                     const BatchOptions& options) {
  MGE_ASSIGN_OR_RETURN(const int64_t max_length, MaxLengthOf(config, options.max_length));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder, Decoder::Create(session, config, max_length));
  return std::unique_ptr<Batch>(
      new Batch(std::move(session), std::move(config), std::move(decoder), max_length, options.cache_bytes));
}

// Joined caches have as many rows for each sequence as the longest one needs.
absl::Status Batch::CheckMemory(int64_t tokens) const {
  if (cache_bytes_ == 0 || bytes_per_token_ == 0) return absl::OkStatus();
  int64_t longest = 0, count = 1;
  for (const auto& [number, sequence] : sequences_) {
    if (sequence.ended) continue;
    longest = std::max(longest, sequence.most);
    ++count;
  }
  const auto all = static_cast<int64_t>(std::min<uint64_t>(cache_bytes_ / bytes_per_token_, INT64_MAX)), each = all / count;
  if (std::max(longest, tokens) <= each) return absl::OkStatus();
  return Fail(errors::kOverBudget, fmt::format("a sequence of {} tokens cannot be added", tokens),
              {.what = fmt::format(
                   "the caches may have {} bytes, for {} tokens of {} bytes; beside {} sequences of up to {} tokens, "
                   "{} tokens fit",
                   cache_bytes_, all, bytes_per_token_, count - 1, longest, longest > each ? 0 : each),
               .fix = "limit its new tokens, wait until another sequence ends, or allow more memory"});
}

absl::StatusOr<int64_t> Batch::Add(std::span<const int64_t> prompt, const SamplingOptions& sampling, int64_t max_tokens) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(CheckSampling(sampling));
  if (prompt.empty()) {
    return Fail(errors::kApiMisuse, "the sequence has no tokens", {.fix = "add it with a prompt; it may be one token"});
  }
  if (max_tokens < 0) return Fail(errors::kApiMisuse, fmt::format("the most new tokens are {}", max_tokens));
  MGE_RETURN_IF_ERROR(CheckAppended(prompt, config_.vocabulary, 0, max_length_ - 1));
  const auto length = static_cast<int64_t>(prompt.size());
  Sequence sequence = {.tokens = {prompt.begin(), prompt.end()}, .sampling = sampling, .most = max_length_};
  if (max_tokens > 0 && max_tokens < max_length_ - length) sequence.most = length + max_tokens;
  MGE_RETURN_IF_ERROR(CheckMemory(sequence.most));
  sequences_.emplace(next_, std::move(sequence));
  return next_++;
}

absl::Status Batch::RunAlone(Sequence& sequence, RunControl* control) {
  if (!sequence.own) {
    MGE_ASSIGN_OR_RETURN(sequence.own, Decoder::Create(session_, config_, max_length_));
  }
  return sequence.own->RunRest(sequence.tokens, config_.chunk, &sequence.logits, control);
}

// Makes these sequences the rows of the joined caches.
absl::Status Batch::Join(const std::vector<int64_t>& sequences) {
  if (sequences == rows_) return absl::OkStatus();
  std::vector<JoinedCaches::Source> sources;
  for (const int64_t number : sequences) {
    const Sequence& sequence = sequences_.at(number);
    const auto present = std::ranges::find(rows_, number);
    JoinedCaches::Source source = {.own = sequence.own ? &sequence.own->caches() : nullptr};
    if (sequence.own) source.length = sequence.own->length();
    if (!sequence.own) source.present = static_cast<int>(present - rows_.begin());
    sources.push_back(source);
  }
  MGE_RETURN_IF_ERROR(joined_.Join(sources));
  for (const int64_t number : sequences) sequences_.at(number).own = nullptr;
  rows_ = sequences;
  return absl::OkStatus();
}

// Continues all sequences whose prompts have run.
absl::Status Batch::RunTogether(RunControl* control) {
  std::vector<int64_t> numbers, ids;
  for (const auto& [number, sequence] : sequences_) {
    if (sequence.ended || !sequence.logits.empty()) continue;
    numbers.push_back(number);
    ids.push_back(sequence.tokens.back());
  }
  if (numbers.empty()) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(Join(numbers));
  std::vector<std::vector<float>> logits;
  MGE_RETURN_IF_ERROR(decoder_->RunRows(ids, joined_, &logits, control));
  for (size_t i = 0; i < numbers.size(); ++i) sequences_.at(numbers[i]).logits = std::move(logits[i]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BatchToken>> Batch::Step(RunControl* control) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  const bool together = reason_.empty();
  for (auto& [number, sequence] : sequences_) {
    // With at most one token left, it runs with the others.
    const bool joined = std::ranges::find(rows_, number) != rows_.end();
    const bool ready =
        joined || (sequence.own && sequence.own->length() + 1 >= static_cast<int64_t>(sequence.tokens.size()));
    if (sequence.ended || !sequence.logits.empty() || (together && ready)) continue;
    MGE_RETURN_IF_ERROR(AddWhere(RunAlone(sequence, control), NameOf(number)));
  }
  if (together) MGE_RETURN_IF_ERROR(RunTogether(control));
  std::vector<BatchToken> out;
  for (auto& [number, sequence] : sequences_) {
    if (sequence.ended) continue;
    std::vector<float> logits = sequence.logits;  // the choice changes them
    const absl::StatusOr<int64_t> id = SelectToken(logits, sequence.tokens, sequence.sampling);
    if (!id.ok()) return AddWhere(id.status(), NameOf(number));
    out.push_back({.sequence = number, .id = *id, .end = EndOfText::kNone});
  }
  for (BatchToken& token : out) {
    Sequence& sequence = sequences_.at(token.sequence);
    sequence.tokens.push_back(token.id);
    sequence.logits.clear();
    token.end = EndAfter(token.id, static_cast<int64_t>(sequence.tokens.size()), sequence.most, config_);
    sequence.ended = token.end != EndOfText::kNone;
    if (sequence.ended) sequence.own = nullptr;
  }
  return out;
}

absl::StatusOr<std::span<const int64_t>> Batch::Tokens(int64_t sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return NoSequence(sequence);
  return std::span<const int64_t>(found->second.tokens);
}

absl::Status Batch::Remove(int64_t sequence) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  if (sequences_.erase(sequence) == 0) return NoSequence(sequence);
  return absl::OkStatus();
}

}  // namespace mge
