// SPDX-License-Identifier: Apache-2.0
// Pad with constant pads: mode constant as copies, the other modes as an index map.
#include "mge/plugin/problems/pad.hpp"

#include "support/index_map.h"
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildConstant(MoveBuild& b) {
  Node n = b.node();
  if (n.Word("mode") != "constant") return Refusal("only mode constant");
  Pads pads;
  if (Result r = ReadPads(n, &pads); !r.ok()) return r;
  auto in = n.input(0).dims(), out = n.output(0).dims();
  size_t rank = in.size();
  std::vector<int64_t> from = b.InputStrides(0), to = b.OutputStrides();
  std::vector<int64_t> begin(rank), count(rank);  // part of the output that the input fills
  Copy body = {.input = b.Input(0), .output = b.Output(), .from_strides = from, .to_strides = to};
  for (size_t d = 0; d < rank; ++d) {
    begin[d] = std::clamp<int64_t>(pads.before[d], 0, out[d]);
    int64_t end = std::clamp<int64_t>(pads.before[d] + in[d], begin[d], out[d]);
    count[d] = end - begin[d];
    body.from_offset += (begin[d] - pads.before[d]) * from[d];
    body.to_offset += begin[d] * to[d];
  }
  body.dims = count;
  if (!b.Add(body)) return TooManyDimensions();
  // Fills the border. For dimension d: in dimensions before d only the input's part, in d only the padding, after d
  // everything.
  for (size_t d = 0; d < rank; ++d) {
    for (bool after : {false, true}) {
      Copy fill = {.output = b.Output(),
                   .dims = {out.begin(), out.end()},
                   .from_strides = std::vector<int64_t>(rank, 0),
                   .to_strides = to};
      fill.input = n.has_input(2) ? b.Input(2) : kValue;
      for (size_t k = 0; k < d; ++k) {
        fill.dims[k] = count[k];
        fill.to_offset += begin[k] * to[k];
      }
      fill.dims[d] = after ? out[d] - begin[d] - count[d] : begin[d];
      if (after) fill.to_offset += (begin[d] + count[d]) * to[d];
      if (!b.Add(fill)) return TooManyDimensions();
    }
  }
  return {};
}

constexpr MoveRule kPad = {.id = "cpu.pad", .build = BuildConstant, .channels_last = true};

// Returns the position among `size` elements for position `i` relative to the first of them.
int64_t PlaceOf(int64_t i, int64_t size, std::string_view mode) {
  if (mode == "edge" || size == 1) return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap") return ((i % size) + size) % size;
  int64_t period = 2 * (size - 1), r = ((i % period) + period) % period;
  return r < size ? r : period - r;
}

Result BuildMap(const Node& n, IndexMap* map) {
  Pads pads;
  if (Result r = ReadPads(n, &pads); !r.ok()) return r;
  auto in = n.input(0).dims(), out = n.output(0).dims();
  std::string_view mode = n.Word("mode");
  if (mode != "reflect" && mode != "edge" && mode != "wrap") return Refusal("an unknown mode");
  if (in.size() > 8) return TooManyDimensions();
  for (size_t d = 0; d < in.size(); ++d) {
    // Negative pads remove elements before positive ones repeat some.
    const int64_t before = pads.before[d], after = out[d] - in[d] - before, first = std::max<int64_t>(0, -before);
    const int64_t size = in[d] - first - std::max<int64_t>(0, -after);
    if (size <= 0 && out[d] > 0) return Refusal("nothing to repeat");
    map->place.push_back([=](int64_t i) { return first + PlaceOf(i - before - first, size, mode); });
  }
  return {};
}

struct PadMapRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    IndexMap map;
    if (Result r = BuildMap(p.node(), &map); !r.ok()) return offers.Refuse(r.text());
    OfferIndexMap(p, offers, "cpu.pad_map");
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    IndexMap map;
    if (!BuildMap(p.node(), &map).ok()) return nullptr;
    return map.MakeKernel(p, KindOf(c) == 1);
  }
};

struct PadRow {
  static void Offer(const Problem& p, Offers& offers) {
    p.node().Word("mode") == "constant" ? MoveRow<kPad>::Offer(p, offers) : PadMapRow::Offer(p, offers);
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    return p.node().Word("mode") == "constant" ? MoveRow<kPad>::Make(p, c) : PadMapRow::Make(p, c);
  }
};

constexpr KernelRow kRows[] = {Row<PadRow>("Pad")};

}  // namespace

MGE_KERNELS(pad) = kRows;

}  // namespace mge::cpu
