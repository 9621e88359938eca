// SPDX-License-Identifier: Apache-2.0
#include "support/index_map.h"

#include <cstring>

#include "support/move.h"

namespace mge::cpu {
namespace {

constexpr int kMaxRank = 8;

// Byte offsets of every dimension follow, dimension by dimension, in the order of memory.
struct Header {
  Slot x, y;
  int32_t rank;
  int64_t dims[kMaxRank];  // of the output; the last one is walked innermost
  int64_t piece;           // bytes that are moved at a time
  Chunks chunks;           // of lines along the last dimension
};

template <typename T>
void Line(const char* from, const int64_t* offsets, char* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + offsets[i], sizeof(T));
}

mge_code Launch(const Header& h, const mge_run* run) {
  auto* offsets = reinterpret_cast<const int64_t*>(&h + 1);
  auto* x = At<const char>(run, h.x);
  auto* y = At<char>(run, h.y);
  int64_t n = h.dims[h.rank - 1];
  ForChunks(run, h.chunks, [&](uint64_t first, uint64_t last) {
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(last); ++u) {
      const char* from = x;
      const int64_t* list = offsets;
      int64_t index[kMaxRank], rest = u;
      for (int d = h.rank - 2; d >= 0; --d) {
        index[d] = rest % h.dims[d];
        rest /= h.dims[d];
      }
      for (int d = 0; d < h.rank - 1; ++d) {
        from += list[index[d]];
        list += h.dims[d];
      }
      char* to = y + u * n * h.piece;
      switch (h.piece) {
        case 1: Line<uint8_t>(from, list, to, n); break;
        case 2: Line<uint16_t>(from, list, to, n); break;
        case 4: Line<uint32_t>(from, list, to, n); break;
        case 8: Line<uint64_t>(from, list, to, n); break;
        default:
          for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * h.piece, from + list[i], static_cast<size_t>(h.piece));
      }
    }
  });
  return MGE_OK;
}

class IndexMapKernel : public Kernel {
 public:
  IndexMapKernel(Header header, int input, std::vector<int64_t> offsets)
      : header_(header), input_(input), offsets_(std::move(offsets)) {}
  uint32_t args_bytes() const override {
    return static_cast<uint32_t>(sizeof(Header) + offsets_.size() * sizeof(int64_t));
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* h = new (args) Header(header_);
    h->x = b.input(input_);
    h->y = b.output(0);
    if (!offsets_.empty()) std::memcpy(static_cast<void*>(h + 1), offsets_.data(), offsets_.size() * sizeof(int64_t));
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Header header_;
  int input_;
  std::vector<int64_t> offsets_;
};

}  // namespace

double IndexMap::serial_us(const Value& y) const {
  return StreamUs(2.0 * static_cast<double>(y.bytes())) + 0.7e-3 * static_cast<double>(y.elements());
}

KernelPtr IndexMap::MakeKernel(const Value& x, int input, bool channels_last) const {
  int rank = x.rank();
  mge_layout last = ChannelsLast(rank);
  std::vector<int64_t> strides = StridesIn(x.dims(), channels_last);
  Header h = {};
  h.piece = SizeOf(x.dtype());
  std::vector<std::vector<int64_t>> lists;  // in the order of memory, byte offsets
  uint64_t total = 1;
  for (int i = 0; i < rank; ++i) {
    auto d = static_cast<size_t>(channels_last ? last.perm[i] : i);
    std::vector<int64_t> list;
    for (int64_t place : places[d]) list.push_back(place * strides[d] * SizeOf(x.dtype()));
    total *= list.size();
    lists.push_back(std::move(list));
  }
  // Innermost dimensions that are copied as they are become part of the piece.
  while (lists.size() > 1) {
    const auto& list = lists.back();
    bool whole = !list.empty();
    for (size_t i = 0; i < list.size() && whole; ++i) whole = list[i] == static_cast<int64_t>(i) * h.piece;
    auto d = static_cast<size_t>(channels_last ? last.perm[lists.size() - 1] : static_cast<int32_t>(lists.size() - 1));
    if (!whole || static_cast<int64_t>(list.size()) != x.dims()[d]) break;
    h.piece *= static_cast<int64_t>(list.size());
    lists.pop_back();
  }
  if (lists.empty()) lists.push_back({0});
  std::vector<int64_t> offsets;
  uint64_t lines = 1;
  for (size_t i = 0; i < lists.size(); ++i) {
    h.dims[i] = static_cast<int64_t>(lists[i].size());
    if (i + 1 < lists.size()) lines *= lists[i].size();
    offsets.insert(offsets.end(), lists[i].begin(), lists[i].end());
  }
  h.rank = static_cast<int32_t>(lists.size());
  if (total == 0) lines = 0;
  double us = StreamUs(2.0 * static_cast<double>(total) * SizeOf(x.dtype())) + 0.7e-3 * static_cast<double>(total);
  h.chunks = SplitWork(lines, lines ? us / static_cast<double>(lines) : 0);
  return std::make_unique<IndexMapKernel>(h, input, std::move(offsets));
}

void OfferIndexMap(const Problem& p, Offers& offers, const IndexMap& map, const char* id) {
  Value x = p.node().input(0);
  for (bool last : {false, true}) {
    if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
    Candidate c = {.id = std::string(id) + (last ? ".nhwc" : ""),
                   .attributes = kExact,
                   .cost_us = RunUs(p, map.serial_us(p.node().output(0)) * (last ? 0.5 : 1.0)),
                   .variant = last ? 1u : 0u};
    if (last) {
      c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
      c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(x.rank());
      c.outputs = {ChannelsLast(x.rank())};
    }
    offers.Add(c);
  }
}

}  // namespace mge::cpu
