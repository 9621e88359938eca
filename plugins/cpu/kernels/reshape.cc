// SPDX-License-Identifier: Apache-2.0
// Reshape, Flatten, Squeeze and Unsqueeze: the same bytes with another shape. The output may use the input's memory.
#include "settings.h"
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot from, to;
  uint64_t bytes, piece;
  Chunks chunks;
};

constexpr uint64_t kPiece = 64 << 10;

// Returns the pieces of a copy: as many as its time is worth, or by cpu.parallel_copy_elements if that is set.
Args Split(uint64_t bytes, uint64_t elements) {
  const int64_t least = ToInt(SettingOf(kParallelCopySetting));
  constexpr uint64_t kLine = 64;
  Args a = {};
  a.bytes = bytes;
  a.piece = kPiece;
  if (least < 0) {
    a.chunks = SplitWork((bytes + kPiece - 1) / kPiece, StreamUs(2.0 * kPiece));
  } else if (elements < static_cast<uint64_t>(least)) {
    a.piece = std::max<uint64_t>(bytes, 1);
    a.chunks = {.items = bytes > 0 ? 1u : 0u};
  } else {
    a.piece = (bytes / kMaxChunks + kLine) / kLine * kLine;
    const uint64_t pieces = (bytes + a.piece - 1) / a.piece;
    a.chunks = {.items = pieces, .per_chunk = 1, .count = pieces};
  }
  return a;
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* from = At<const char>(run, a.from);
  auto* to = At<char>(run, a.to);
  if (from == to) return MGE_OK;
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t last) {
    uint64_t begin = first * a.piece, end = std::min(a.bytes, last * a.piece);
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
    int input = p.operand(0, 0);
    const Args split = Split(p.node().output(0).bytes(), p.node().output(0).elements());
    return MakeSimple<Args, Launch>([=](const Binding& b) {
      return Args{b.input(input), b.output(0), split.bytes, split.piece, split.chunks};
    });
  }
};

constexpr KernelRow kRows[] = {Row<ReshapeRow>("Reshape"), Row<ReshapeRow>("Flatten"), Row<ReshapeRow>("Squeeze"),
                               Row<ReshapeRow>("Unsqueeze")};

}  // namespace

MGE_KERNELS(reshape) = kRows;

}  // namespace mge::cpu
