// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/tiles.h"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/roofs.h"

namespace mge::gpu {
namespace {

constexpr int64_t kStep = 16, kMinSum = 256, kMaxSplits = 64;
constexpr double kBlocksAtOnce = 2;  // blocks of a multiprocessor that hide each other's latency

}  // namespace

double TilesUs(const Problem& p, int64_t tiles, int64_t k) {
  constexpr double kStepUs = 1;  // a step loads, waits and multiplies: 1.4 us on an H200 without loads in advance
  const double at_once = kBlocksAtOnce * RoofsOf(p.handle()).multiprocessors;
  return kStepUs * std::ceil(static_cast<double>(k) / kStep) * std::ceil(static_cast<double>(tiles) / at_once);
}

int64_t SplitsFor(const Problem& p, int64_t tiles, int64_t k) {
  const auto busy = static_cast<int64_t>(kBlocksAtOnce * RoofsOf(p.handle()).multiprocessors);
  return std::clamp<int64_t>(std::min((k + kMinSum - 1) / kMinSum, busy / std::max<int64_t>(1, tiles)), 1, kMaxSplits);
}

uint64_t PartBytes(mge_dtype type, int64_t splits, int64_t results) {
  return static_cast<uint64_t>(splits * results) * (type == MGE_DTYPE_F64 ? 8 : 4);
}

MatMulArgs JoinOf(int64_t rows, int64_t columns, int64_t splits) {
  MatMulArgs args = {};
  args.m = rows;
  args.n = columns;
  args.batch = 1;
  args.alpha = 1;
  args.splits = static_cast<int32_t>(splits);
  return args;
}

}  // namespace mge::gpu
