// SPDX-License-Identifier: Apache-2.0
// Reshape, Flatten, Squeeze and Unsqueeze: the same bytes with another shape. The output may use the input's memory.
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot from, to;
  uint64_t bytes;
  Chunks chunks;
};

constexpr uint64_t kPiece = 64 << 10;

mge_code Launch(const Args& a, const mge_run* run) {
  auto* from = At<const char>(run, a.from);
  auto* to = At<char>(run, a.to);
  if (from == to) return MGE_OK;
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t last) {
    uint64_t begin = first * kPiece, end = std::min(a.bytes, last * kPiece);
    std::memcpy(to + begin, from + begin, end - begin);
  });
  return MGE_OK;
}

struct ReshapeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    if (p.node().input(0).bytes() != p.node().output(0).bytes()) return offers.Refuse("the sizes differ");
    double us = StreamUs(2.0 * static_cast<double>(p.node().output(0).bytes()));
    offers.Add({.id = "cpu.copy",
                .attributes = kExact,
                .cost_us = RunUs(p, us),
                .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    uint64_t bytes = p.node().output(0).bytes(), pieces = (bytes + kPiece - 1) / kPiece;
    int input = p.operand(0, 0);
    Chunks chunks = SplitWork(pieces, StreamUs(2.0 * kPiece));
    return MakeSimple<Args, Launch>([=](const Binding& b) { return Args{b.input(input), b.output(0), bytes, chunks}; });
  }
};

constexpr KernelRow kRows[] = {Row<ReshapeRow>("Reshape"), Row<ReshapeRow>("Flatten"), Row<ReshapeRow>("Squeeze"),
                               Row<ReshapeRow>("Unsqueeze")};

}  // namespace

MGE_KERNELS(reshape) = kRows;

}  // namespace mge::cpu
