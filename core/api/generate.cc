// SPDX-License-Identifier: Apache-2.0
// The API functions of generators.
#include "mge/generate.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/generate/batch.h"
#include "core/generate/generator.h"

struct mge_generator {
  std::unique_ptr<mge::Generator> generator;
  std::string device;
};

struct mge_batch {
  std::unique_ptr<mge::Batch> batch;
  std::vector<mge_batch_token> tokens;  // of the last step
};

namespace {

static_assert(MGE_END_NONE == static_cast<int>(mge::EndOfText::kNone));
static_assert(MGE_END_TOKEN == static_cast<int>(mge::EndOfText::kEndToken));
static_assert(MGE_END_LENGTH == static_cast<int>(mge::EndOfText::kLength));

mge::SamplingOptions SamplingFrom(const mge_sampling& s) {
  return {.temperature = s.temperature,
          .top_k = s.top_k,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repetition_penalty = s.repetition_penalty,
          .seed = s.seed};
}

mge::RunControl* ControlOf(mge_run_control* control) { return control ? &control->run_control : nullptr; }

}  // namespace

mge_status* mge_generator_load(mge_runtime* runtime, const char* folder, const mge_generator_options* options,
                               mge_generator** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"folder", folder}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const mge_generator_options o,
                           mge::api::CopyOptions(options, mge_generator_options_init, "mge_generator_options"));
  mge::SessionOptions session;
  if (o.device) session.device = o.device;
  session.threads = o.threads;
  MGE_API_ASSIGN_OR_RETURN(session.settings, mge::api::Assignments(o.settings, o.setting_count));
  MGE_API_ASSIGN_OR_RETURN(std::unique_ptr<mge::Generator> generator,
                           mge::Generator::Load(runtime->runtime, folder, session, o.max_length));
  std::string device(generator->session().device().name());
  *out = new mge_generator{std::move(generator), std::move(device)};
  return nullptr;
}
MGE_API_CATCH

void mge_generator_release(mge_generator* generator) { delete generator; }

mge_status* mge_generator_describe(mge_generator* g, mge_generator_facts* out) try {
  MGE_API_NEEDS({"generator", g}, {"out", out});
  MGE_API_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_generator_facts>(out->struct_size, "mge_generator_facts"));
  const mge::Generator& generator = *g->generator;
  mge_generator_facts facts = {};
  facts.struct_size = out->struct_size;
  facts.vocabulary = generator.vocabulary();
  facts.max_length = generator.max_length();
  facts.weight_bytes = generator.weight_bytes();
  facts.cache_bytes_per_token = generator.cache_bytes_per_token();
  facts.cache_bytes = generator.cache_bytes();
  facts.end_tokens = generator.end_tokens().data();
  facts.end_token_count = generator.end_tokens().size();
  facts.device = g->device.c_str();
  facts.threads = static_cast<int32_t>(generator.session().threads());
  std::memcpy(out, &facts, std::min(out->struct_size, sizeof(facts)));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_generator_sampling(mge_generator* g, mge_sampling* out) try {
  MGE_API_NEEDS({"generator", g}, {"out", out});
  MGE_API_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_sampling>(out->struct_size, "mge_sampling"));
  const mge::SamplingOptions& s = g->generator->sampling();
  const mge_sampling sampling = {.struct_size = out->struct_size,
                                 .repetition_penalty = s.repetition_penalty,
                                 .temperature = s.temperature,
                                 .top_k = s.top_k,
                                 .top_p = s.top_p,
                                 .min_p = s.min_p,
                                 .seed = s.seed};
  std::memcpy(out, &sampling, std::min(out->struct_size, sizeof(sampling)));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_generator_set_sampling(mge_generator* g, const mge_sampling* sampling) try {
  MGE_API_NEEDS({"generator", g}, {"sampling", sampling});
  MGE_API_ASSIGN_OR_RETURN(const mge_sampling s, mge::api::CopyOptions(sampling, "mge_sampling"));
  return mge::api::Wrap(g->generator->SetSampling(SamplingFrom(s)));
}
MGE_API_CATCH

mge_status* mge_generator_set_source(mge_generator* g, const char* const* names, mge_tensor* const* tensors, size_t count,
                                     mge_run_control* control) try {
  MGE_API_NEEDS({"generator", g}, {"names", count == 0 || names}, {"tensors", count == 0 || tensors});
  std::vector<mge::NamedTensor> inputs;
  for (size_t i = 0; i < count; ++i) {
    MGE_API_NEEDS({"names", names[i]});
    MGE_API_RETURN_IF_ERROR(mge::api::CheckInput(tensors[i], i));
    inputs.push_back({names[i], tensors[i]->value.tensor});
  }
  return mge::api::Wrap(g->generator->SetSource(inputs, ControlOf(control)));
}
MGE_API_CATCH

mge_status* mge_generator_append(mge_generator* g, const int64_t* ids, size_t count) try {
  MGE_API_NEEDS({"generator", g}, {"ids", count == 0 || ids});
  return mge::api::Wrap(g->generator->Append({ids, count}));
}
MGE_API_CATCH

mge_status* mge_generator_next(mge_generator* g, mge_run_control* control, int64_t* id, int32_t* end) try {
  MGE_API_NEEDS({"generator", g}, {"id", id}, {"end", end});
  MGE_API_ASSIGN_OR_RETURN(const mge::NextToken next, g->generator->Next(ControlOf(control)));
  *id = next.id;
  *end = static_cast<int32_t>(next.end);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_generator_logits(mge_generator* g, mge_run_control* control, float** logits, size_t* count) try {
  MGE_API_NEEDS({"generator", g}, {"logits", logits}, {"count", count});
  MGE_API_ASSIGN_OR_RETURN(const std::span<float> all, g->generator->Logits(ControlOf(control)));
  *logits = all.data();
  *count = all.size();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_generator_rewind(mge_generator* g, size_t count) try {
  MGE_API_NEEDS({"generator", g});
  return mge::api::Wrap(g->generator->Rewind(static_cast<int64_t>(std::min<size_t>(count, INT64_MAX))));
}
MGE_API_CATCH

const int64_t* mge_generator_tokens(const mge_generator* g, size_t* count) {
  *count = g->generator->tokens().size();
  return g->generator->tokens().data();
}

mge_status* mge_batch_load(mge_runtime* runtime, const char* folder, const mge_batch_options* options, mge_batch** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"folder", folder}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(const mge_batch_options o,
                           mge::api::CopyOptions(options, mge_batch_options_init, "mge_batch_options"));
  mge::SessionOptions session;
  if (o.device) session.device = o.device;
  session.threads = o.threads;
  MGE_API_ASSIGN_OR_RETURN(session.settings, mge::api::Assignments(o.settings, o.setting_count));
  MGE_API_ASSIGN_OR_RETURN(
      std::unique_ptr<mge::Batch> batch,
      mge::Batch::Load(runtime->runtime, folder, session, {.max_length = o.max_length, .cache_bytes = o.cache_bytes}));
  *out = new mge_batch{std::move(batch), {}};
  return nullptr;
}
MGE_API_CATCH

void mge_batch_release(mge_batch* batch) { delete batch; }

mge_status* mge_batch_add(mge_batch* batch, const int64_t* ids, size_t count, const mge_sampling* sampling,
                          int64_t max_tokens, int64_t* sequence) try {
  MGE_API_NEEDS({"batch", batch}, {"ids", count == 0 || ids}, {"sequence", sequence});
  mge::SamplingOptions options = batch->batch->sampling();
  if (sampling) {
    MGE_API_ASSIGN_OR_RETURN(const mge_sampling s, mge::api::CopyOptions(sampling, "mge_sampling"));
    options = SamplingFrom(s);
  }
  MGE_API_ASSIGN_OR_RETURN(*sequence, batch->batch->Add({ids, count}, options, max_tokens));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_batch_step(mge_batch* batch, mge_run_control* control, const mge_batch_token** tokens, size_t* count) try {
  MGE_API_NEEDS({"batch", batch}, {"tokens", tokens}, {"count", count});
  MGE_API_ASSIGN_OR_RETURN(const std::vector<mge::BatchToken> step, batch->batch->Step(ControlOf(control)));
  batch->tokens.clear();
  for (const mge::BatchToken& t : step) batch->tokens.push_back({t.sequence, t.id, static_cast<int32_t>(t.end), 0});
  *tokens = batch->tokens.data();
  *count = batch->tokens.size();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_batch_tokens(mge_batch* batch, int64_t sequence, const int64_t** ids, size_t* count) try {
  MGE_API_NEEDS({"batch", batch}, {"ids", ids}, {"count", count});
  MGE_API_ASSIGN_OR_RETURN(const std::span<const int64_t> tokens, batch->batch->Tokens(sequence));
  *ids = tokens.data();
  *count = tokens.size();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_batch_remove(mge_batch* batch, int64_t sequence) try {
  MGE_API_NEEDS({"batch", batch});
  return mge::api::Wrap(batch->batch->Remove(sequence));
}
MGE_API_CATCH
