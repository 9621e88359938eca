// SPDX-License-Identifier: Apache-2.0
#include "support/index_map.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "support/move.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kMaxRank = 8;

struct Args {
  Slot x, y;
  const int64_t* offsets;  // owned by the kernel: byte offsets for the positions of every dimension, in memory order
  int32_t rank;
  int64_t dims[kMaxRank];  // dimensions of the output; the last one is innermost
  int64_t piece;           // bytes per copy
  int64_t repeats;         // not 0: a line is every element of an input's line so many times
  Chunks chunks;           // chunks of lines along the last dimension
};

template <typename T>
void Line(const char* from, const int64_t* offsets, char* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + offsets[i], sizeof(T));
}

template <typename T>
void RepeatedLine(const char* from, char* to, int64_t n, int64_t repeats) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  if (repeats == 2) {
    for (int64_t i = 0; i < n / 2; ++i) y[2 * i] = y[2 * i + 1] = x[i];
  } else {
    for (int64_t i = 0; i < n / repeats; ++i) std::fill_n(y + i * repeats, repeats, x[i]);
  }
}

template <typename T>
void Line(const char* from, const int64_t* offsets, char* to, int64_t n, int64_t repeats) {
  if (repeats > 0)
    RepeatedLine<T>(from, to, n, repeats);
  else
    Line<T>(from, offsets, to, n);
}

void Pieces(const char* from, const int64_t* offsets, char* to, int64_t n, int64_t piece) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * piece, from + offsets[i], static_cast<size_t>(piece));
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  int64_t n = a.dims[a.rank - 1];
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t last) {
    const char* before = nullptr;  // the source of the line before
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(last); ++u) {
      const char* from = x;
      const int64_t* list = a.offsets;
      int64_t index[kMaxRank], rest = u;
      for (int d = a.rank - 2; d >= 0; --d) {
        index[d] = rest % a.dims[d];
        rest /= a.dims[d];
      }
      for (int d = 0; d < a.rank - 1; ++d) {
        from += list[index[d]];
        list += a.dims[d];
      }
      char* to = y + u * n * a.piece;
      if (std::exchange(before, from) == from) {
        std::memcpy(to, to - n * a.piece, static_cast<size_t>(n * a.piece));
        continue;
      }
      switch (a.piece) {
        case 1: Line<uint8_t>(from, list, to, n, a.repeats); break;
        case 2: Line<uint16_t>(from, list, to, n, a.repeats); break;
        case 4: Line<uint32_t>(from, list, to, n, a.repeats); break;
        case 8: Line<uint64_t>(from, list, to, n, a.repeats); break;
        default: Pieces(from, list, to, n, a.piece);
      }
    }
  });
  return MGE_OK;
}

class IndexMapKernel : public Kernel {
 public:
  IndexMapKernel(const Args& args, int input, std::vector<int64_t> offsets)
      : args_(args), input_(input), offsets_(std::move(offsets)) {
    args_.offsets = offsets_.data();
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) Args(args_);
    a->x = b.input(input_);
    a->y = b.output(0);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Args args_;
  int input_;
  std::vector<int64_t> offsets_;
};

// Returns how often each element is repeated, if the last `n` offsets are those of 0, 1, 2, ... repeated; else 0.
int64_t RepeatsOf(std::span<const int64_t> offsets, int64_t n, int64_t element) {
  const std::span<const int64_t> line = offsets.last(static_cast<size_t>(n));
  const auto times = static_cast<int64_t>(std::ranges::find_if(line, [](int64_t o) { return o != 0; }) - line.begin());
  if (times == 0 || n % times != 0) return 0;
  for (int64_t k = 0; k < n; ++k) {
    if (line[static_cast<size_t>(k)] != k / times * element) return 0;
  }
  return times;
}

double SerialUs(const Value& x, const Value& y, bool channels_last) {
  const bool whole = y.rank() > 0 && x.dim(-1) > 0 && y.dim(-1) % x.dim(-1) == 0;  // perhaps repeated elements
  const double ns = channels_last ? 0.35 : whole ? 0.15 : 0.45;                    // of an element
  return StreamUs(static_cast<double>(x.bytes() + y.bytes())) + 1e-3 * ns * static_cast<double>(y.elements());
}

}  // namespace

KernelPtr IndexMap::MakeKernel(const Problem& p, bool channels_last) const {
  Value x = p.node().input(0), y = p.node().output(0);
  int rank = x.rank();
  int64_t element = SizeOf(x.dtype());
  mge_layout last = ChannelsLast(rank);
  auto axis = [&](int i) { return static_cast<size_t>(channels_last ? last.perm[i] : i); };  // memory position -> dimension
  Args a = {};
  a.rank = 1;
  a.dims[0] = 1;
  a.piece = element;
  std::vector<int64_t> offsets = {0};  // of a scalar
  if (y.elements() > 0 && rank > 0) {
    // Innermost dimensions that are copied unchanged become part of the piece.
    auto whole = [&](size_t d) {
      bool same = x.dims()[d] == y.dims()[d];
      for (int64_t k = 0; same && k < y.dims()[d]; ++k) same = place[d](k) == k;
      return same;
    };
    a.rank = rank;
    for (; a.rank > 1 && whole(axis(a.rank - 1)); --a.rank) a.piece *= y.dims()[axis(a.rank - 1)];
    std::vector<int64_t> strides = StridesIn(x.dims(), channels_last);
    offsets.clear();
    int64_t positions = 0;
    for (int i = 0; i < a.rank; ++i) positions += a.dims[i] = y.dims()[axis(i)];
    offsets.reserve(static_cast<size_t>(positions));
    for (int i = 0; i < a.rank; ++i) {
      size_t d = axis(i);
      for (int64_t k = 0; k < a.dims[i]; ++k) offsets.push_back(place[d](k) * strides[d] * element);
    }
  }
  if (y.elements() > 0 && a.piece == element) a.repeats = RepeatsOf(offsets, a.dims[a.rank - 1], element);
  uint64_t lines = y.elements() > 0;
  for (int i = 0; i + 1 < a.rank; ++i) lines *= static_cast<uint64_t>(a.dims[i]);
  a.chunks = SplitWork(lines, lines ? SerialUs(x, y, channels_last) / static_cast<double>(lines) : 0);
  return std::make_unique<IndexMapKernel>(a, p.operand(0, 0), std::move(offsets));
}

void OfferIndexMap(const Problem& p, Offers& offers, const char* id) {
  Value x = p.node().input(0);
  for (bool last : {false, true}) {
    if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
    Candidate c = {.id = std::string(id) + (last ? ".nhwc" : ""),
                   .attributes = kExact,
                   .cost_us = RunUs(p, SerialUs(x, p.node().output(0), last)),
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
