// SPDX-License-Identifier: Apache-2.0
#include "core/generate/generator.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/folder.h"
#include "core/generate/turn.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The operators that read single rows of their tables.
bool ReadsRows(const Node& node) {
  constexpr std::string_view kOps[] = {"Gather", "GatherBlockQuantized", "EmbedLayerNormalization"};
  return std::ranges::find(kOps, node.op) != std::end(kOps);
}

// Returns the bytes of the constants that a run reads as a whole.
uint64_t WeightBytes(const Graph& graph) {
  const std::vector<std::vector<NodeId>> consumers = graph.Consumers();
  uint64_t sum = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kConstant || !value.constant.defined()) continue;
    const auto whole = [&](NodeId n) { return !ReadsRows(graph.node(n)); };
    if (std::ranges::any_of(consumers[static_cast<size_t>(v)], whole)) sum += static_cast<uint64_t>(value.constant.bytes());
  }
  return sum;
}

}  // namespace

Generator::Generator(std::unique_ptr<Decoder> decoder, GenerationConfig config, int64_t max_length)
    : decoder_(std::move(decoder)),
      config_(std::move(config)),
      max_length_(max_length),
      weight_bytes_(WeightBytes(decoder_->session().graph())),
      sampling_(SamplingOf(config_)) {}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Load(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                                           const SessionOptions& options, int64_t max_length) {
  MGE_ASSIGN_OR_RETURN(ModelFolder model, LoadModelFolder(std::move(runtime), folder, options));
  absl::StatusOr<std::unique_ptr<Generator>> out =
      Create(std::move(model.session), std::move(model.config), max_length, std::move(model.encoder));
  if (!out.ok()) return AddWhere(out.status(), folder);
  return out;
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(std::shared_ptr<Session> session, GenerationConfig config,
                                                             int64_t max_length, std::shared_ptr<Session> encoder) {
  MGE_ASSIGN_OR_RETURN(max_length, MaxLengthOf(config, max_length));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder, Decoder::Create(std::move(session), config, max_length));
  std::unique_ptr<Encoder> source;
  if (encoder) {
    MGE_ASSIGN_OR_RETURN(source, Encoder::Create(std::move(encoder), config.encoder, decoder->source_inputs()));
  }
  std::unique_ptr<Generator> out(new Generator(std::move(decoder), std::move(config), max_length));
  out->encoder_ = std::move(source);
  return out;
}

absl::Status Generator::SetSampling(const SamplingOptions& options) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(CheckSampling(options));
  sampling_ = options;
  return absl::OkStatus();
}

absl::Status Generator::SetSource(std::span<const NamedTensor> inputs, RunControl* control) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  if (!encoder_) {
    return Fail(errors::kApiMisuse, "the model has no encoder", {.fix = "append the text to the sequence"});
  }
  MGE_ASSIGN_OR_RETURN(std::vector<Tensor> values, encoder_->Run(inputs, control));
  MGE_RETURN_IF_ERROR(decoder_->SetSource(std::move(values)));
  logits_.clear();
  return absl::OkStatus();
}

absl::Status Generator::Append(std::span<const int64_t> ids) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(CheckAppended(ids, vocabulary(), static_cast<int64_t>(tokens_.size()), max_length_));
  if (ids.empty()) return absl::OkStatus();
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  logits_.clear();
  return absl::OkStatus();
}

absl::Status Generator::RunPending(RunControl* control) {
  if (!logits_.empty()) return absl::OkStatus();
  if (tokens_.empty()) {
    return Fail(errors::kApiMisuse, "the sequence has no tokens", {.fix = "append a prompt first; it may be one token"});
  }
  const std::span<const int64_t> all = tokens_;
  MGE_RETURN_IF_ERROR(decoder_->Truncate(static_cast<int64_t>(all.size()) - 1));
  return decoder_->RunRest(all, config_.chunk, &logits_, control);
}

absl::StatusOr<std::span<float>> Generator::Logits(RunControl* control) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(RunPending(control));
  return std::span<float>(logits_);
}

absl::StatusOr<NextToken> Generator::Next(RunControl* control) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  if (static_cast<int64_t>(tokens_.size()) >= max_length_) {
    return Fail(errors::kLimit, "the sequence has its maximal length",
                {.what = fmt::format("it has {} tokens, and 0 more fit", tokens_.size()),
                 .fix = "rewind the sequence, or load the folder with a larger maximal length"});
  }
  MGE_RETURN_IF_ERROR(RunPending(control));
  absl::StatusOr<int64_t> id = SelectToken(logits_, tokens_, sampling_);
  if (!id.ok()) {
    logits_.clear();  // the next call computes them again
    return AddWhere(id.status(), fmt::format("token {} of the sequence", tokens_.size()));
  }
  tokens_.push_back(*id);
  logits_.clear();
  return NextToken{.id = *id, .end = EndAfter(*id, static_cast<int64_t>(tokens_.size()), max_length_, config_)};
}

absl::Status Generator::Rewind(int64_t count) {
  const Turn turn(busy_);
  MGE_RETURN_IF_ERROR(turn.status());
  if (count < 0 || count > static_cast<int64_t>(tokens_.size())) {
    return Fail(errors::kApiMisuse, fmt::format("a sequence of {} tokens cannot be rewound to {}", tokens_.size(), count));
  }
  if (count == static_cast<int64_t>(tokens_.size())) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(decoder_->Truncate(count));
  tokens_.resize(static_cast<size_t>(count));
  logits_.clear();
  return absl::OkStatus();
}

}  // namespace mge
