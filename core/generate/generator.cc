// SPDX-License-Identifier: Apache-2.0
#include "core/generate/generator.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// A run of more tokens is split: the logits of all but the last one are not needed, and the last one is a run like those that follow.
constexpr size_t kTogether = 16;

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

// Returns whether a path stays in the folder that it is relative to.
bool IsWithin(const std::filesystem::path& path) {
  return !path.empty() && path.is_relative() && std::ranges::find(path, "..") == path.end();
}

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

// The use of the sequence by one thread.
class Generator::Turn {
 public:
  explicit Turn(Generator& generator) : busy_(generator.busy_), mine_(!busy_.exchange(true, std::memory_order_acquire)) {}
  ~Turn() {
    if (mine_) busy_.store(false, std::memory_order_release);
  }
  absl::Status status() const {
    if (mine_) return absl::OkStatus();
    return Fail(errors::kApiMisuse, "two threads use one generator at the same time",
                {.what = "its calls share a cache", .fix = "create a generator for each sequence"});
  }

 private:
  std::atomic<bool>& busy_;
  const bool mine_;
};

Generator::Generator(std::unique_ptr<Decoder> decoder, GenerationConfig config, int64_t max_length)
    : decoder_(std::move(decoder)),
      config_(std::move(config)),
      max_length_(max_length),
      weight_bytes_(WeightBytes(decoder_->session().graph())),
      sampling_(config_.sampling) {
  if (!config_.seeded) sampling_.seed = RandomSeed();
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Load(std::shared_ptr<Runtime> runtime, const std::string& folder,
                                                           const SessionOptions& options, int64_t max_length) {
  MGE_ASSIGN_OR_RETURN(GenerationConfig config, ReadGenerationConfig(folder, runtime->logger()));
  if (!IsWithin(config.model)) {
    return Fail(errors::kConfigFile, fmt::format("model.decoder.filename '{}' is outside of the folder", config.model),
                {.where = folder, .fix = "put the model's file into the folder"});
  }
  SessionOptions own = options;
  own.outputs_on_device = true;  // caches stay there
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                       Session::Load(std::move(runtime), folder + "/" + config.model, own));
  absl::StatusOr<std::unique_ptr<Generator>> out = Create(std::move(session), std::move(config), max_length);
  if (!out.ok()) return AddWhere(out.status(), folder);
  return out;
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(std::shared_ptr<Session> session, GenerationConfig config,
                                                             int64_t max_length) {
  const int64_t context = config.context > 0 ? config.context : std::max<int64_t>(config.max_length, 0);
  if (context == 0) {
    return Fail(errors::kConfigFile, "the length of the model's context is not known",
                {.fix = "set model.context_length of genai_config.json"});
  }
  if (max_length < 0 || max_length > context) {
    return Fail(errors::kApiMisuse, fmt::format("the maximal length is {}", max_length),
                {.what = fmt::format("the model's context has {} tokens", context), .fix = "use a smaller length, or 0"});
  }
  if (max_length == 0) max_length = config.max_length > 0 ? std::min(config.max_length, context) : context;
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder, Decoder::Create(std::move(session), config, max_length));
  return std::unique_ptr<Generator>(new Generator(std::move(decoder), std::move(config), max_length));
}

absl::Status Generator::SetSampling(const SamplingOptions& options) {
  const Turn turn(*this);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(CheckSampling(options));
  sampling_ = options;
  return absl::OkStatus();
}

absl::Status Generator::Append(std::span<const int64_t> ids) {
  const Turn turn(*this);
  MGE_RETURN_IF_ERROR(turn.status());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && (vocabulary() == 0 || ids[i] < vocabulary())) continue;
    return Fail(
        errors::kIndexOutOfRange, fmt::format("token {} of the appended ones has the id {}", i, ids[i]),
        {.what = vocabulary() ? fmt::format("the vocabulary has the ids 0 to {}", vocabulary() - 1) : "ids are not negative",
         .fix = "use the tokenizer that belongs to the model"});
  }
  const int64_t room = max_length_ - static_cast<int64_t>(tokens_.size());
  if (static_cast<int64_t>(ids.size()) > room) {
    return Fail(
        errors::kLimit, fmt::format("{} tokens cannot be appended", ids.size()),
        {.what = fmt::format("the sequence has {} of at most {} tokens, so {} fit", tokens_.size(), max_length_, room),
         .fix = "shorten the prompt, or rewind the sequence"});
  }
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
  for (;;) {
    const std::span<const int64_t> pending = all.subspan(static_cast<size_t>(decoder_->length()));
    const bool last = pending.size() <= std::min(kTogether, static_cast<size_t>(config_.chunk));
    const size_t count = last ? pending.size() : std::min(pending.size() - 1, static_cast<size_t>(config_.chunk));
    MGE_RETURN_IF_ERROR(decoder_->Run(pending.first(count), last ? &logits_ : nullptr, control));
    if (last) return absl::OkStatus();
  }
}

absl::StatusOr<std::span<float>> Generator::Logits(RunControl* control) {
  const Turn turn(*this);
  MGE_RETURN_IF_ERROR(turn.status());
  MGE_RETURN_IF_ERROR(RunPending(control));
  return std::span<float>(logits_);
}

absl::StatusOr<NextToken> Generator::Next(RunControl* control) {
  const Turn turn(*this);
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
  NextToken out = {.id = *id, .end = EndOfText::kNone};
  if (static_cast<int64_t>(tokens_.size()) >= max_length_) out.end = EndOfText::kLength;
  if (std::ranges::find(end_tokens(), *id) != end_tokens().end()) out.end = EndOfText::kEndToken;
  return out;
}

absl::Status Generator::Rewind(int64_t count) {
  const Turn turn(*this);
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
