// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/layout.h"

#include <algorithm>
#include <numeric>

namespace mge::gpu {
namespace {

bool MovesChannels(const Value& operand, int rank) { return operand.rank() == rank && !operand.is_constant(); }

int RankOf(const Problem& p) { return p.last().output(0).rank(); }

void SetOutputs(const Problem& p, Candidate* candidate) {
  const int rank = RankOf(p);
  for (int i = 0; i < p.output_count(); ++i) {
    candidate->outputs.push_back(p.output(i).rank() == rank ? ChannelsLast(rank) : PlainLayout());
  }
}

}  // namespace

std::span<const Layout> LayoutsOf(int rank) {
  static constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kChannelsLast};
  return std::span(kLayouts).first(rank >= 3 && rank <= 5 ? 2 : 1);
}

std::vector<size_t> MemoryOrder(Layout layout, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout == Layout::kChannelsLast) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

std::vector<int64_t> StridesIn(Layout layout, std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  const std::vector<size_t> order = MemoryOrder(layout, dims.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0; step *= dims[order[i]]) strides[order[i]] = step;
  return strides;
}

std::vector<int64_t> StridesOf(const Value& operand, int rank, Layout layout) {
  return StridesIn(MovesChannels(operand, rank) ? layout : Layout::kPlain, operand.dims());
}

void SetLayout(const Problem& p, Layout layout, Candidate* candidate) {
  if (layout == Layout::kPlain) return;
  candidate->id += ".nhwc";
  const int rank = RankOf(p);
  for (int i = 0; i < p.input_count(); ++i) {
    candidate->inputs.push_back(MovesChannels(p.input(i), rank) ? ChannelsLast(rank) : PlainLayout());
  }
  SetOutputs(p, candidate);
}

bool SetLayout(const Problem& p, Layout layout, std::initializer_list<int> inputs, Candidate* candidate) {
  if (layout == Layout::kPlain) return true;
  candidate->id += ".nhwc";
  candidate->inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
  for (const int i : inputs) {
    if (i < 0) continue;
    if (p.input(i).is_constant()) return false;
    candidate->inputs[static_cast<size_t>(i)] = ChannelsLast(p.input(i).rank());
  }
  SetOutputs(p, candidate);
  return true;
}

}  // namespace mge::gpu
