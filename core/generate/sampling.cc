// SPDX-License-Identifier: Apache-2.0
#include "core/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

absl::Status OutOfRange(std::string_view name, double value, std::string_view allowed) {
  return Fail(errors::kApiMisuse, fmt::format("{} is {}", name, value), {.what = fmt::format("it must be {}", allowed)});
}

// Checks that there is a token to choose, and that all logits can be compared.
absl::Status CheckLogits(std::span<const float> logits) {
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    any |= logits[i] != kExcluded;
    if (!std::isnan(logits[i]) && logits[i] != -kExcluded) continue;
    return Fail(
        errors::kNoResult, fmt::format("the logit of token {} is {}", i, logits[i]),
        {.what = "the model computed no valid logits for this sequence",
         .fix = "check the weights of the model; `mge run MODEL --device host` shows whether a kernel is the cause"});
  }
  if (any) return absl::OkStatus();
  return Fail(errors::kNoResult, "no token can follow",
              {.what = "all logits are -infinity", .fix = "leave at least one token possible when you change the logits"});
}

}  // namespace

absl::Status CheckSampling(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && o.temperature <= 1e6)) return OutOfRange("temperature", o.temperature, "between 0 and 1e6");
  if (o.top_k < 0) return OutOfRange("top_k", static_cast<double>(o.top_k), "0 (all tokens) or more");
  if (!(o.top_p > 0 && o.top_p <= 1)) return OutOfRange("top_p", o.top_p, "above 0 and at most 1");
  if (!(o.min_p >= 0 && o.min_p <= 1)) return OutOfRange("min_p", o.min_p, "between 0 and 1");
  if (!(o.repetition_penalty > 0 && o.repetition_penalty <= 1e6)) {
    return OutOfRange("repetition_penalty", o.repetition_penalty, "above 0 and at most 1e6");
  }
  return absl::OkStatus();
}

void PenalizeRepetition(std::span<float> logits, std::span<const int64_t> tokens, double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(logits.size());
  for (const int64_t id : tokens) {
    if (id < 0 || id >= static_cast<int64_t>(logits.size()) || seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    float& logit = logits[static_cast<size_t>(id)];
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
}

int64_t LargestLogit(std::span<const float> logits) { return std::ranges::max_element(logits) - logits.begin(); }

std::vector<Candidate> MostProbable(std::span<const float> logits, double temperature, int64_t count) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != kExcluded) all.push_back({static_cast<int64_t>(i), logits[i]});
  }
  const auto more = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  };
  const size_t kept = count > 0 ? std::min(all.size(), static_cast<size_t>(count)) : all.size();
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end(), more);
  all.resize(kept);
  if (all.empty()) return all;
  const double largest = all.front().probability;
  double sum = 0;
  for (Candidate& c : all) sum += c.probability = std::exp((c.probability - largest) / temperature);
  for (Candidate& c : all) c.probability /= sum;
  return all;
}

void KeepTopP(std::vector<Candidate>& candidates, double p) {
  if (p >= 1) return;
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += candidates[i].probability;
    if (sum >= p) return candidates.resize(i + 1);
  }
}

void KeepMinP(std::vector<Candidate>& candidates, double fraction) {
  if (candidates.empty()) return;
  const double least = candidates.front().probability * fraction;
  while (candidates.size() > 1 && candidates.back().probability < least) candidates.pop_back();
}

int64_t Draw(std::span<const Candidate> candidates, double uniform) {
  double sum = 0;
  for (const Candidate& c : candidates) sum += c.probability;
  double at = uniform * sum;
  for (const Candidate& c : candidates) {
    at -= c.probability;
    if (at < 0) return c.id;
  }
  return candidates.back().id;  // the rounding of the sum
}

// SplitMix64 of the position's place in the sequence of the seed.
double UniformAt(uint64_t seed, uint64_t position) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  const auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  };
  return static_cast<double>(mix(mix(seed + kStep) + (position + 1) * kStep) >> 11) * 0x1p-53;
}

absl::StatusOr<int64_t> SelectToken(std::span<float> logits, std::span<const int64_t> tokens,
                                    const SamplingOptions& options) {
  MGE_RETURN_IF_ERROR(CheckLogits(logits));
  PenalizeRepetition(logits, tokens, options.repetition_penalty);
  if (options.temperature == 0) return LargestLogit(logits);
  std::vector<Candidate> candidates = MostProbable(logits, options.temperature, options.top_k);
  KeepTopP(candidates, options.top_p);
  KeepMinP(candidates, options.min_p);
  return Draw(candidates, UniformAt(options.seed, tokens.size()));
}

}  // namespace mge
