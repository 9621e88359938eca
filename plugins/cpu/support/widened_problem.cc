// SPDX-License-Identifier: Apache-2.0
#include "support/widened_problem.h"

#include "isa.h"
#include "vec/tile.h"

namespace mge::cpu {
namespace {

constexpr uint64_t kSmall = 4096;  // elements of constants that an offer may read, such as limits and scales

}  // namespace

void WidenElements(mge_dtype type, const void* from, uint64_t count, float* to) {
  const TileFn cast = FindCast(AllowedIsa(), type, MGE_DTYPE_F32);
  cast(from, nullptr, nullptr, to, static_cast<int64_t>(count), nullptr);
}

WidenedProblem::WidenedProblem(const Problem& p, Constants constants) : device_(p.handle()) {
  const mge_graph& graph = *p.raw()->graph;
  values_.reserve(graph.value_count);
  for (uint64_t i = 0; i < graph.value_count; ++i) {
    const Value value(graph.values[i]);
    mge_value& wide = values_.emplace_back(*graph.values[i]);
    pointers_.push_back(&wide);
    if (!IsHalf(value.dtype())) continue;
    wide.dtype = MGE_DTYPE_F32;
    if (!value.is_constant()) continue;
    const uint64_t count = value.elements();
    wide.data_bytes = count * sizeof(float);
    if (constants == Constants::kSmall && count > kSmall) continue;
    constants_.push_back(std::make_unique<float[]>(count));
    WidenElements(value.dtype(), wide.data, count, constants_.back().get());
    wide.data = constants_.back().get();
  }
  graph_ = graph;
  graph_.values = pointers_.data();
  problem_ = *p.raw();
  problem_.graph = &graph_;
}

bool WidenedProblem::CanWiden(const Problem& p) {
  bool any = false;
  for (uint64_t i = 0; i < p.raw()->graph->value_count; ++i) {
    const Value value(p.raw()->graph->values[i]);
    if (!IsHalf(value.dtype())) continue;
    if (value.is_state()) return false;
    any = true;
  }
  for (int i = 0; i < p.output_count(); ++i) {
    if (p.adds(i)) return false;
  }
  return any && p.aliases().empty() && p.is_static();
}

}  // namespace mge::cpu
