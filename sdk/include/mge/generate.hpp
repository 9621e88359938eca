// SPDX-License-Identifier: Apache-2.0
// Language models in C++17, over generate.h: continue a sequence of tokens. See generate.h for what each call does.
//
//   auto generator = mge::Generator::Load(runtime, "folder");
//   if (!generator.ok()) return Report(generator.status());
//   if (mge::Status s = generator->Append(prompt); !s.ok()) return Report(s);
//   for (;;) {
//     const auto next = generator->Next();
//     if (!next.ok()) return Report(next.status());
//     if (next->end) break;
//   }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mge/generate.h"
#include "mge/mge.hpp"
#include "mge/namespace.hpp"
#include "mge/span.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

// Options of a generator; see mge_generator_options.
struct GeneratorOptions {
  std::string device = {};
  int threads = 0;
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  int64_t max_length = 0;
};

// How the next token is chosen; see mge_sampling.
struct Sampling {
  double repetition_penalty = 1;
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  uint64_t seed = 0;
};

namespace internal {
inline mge_sampling RawSampling(const Sampling& sampling) {
  mge_sampling raw;
  mge_sampling_init(&raw);
  raw.repetition_penalty = sampling.repetition_penalty;
  raw.temperature = sampling.temperature;
  raw.top_k = sampling.top_k;
  raw.top_p = sampling.top_p;
  raw.min_p = sampling.min_p;
  raw.seed = sampling.seed;
  return raw;
}
}  // namespace internal

struct NextToken {
  int64_t id;
  int end;  // MGE_END_...
};

// A sequence of tokens, and the model that continues it. One thread at a time may use it.
class Generator : public internal::Owner<mge_generator, mge_generator_release> {
 public:
  using Owner::Owner;
  static Result<Generator> Load(const Runtime& runtime, const std::string& folder, const GeneratorOptions& options = {}) {
    const internal::Texts settings(options.settings);
    mge_generator_options raw;
    mge_generator_options_init(&raw);
    raw.device = internal::TextOrNull(options.device);
    raw.threads = options.threads;
    raw.settings = settings.data();
    raw.setting_count = settings.size();
    raw.max_length = options.max_length;
    return internal::Take<Generator>(
        [&](mge_generator** g) { return mge_generator_load(runtime.get(), folder.c_str(), &raw, g); });
  }
  // The pointers of the facts are valid as long as the generator.
  Result<mge_generator_facts> Describe() const {
    mge_generator_facts out;
    mge_generator_facts_init(&out);
    if (Status s(mge_generator_describe(get(), &out)); !s.ok()) return s;
    return out;
  }
  Result<Sampling> sampling() const {
    mge_sampling raw;
    mge_sampling_init(&raw);
    if (Status s(mge_generator_sampling(get(), &raw)); !s.ok()) return s;
    return Sampling{raw.repetition_penalty, raw.temperature, raw.top_k, raw.top_p, raw.min_p, raw.seed};
  }
  Status SetSampling(const Sampling& sampling) const {
    const mge_sampling raw = internal::RawSampling(sampling);
    return Status(mge_generator_set_sampling(get(), &raw));
  }
  // Runs the encoder of a model that has one. `names` are those of the inputs.
  Status SetSource(const std::vector<std::string>& names, Span<const Tensor* const> tensors,
                   const RunControl* control = nullptr) const {
    const internal::Texts texts(names);
    std::vector<mge_tensor*> raw;
    for (const Tensor* t : tensors) raw.push_back(t->get());
    raw.resize(names.size(), nullptr);
    return Status(
        mge_generator_set_source(get(), texts.data(), raw.data(), names.size(), control ? control->get() : nullptr));
  }
  Status Append(Span<const int64_t> ids) const { return Status(mge_generator_append(get(), ids.data(), ids.size())); }
  // `control`: cancels the run or limits its time.
  Result<NextToken> Next(const RunControl* control = nullptr) const {
    NextToken out = {};
    int32_t end = 0;
    if (Status s(mge_generator_next(get(), control ? control->get() : nullptr, &out.id, &end)); !s.ok()) return s;
    out.end = end;
    return out;
  }
  // The logits of the next token, which may be changed. Valid until the sequence changes.
  Result<Span<float>> Logits(const RunControl* control = nullptr) const {
    float* data = nullptr;
    size_t count = 0;
    if (Status s(mge_generator_logits(get(), control ? control->get() : nullptr, &data, &count)); !s.ok()) return s;
    return Span<float>(data, count);
  }
  Status Rewind(size_t count) const { return Status(mge_generator_rewind(get(), count)); }
  // The sequence. Valid until it changes.
  Span<const int64_t> tokens() const {
    size_t count = 0;
    const int64_t* data = mge_generator_tokens(get(), &count);
    return {data, count};
  }
};

// Options of a batch; see mge_batch_options.
struct BatchOptions {
  std::string device = {};
  int threads = 0;
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  int64_t max_length = 0;
  uint64_t cache_bytes = 0;
};

// Several sequences of one model, which one run continues. One thread at a time may use it.
class Batch : public internal::Owner<mge_batch, mge_batch_release> {
 public:
  using Owner::Owner;
  static Result<Batch> Load(const Runtime& runtime, const std::string& folder, const BatchOptions& options = {}) {
    const internal::Texts settings(options.settings);
    mge_batch_options raw;
    mge_batch_options_init(&raw);
    raw.device = internal::TextOrNull(options.device);
    raw.threads = options.threads;
    raw.settings = settings.data();
    raw.setting_count = settings.size();
    raw.max_length = options.max_length;
    raw.cache_bytes = options.cache_bytes;
    return internal::Take<Batch>([&](mge_batch** b) { return mge_batch_load(runtime.get(), folder.c_str(), &raw, b); });
  }
  // Returns the number of the new sequence. `sampling`: null for the folder's options. `max_tokens`: 0 for no limit but the length.
  Result<int64_t> Add(Span<const int64_t> prompt, int64_t max_tokens = 0, const Sampling* sampling = nullptr) const {
    const mge_sampling raw = internal::RawSampling(sampling ? *sampling : Sampling());
    int64_t sequence = 0;
    if (Status s(mge_batch_add(get(), prompt.data(), prompt.size(), sampling ? &raw : nullptr, max_tokens, &sequence));
        !s.ok()) {
      return s;
    }
    return sequence;
  }
  // The next token of each sequence that has not ended. Valid until the next call.
  Result<Span<const mge_batch_token>> Step(const RunControl* control = nullptr) const {
    const mge_batch_token* data = nullptr;
    size_t count = 0;
    if (Status s(mge_batch_step(get(), control ? control->get() : nullptr, &data, &count)); !s.ok()) return s;
    return Span<const mge_batch_token>(data, count);
  }
  // The prompt and the new tokens. Valid until the sequence changes.
  Result<Span<const int64_t>> Tokens(int64_t sequence) const {
    const int64_t* data = nullptr;
    size_t count = 0;
    if (Status s(mge_batch_tokens(get(), sequence, &data, &count)); !s.ok()) return s;
    return Span<const int64_t>(data, count);
  }
  Status Remove(int64_t sequence) const { return Status(mge_batch_remove(get(), sequence)); }
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
