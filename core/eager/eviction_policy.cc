// SPDX-License-Identifier: Apache-2.0
#include "core/eager/eviction_policy.h"

#include <algorithm>
#include <cmath>

namespace mge {
namespace {

// Calls f(neighbour) for each evicted input and output of the value's path.
template <typename F>
void ForEvictedNeighbours(const PathValue& value, F f) {
  for (const std::vector<PathValue*>* list : {&value.path->inputs, &value.path->outputs}) {
    for (PathValue* v : *list) {
      if (v && v != &value && v->evicted) f(*v);
    }
  }
}

}  // namespace

double EvictionPolicy::Advance(int64_t bytes_of_inputs_and_outputs) {
  const auto cost = static_cast<double>(bytes_of_inputs_and_outputs);
  now_ += cost / 1e8;
  return cost;
}

void EvictionPolicy::Add(PathValue& value) {
  if (value.candidate != PathValue::kNoCandidate) return;
  candidates_.push_back(&value);
  value.candidate = candidates_.size() - 1;
}

void EvictionPolicy::Remove(PathValue& value) {
  if (value.candidate == PathValue::kNoCandidate) return;
  PathValue* last = candidates_.back();
  candidates_[value.candidate] = last;
  last->candidate = value.candidate;
  candidates_.pop_back();
  value.candidate = PathValue::kNoCandidate;
}

double EvictionPolicy::NeighbourCost(const PathValue& value) const {
  double sum = 0;
  ForEvictedNeighbours(value, [&](const PathValue& v) { sum += std::max(RootOf(v.component)->cost, v.cost); });
  return sum;
}

double EvictionPolicy::Score(const PathValue& value) const {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double memory = static_cast<double>(value.bytes) / kMiB, idle = now_ - value.last_used + 1e-3;
  return (NeighbourCost(value) + 1e-3) * std::pow(1.0001, static_cast<double>(value.recomputations)) / (memory * idle);
}

PathValue* EvictionPolicy::Best(int64_t minimum) const {
  PathValue* best = nullptr;
  double lowest = 0;
  for (PathValue* v : candidates_) {
    if (!v->path || v->pins > 0 || v->bytes <= minimum) continue;
    const double score = Score(*v);
    if (best && score >= lowest) continue;
    best = v;
    lowest = score;
  }
  return best;
}

void EvictionPolicy::Evict(PathValue& value) {
  Remove(value);
  value.evicted = true;
  value.component = std::make_shared<EvictedComponent>(value.cost);
  ForEvictedNeighbours(value, [&](const PathValue& v) { Join(v.component, value.component); });
}

void EvictionPolicy::Recompute(PathValue& value) {
  RootOf(value.component)->cost -= value.cost;
  value.component = nullptr;
  value.evicted = false;
  ++value.recomputations;
  Use(value);
}

}  // namespace mge
