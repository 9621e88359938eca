// SPDX-License-Identifier: Apache-2.0
#include "support/move.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

namespace mge::cpu {
namespace {

struct MoveHeader {
  int32_t count;
  TransposeFn transpose[4];
  Chunks chunks;  // of all units
  // Units of each copy that are done before those of the next copy; 0: the copies follow each other. Copies with equally
  // many units often write side by side (a concatenation of channels), so that they share lines of the cache.
  uint64_t side_by_side;
};

int BytesIndex(int bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

constexpr int64_t kLineBytes = 32 << 10;          // longer lines are split into units
constexpr int64_t kTransposeRows = 64;            // rows per unit
constexpr int64_t kTransposeElements = 16 << 10;  // of a unit with fewer rows

template <typename T>
void Splat(char* to, uint64_t value, int64_t n) {
  auto x = static_cast<T>(value);
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &x, sizeof(T));
}

template <typename T>
void Strided(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) y[i * to_step] = x[i * from_step];
}

// Copies a line. memcpy starts slowly, and copies lines of a few kilobytes at half the speed of vectors.
inline void CopyLine(const char* __restrict from, char* __restrict to, size_t n) {
  typedef long long V __attribute__((vector_size(16), aligned(1), may_alias));
  for (; n >= 64; n -= 64, from += 64, to += 64) {
    const V a = reinterpret_cast<const V*>(from)[0], b = reinterpret_cast<const V*>(from)[1];
    const V c = reinterpret_cast<const V*>(from)[2], d = reinterpret_cast<const V*>(from)[3];
    reinterpret_cast<V*>(to)[0] = a;
    reinterpret_cast<V*>(to)[1] = b;
    reinterpret_cast<V*>(to)[2] = c;
    reinterpret_cast<V*>(to)[3] = d;
  }
  if (n & 32) std::memcpy(to, from, 32), from += 32, to += 32;
  if (n & 16) std::memcpy(to, from, 16), from += 16, to += 16;
  if (n & 8) std::memcpy(to, from, 8), from += 8, to += 8;
  if (n & 4) std::memcpy(to, from, 4), from += 4, to += 4;
  for (n &= 3; n > 0; --n) *to++ = *from++;
}

void Line(const CopyArgs& c, const char* from, char* to, const MoveHeader& h) {
  switch (c.shape) {
    case CopyArgs::kLines:
      if (from == to) return;  // in place: nothing to do
      CopyLine(from, to, static_cast<size_t>(c.n) * c.bytes);
      return;
    case CopyArgs::kSplat: {
      uint64_t value = c.value;
      if (!c.has_value) std::memcpy(&value, from, c.bytes);
      switch (c.bytes) {
        case 1: std::memset(to, static_cast<int>(value & 255), static_cast<size_t>(c.n)); return;
        case 2: return Splat<uint16_t>(to, value, c.n);
        case 4: return Splat<uint32_t>(to, value, c.n);
        default: return Splat<uint64_t>(to, value, c.n);
      }
    }
    case CopyArgs::kStrided:
      switch (c.bytes) {
        case 1: return Strided<uint8_t>(from, c.from_step, to, c.to_step, c.n);
        case 2: return Strided<uint16_t>(from, c.from_step, to, c.to_step, c.n);
        case 4: return Strided<uint32_t>(from, c.from_step, to, c.to_step, c.n);
        default: return Strided<uint64_t>(from, c.from_step, to, c.to_step, c.n);
      }
    case CopyArgs::kTranspose:
      h.transpose[BytesIndex(c.bytes)](from, c.rows_step, to, c.columns_step, c.n, c.columns);
      return;
  }
}

// Runs units [first, last) of one copy: lines, numbered over the outer dimensions.
void RunUnits(const CopyArgs& c, const mge_run* run, const MoveHeader& h, uint64_t first, uint64_t last) {
  const char* from = c.has_value ? reinterpret_cast<const char*>(&c.value) : At<const char>(run, c.from) + c.from_offset;
  char* to = At<char>(run, c.to) + c.to_offset;
  int64_t index[kMaxCopyDims];
  auto rest = static_cast<int64_t>(first);
  for (int d = c.rank - 1; d >= 0; --d) {
    index[d] = rest % c.dims[d];
    rest /= c.dims[d];
    from += index[d] * c.from_strides[d];
    to += index[d] * c.to_strides[d];
  }
  for (uint64_t u = first; u < last; ++u) {
    Line(c, from, to, h);
    for (int d = c.rank - 1; d >= 0; --d) {
      from += c.from_strides[d];
      to += c.to_strides[d];
      if (++index[d] < c.dims[d]) break;
      from -= c.dims[d] * c.from_strides[d];
      to -= c.dims[d] * c.to_strides[d];
      index[d] = 0;
    }
  }
}

mge_code Launch(const MoveHeader& h, const mge_run* run) {
  auto* copies = reinterpret_cast<const CopyArgs*>(&h + 1);
  if (h.side_by_side) {
    ForChunks(run, h.chunks, [&](uint64_t first, uint64_t last) {
      for (uint64_t u = first; u < last; u += h.side_by_side) {
        for (int32_t i = 0; i < h.count; ++i) RunUnits(copies[i], run, h, u, std::min(last, u + h.side_by_side));
      }
    });
    return MGE_OK;
  }
  ForChunks(run, h.chunks, [&](uint64_t first, uint64_t last) {
    for (int32_t i = 0; i < h.count; ++i) {
      const CopyArgs& c = copies[i];
      uint64_t begin = std::max(first, c.first_unit), end = std::min(last, c.first_unit + c.units);
      if (begin < end) RunUnits(c, run, h, begin - c.first_unit, end - c.first_unit);
    }
  });
  return MGE_OK;
}

struct Dim {
  int64_t size, from, to;
};

// Returns the dimensions of a copy, in falling order of the target's strides, without those of size 1. Neighbours that are
// contiguous on both sides are one dimension.
std::vector<Dim> MergedDims(const Copy& copy) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < copy.dims.size(); ++d) {
    if (copy.dims[d] > 1)
      dims.push_back({copy.dims[d], copy.input == kValue ? 0 : copy.from_strides[d], copy.to_strides[d]});
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return std::abs(a.to) > std::abs(b.to); });
  for (size_t d = dims.size(); d-- > 1;) {
    Dim &outer = dims[d - 1], &inner = dims[d];
    if (outer.from == inner.from * inner.size && outer.to == inner.to * inner.size) {
      inner.size *= outer.size;
      dims.erase(dims.begin() + static_cast<int64_t>(d) - 1);
    }
  }
  return dims;
}

void AddOuter(CopyArgs* c, const Dim& d) {
  c->dims[c->rank] = d.size;
  c->from_strides[c->rank] = d.from * c->bytes;
  c->to_strides[c->rank] = d.to * c->bytes;
  ++c->rank;
  c->units *= static_cast<uint64_t>(d.size);
}

// Returns the dimension whose elements are contiguous in the source, or -1. Read as columns, it makes the copy a transposition.
int ColumnsOf(const std::vector<Dim>& outer, const Dim& inner) {
  if (inner.to != 1 || inner.from <= 1) return -1;
  int columns = -1;
  for (size_t d = 0; d < outer.size(); ++d) {
    if (outer[d].from == 1) columns = static_cast<int>(d);
  }
  return columns;
}

// Chooses how the innermost dimension is copied, and sets the dimensions. Returns the nanoseconds per element.
double ChooseShape(std::vector<Dim> dims, Isa isa, CopyArgs* c) {
  Dim inner = {1, 1, 1};
  if (!dims.empty()) {
    inner = dims.back();
    dims.pop_back();
  }
  c->n = inner.size;
  c->from_step = inner.from;
  c->to_step = inner.to;
  const int columns = ColumnsOf(dims, inner);
  double ns = 0;
  if (inner.to == 1 && inner.from <= 1 && inner.from >= 0) {
    c->shape = inner.from == 1 || inner.size == 1 ? CopyArgs::kLines : CopyArgs::kSplat;
  } else if (columns >= 0) {
    c->shape = CopyArgs::kTranspose;
    c->columns = dims[static_cast<size_t>(columns)].size;
    c->columns_step = dims[static_cast<size_t>(columns)].to;
    c->rows_step = inner.from;
    dims.erase(dims.begin() + columns);
    ns = c->bytes == 2 || isa == Isa::kPortable ? 0.1 : 0.05;
    if (c->n < (c->bytes == 1 ? 16 : 8)) ns = c->bytes < 4 ? 0.6 : 0.2;  // no whole blocks
    const int64_t together = std::max<int64_t>(1, kTransposeElements / c->n);
    if (c->n < kTransposeRows && c->columns >= 2 * together && c->columns % together == 0) {
      AddOuter(c, {c->columns / together, together, c->columns_step * together});
      c->columns = together;
    }
  } else {
    c->shape = CopyArgs::kStrided;
    ns = 0.7;
  }
  if (c->has_value) c->shape = inner.to == 1 ? CopyArgs::kSplat : CopyArgs::kStrided;
  for (const Dim& d : dims) AddOuter(c, d);
  return ns;
}

// Splits a long innermost loop, so that a single box can use several threads: into pieces of equal length, and a rest.
std::vector<CopyArgs> SplitLongLoop(const CopyArgs& c) {
  const bool transposes = c.shape == CopyArgs::kTranspose;
  const int64_t limit = transposes ? kTransposeRows : std::max<int64_t>(1, kLineBytes / c.bytes);
  if (c.n < 2 * limit || c.rank >= kMaxCopyDims) return {c};
  const int64_t pieces = c.n / limit;
  const int64_t from_piece = c.has_value ? 0 : (transposes ? c.rows_step : c.from_step) * limit,
                to_piece = c.to_step * limit;
  CopyArgs whole = c, rest = c;
  whole.n = limit;
  AddOuter(&whole, {pieces, from_piece, to_piece});
  rest.n = c.n - pieces * limit;
  if (rest.n == 0) return {whole};
  rest.from_offset += from_piece * c.bytes * pieces;
  rest.to_offset += to_piece * c.bytes * pieces;
  return {whole, rest};
}

}  // namespace

class MoveKernel : public Kernel {
 public:
  explicit MoveKernel(Moves moves) : moves_(std::move(moves)) {}
  uint32_t args_bytes() const override {
    return static_cast<uint32_t>(sizeof(MoveHeader) + moves_.copies_.size() * sizeof(CopyArgs));
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* h = new (args) MoveHeader;
    h->count = static_cast<int32_t>(moves_.copies_.size());
    for (int i = 0; i < 4; ++i) h->transpose[i] = Transpose(moves_.isa_).by_bytes[i];
    h->side_by_side = SideBySide();
    uint64_t units = 0;
    auto* c = reinterpret_cast<CopyArgs*>(h + 1);
    for (size_t i = 0; i < moves_.copies_.size(); ++i, ++c) {
      new (c) CopyArgs(moves_.copies_[i]);
      auto [input, output] = moves_.operands_[i];
      if (input >= 0) c->from = binding.input(input);
      c->to = binding.output(output);
      c->first_unit = units;
      units = h->side_by_side ? c->units : units + c->units;
    }
    h->chunks = SplitWork(units, units ? moves_.serial_us() / static_cast<double>(units) : 0);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  // MoveHeader::side_by_side: as many units as the first cache holds.
  uint64_t SideBySide() const {
    constexpr int64_t kBytes = 16 << 10;
    if (moves_.copies_.size() < 2) return 0;
    int64_t bytes = 0;
    for (const CopyArgs& c : moves_.copies_) {
      if (c.shape != CopyArgs::kLines || c.units != moves_.copies_[0].units) return 0;
      bytes += c.n * c.bytes;
    }
    return static_cast<uint64_t>(std::max<int64_t>(1, kBytes / bytes));
  }

  Moves moves_;
};

std::vector<int64_t> StridesIn(std::span<const int64_t> dims, bool channels_last) {
  int rank = static_cast<int>(dims.size());
  mge_layout last = channels_last ? ChannelsLast(rank) : PlainLayout();
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (int k = rank - 1; k >= 0; --k) {
    int axis = channels_last ? last.perm[k] : k;
    strides[static_cast<size_t>(axis)] = step;
    step *= dims[static_cast<size_t>(axis)];
  }
  return strides;
}

// Adding a copy: its dimensions are sorted by the target's strides and merged, so that few long loops remain. The innermost one
// decides the shape: lines, one value, steps, or a transposition of two dimensions. Long loops are split into units, which
// threads share.
bool Moves::Add(const Copy& copy, uint32_t bytes, Isa isa) {
  isa_ = isa;
  if (std::ranges::count(copy.dims, 0) > 0) return true;
  std::vector<Dim> dims = MergedDims(copy);
  if (dims.size() > kMaxCopyDims - 1) return false;
  double elements = 1;
  for (const Dim& d : dims) elements *= static_cast<double>(d.size);
  CopyArgs c;
  c.bytes = static_cast<uint8_t>(bytes);
  c.has_value = copy.input == kValue;
  c.value = copy.value;
  c.from_offset = copy.from_offset * c.bytes;
  c.to_offset = copy.to_offset * c.bytes;
  const double ns = ChooseShape(std::move(dims), isa, &c);
  for (const CopyArgs& part : SplitLongLoop(c)) {
    copies_.push_back(part);
    operands_.emplace_back(copy.input, copy.output);
    us_ += static_cast<double>(part.units) * 4e-3;
  }
  bytes_ += elements * static_cast<double>(bytes) * (c.has_value ? 1 : 2);
  us_ += elements * ns * 1e-3;
  return true;
}

double Moves::serial_us() const { return us_ + StreamUs(bytes_); }

KernelPtr Moves::MakeKernel() && { return std::make_unique<MoveKernel>(std::move(*this)); }

}  // namespace mge::cpu
