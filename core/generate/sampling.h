// SPDX-License-Identifier: Apache-2.0
// The choice of the next token from the logits of a language model. Each step is a function of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace mge {

struct SamplingOptions {
  double temperature = 0;         // >= 0; 0: the token with the largest logit, and the options below have no effect
  int64_t top_k = 0;              // keeps the k most probable tokens; 0: all
  double top_p = 1;               // in (0, 1]; keeps the fewest most probable tokens whose probabilities add up to it
  double min_p = 0;               // in [0, 1]; keeps tokens with this fraction of the largest probability
  double repetition_penalty = 1;  // > 0; above 1 makes tokens of the sequence less probable, also with temperature 0
  uint64_t seed = 0;              // of the random numbers
};

// Fails with kApiMisuse, which names the first option out of its range.
absl::Status CheckSampling(const SamplingOptions& options);

// A token that may be chosen.
struct Candidate {
  int64_t id;
  double probability;
};

// Divides positive logits of these tokens by `penalty`, and multiplies negative ones, once for each token. Ids out of range are
// ignored.
void PenalizeRepetition(std::span<float> logits, std::span<const int64_t> tokens, double penalty);

// Returns the index of the largest logit, the first one of several. There must be a logit.
int64_t LargestLogit(std::span<const float> logits);

// Returns the `count` tokens with the largest logits (0: all) with their probabilities at this temperature, which is above 0. The
// most probable token is the first; of equal ones, that with the smallest id. Tokens with a logit of -infinity are left out.
std::vector<Candidate> MostProbable(std::span<const float> logits, double temperature, int64_t count);

// Removes candidates at the end: those that are not needed for a sum of probabilities of `p`, or those that are less probable than
// `fraction` of the first. Keep the first candidate. Probabilities are not changed.
void KeepTopP(std::vector<Candidate>& candidates, double p);
void KeepMinP(std::vector<Candidate>& candidates, double fraction);

// Returns the candidate at `uniform`, in [0, 1), of the sum of the probabilities.
int64_t Draw(std::span<const Candidate> candidates, double uniform);

// Returns a random number in [0, 1), which depends on the seed and the position only.
double UniformAt(uint64_t seed, uint64_t position);

// Returns the token that follows `tokens`. Changes the logits by the repetition penalty. `options` must be valid. Fails with kNoResult
// if a logit is NaN or +infinity, or if all are -infinity.
absl::StatusOr<int64_t> SelectToken(std::span<float> logits, std::span<const int64_t> tokens,
                                    const SamplingOptions& options);

}  // namespace mge
