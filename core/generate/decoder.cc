// SPDX-License-Identifier: Apache-2.0
#include "core/generate/decoder.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/layer_names.h"
#include "core/generate/logits.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

// A run of more tokens is split: the logits of all but the last one are not needed, and the last one is a run like those that follow.
constexpr size_t kTogether = 16;

// Returns whether the decoder's input of this name comes from the encoder.
bool ReadsSource(const std::string& name, const EncoderConfig& encoder) {
  if (encoder.model.empty()) return false;
  const auto is = [&](const EncoderLink& link) { return name == link.input || !LayerOf(name, link.input).empty(); };
  return name == encoder.mask_of_decoder || std::ranges::any_of(encoder.links, is);
}

// Returns a tensor of integers: `first`, `first` + `step`, and so on.
absl::StatusOr<Tensor> Count(DType dtype, Shape dims, int64_t first, int64_t step) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, std::move(dims)));
  const auto fill = [&]<typename T>(std::span<T> data) {
    for (T& x : data) x = static_cast<T>(first), first += step;
  };
  dtype == DType::kI64 ? fill(out.MutableData<int64_t>()) : fill(out.MutableData<int32_t>());
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Decoder>> Decoder::Create(std::shared_ptr<Session> session, const GenerationConfig& config,
                                                         int64_t most) {
  MGE_ASSIGN_OR_RETURN(Caches caches, Caches::Find(*session, config, most));
  MGE_ASSIGN_OR_RETURN(const int logits, session->OutputIndex(config.logits));
  std::unique_ptr<Decoder> out(new Decoder(std::move(session), std::move(caches)));
  MGE_RETURN_IF_ERROR(out->BindInputs(config));
  // This operator writes each sample's new keys behind its earlier ones, whose number it derives from the mask.
  const Graph& graph = out->session_->graph();
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    out->aligns_left_ |= !graph.node(n).dead && graph.node(n).op == "GroupQueryAttention";
  }
  std::vector<std::pair<int, size_t>> outputs;
  for (size_t i = 0; i < out->caches_.size(); ++i) outputs.emplace_back(out->caches_.output(i), i);
  out->without_logits_ = out->OutputsWith(outputs);
  outputs.emplace_back(logits, kLogits);
  out->all_ = out->OutputsWith(std::move(outputs));
  return out;
}

Decoder::OutputSet Decoder::OutputsWith(std::vector<std::pair<int, size_t>> outputs) const {
  std::ranges::sort(outputs);
  OutputSet out;
  for (const auto& [place, cache] : outputs) {
    out.places.push_back(place);
    out.caches.push_back(cache);
  }
  return out;
}

absl::Status Decoder::BindInputs(const GenerationConfig& config) {
  const std::pair<const std::string*, Content> named[] = {{&config.input_ids, Content::kIds},
                                                          {&config.attention_mask, Content::kMask},
                                                          {&config.position_ids, Content::kPositions},
                                                          {&config.past_length, Content::kPastLength},
                                                          {&config.total_length, Content::kTotalLength}};
  const Graph& graph = session_->graph();
  MGE_RETURN_IF_ERROR(session_->InputIndex(config.input_ids).status());
  for (int i = 0; i < session_->input_count(); ++i) {
    const Value& value = graph.value(graph.inputs()[static_cast<size_t>(i)]);
    size_t cache = 0;
    while (cache < caches_.size() && caches_.input(cache) != i) ++cache;
    if (cache < caches_.size()) {
      inputs_.push_back({.content = Content::kCache, .cache = cache});
      continue;
    }
    if (ReadsSource(value.name, config.encoder)) {
      inputs_.push_back({.content = Content::kSource, .cache = source_.size()});
      source_.emplace_back();
      continue;
    }
    const auto known = std::ranges::find_if(named, [&](const auto& n) { return *n.first == value.name; });
    if (known == std::end(named)) {
      return Fail(errors::kUnsupportedFeature,
                  fmt::format("the model has an input '{}' that generation does not know", value.name),
                  {.fix = "if it is a mask, positions or a cache, name it in model.decoder.inputs of genai_config.json"});
    }
    if (!kIndex.Contains(value.type.dtype)) {
      return Fail(errors::kUnsupportedFeature,
                  fmt::format("the input '{}' has type {}", value.name, DTypeName(value.type.dtype)),
                  {.what = "int32 and int64 are supported"});
    }
    const size_t rank = value.type.has_rank ? value.type.dims.size() : 0;
    if (known->second == Content::kPositions && rank != 2) {
      return Fail(errors::kUnsupportedFeature, fmt::format("the input '{}' has {} dimensions", value.name, rank),
                  {.what = "positions [batch, tokens] are supported"});
    }
    inputs_.push_back({.content = known->second, .dtype = value.type.dtype, .dims = Shape(rank, 1)});
  }
  return absl::OkStatus();
}

// Describes an error of a run in terms of the sequence. The decoder makes the inputs itself, so if the model refuses one, the
// description of the model is wrong.
absl::Status Decoder::Explained(absl::Status status, int64_t total) const {
  if (ErrorId(status) == errors::kBadInput.id) {
    return Fail(errors::kUnsupportedFeature, "the model does not accept the caches or the other inputs of generation",
                {.what = ErrorTitle(status) + ": " + PartsOf(status).what,
                 .fix = caches_.shared() ? "set search.past_present_share_buffer of genai_config.json to false"
                                         : "compare the inputs that `mge inspect` shows with genai_config.json"});
  }
  const bool memory = ErrorId(status) == errors::kOutOfMemory.id || ErrorId(status) == errors::kOverBudget.id;
  return memory ? AddWhere(std::move(status), fmt::format("a sequence of {} tokens", total)) : status;
}

absl::StatusOr<HostValue> Decoder::InputFor(const Input& input, std::span<const int64_t> ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (input.content == Content::kCache) return caches_.InputOf(input.cache);
  if (input.content == Content::kSource) {
    HostValue out;
    out.tensor = source_[input.cache];
    return out;
  }
  absl::StatusOr<Tensor> tensor;
  switch (input.content) {
    case Content::kCache:
    case Content::kSource: break;
    case Content::kMask: tensor = Count(input.dtype, {1, length_ + count}, 1, 0); break;
    case Content::kPositions: tensor = Count(input.dtype, {1, count}, length_, 1); break;
    case Content::kPastLength: tensor = Count(input.dtype, input.dims, length_, 0); break;
    case Content::kTotalLength: tensor = Count(input.dtype, input.dims, length_ + count, 0); break;
    case Content::kIds:
      tensor = Tensor::Create(input.dtype, {1, count});
      if (!tensor.ok()) break;
      if (input.dtype == DType::kI64) {
        std::ranges::copy(ids, tensor->MutableData<int64_t>().begin());
      } else {
        std::ranges::transform(ids, tensor->MutableData<int32_t>().begin(),
                               [](int64_t id) { return static_cast<int32_t>(id); });
      }
      break;
  }
  MGE_RETURN_IF_ERROR(tensor.status());
  HostValue out;
  out.tensor = *std::move(tensor);
  return out;
}

absl::Status Decoder::Run(std::span<const int64_t> ids, std::vector<float>* logits, RunControl* control) {
  if (!source_.empty() && !source_.front().defined()) {
    return Fail(errors::kApiMisuse, "the source that the model's encoder reads is not set",
                {.fix = "set the inputs of the encoder before the first token is generated"});
  }
  const int64_t total = length_ + static_cast<int64_t>(ids.size());
  MGE_RETURN_IF_ERROR(caches_.Reserve(length_, total));
  const OutputSet& wanted = logits ? all_ : without_logits_;
  std::vector<HostValue> inputs, outputs;
  for (const Input& input : inputs_) {
    MGE_ASSIGN_OR_RETURN(HostValue value, InputFor(input, ids));
    inputs.push_back(std::move(value));
  }
  for (const size_t cache : wanted.caches) outputs.push_back(cache == kLogits ? HostValue() : caches_.OutputOf(cache));
  RunState state(control);
  MGE_RETURN_IF_ERROR(
      Explained(session_->Submit({.inputs = inputs, .outputs = outputs, .places = wanted.places}, state).status(), total));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_cache = wanted.caches[i] != kLogits;
    MGE_RETURN_IF_ERROR(is_cache ? caches_.Check(wanted.caches[i], outputs[i], total)
                                 : ReadLastLogits(outputs[i].tensor, *logits));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (wanted.caches[i] != kLogits) caches_.Keep(wanted.caches[i], std::move(outputs[i]));
  }
  length_ = total;
  return absl::OkStatus();
}

absl::Status Decoder::RunRest(std::span<const int64_t> tokens, int64_t chunk, std::vector<float>* logits,
                              RunControl* control) {
  for (;;) {
    const std::span<const int64_t> pending = tokens.subspan(static_cast<size_t>(length_));
    const bool last = pending.size() <= std::min(kTogether, static_cast<size_t>(chunk));
    const size_t count = last ? pending.size() : std::min(pending.size() - 1, static_cast<size_t>(chunk));
    MGE_RETURN_IF_ERROR(Run(pending.first(count), last ? logits : nullptr, control));
    if (last) return absl::OkStatus();
  }
}

std::vector<std::string> Decoder::source_inputs() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].content == Content::kSource) out.push_back(session_->graph().value(session_->graph().inputs()[i]).name);
  }
  return out;
}

absl::Status Decoder::SetSource(std::vector<Tensor> values) {
  MGE_RETURN_IF_ERROR(Truncate(0));
  source_ = std::move(values);
  return absl::OkStatus();
}

absl::Status Decoder::Truncate(int64_t length) {
  if (length >= length_) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(length_, caches_.Truncate(length_, length));
  return absl::OkStatus();
}

}  // namespace mge
