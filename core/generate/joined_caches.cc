// SPDX-License-Identifier: Apache-2.0
#include "core/generate/joined_caches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kRoom = 64;  // free rows of shared caches, at least

size_t BatchAxis(const Shape& dims) { return dims.size() == 5 ? 1 : 0; }

// The rows of one sequence in a tensor: [outer, sequences, heads, rows, row], where a state has one head with one row.
struct Place {
  char* data;
  int64_t sequence, sequences, rows, first;
};

// Copies `count` rows of a sequence.
void CopyRows(const Place& from, const Place& to, int64_t outer, int64_t heads, int64_t count, int64_t row_bytes) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t h = 0; h < heads; ++h) {
      const auto at = [&](const Place& p) {
        return p.data + (((o * p.sequences + p.sequence) * heads + h) * p.rows + p.first) * row_bytes;
      };
      std::memcpy(at(to), at(from), static_cast<size_t>(count * row_bytes));
    }
  }
}

char* BytesOf(const Tensor& tensor) { return const_cast<char*>(static_cast<const char*>(tensor.data())); }

}  // namespace

JoinedCaches::JoinedCaches(const Caches& like, bool aligns_left)
    : caches_(like.caches_), allocator_(like.allocator_), shared_(like.shared_ && aligns_left), aligns_left_(aligns_left) {
  for (Cache& cache : caches_) cache.value = Tensor();
}

int64_t JoinedCaches::longest() const { return lengths_.empty() ? 0 : *std::ranges::max_element(lengths_); }

int64_t JoinedCaches::NextRows() const {
  if (shared_) return rows_;
  return aligns_left_ ? std::max(rows_, longest() + 1) : rows_ + 1;
}

Shape JoinedCaches::DimsOf(const Cache& cache, int64_t sequences, int64_t rows) const {
  Shape dims = cache.DimsOf(rows);
  dims[BatchAxis(dims)] = sequences;
  return dims;
}

absl::Status JoinedCaches::Rebuild(std::span<const Source> sources, int64_t room) {
  std::vector<int64_t> lengths;
  for (const Source& s : sources) lengths.push_back(s.own ? s.length : lengths_[static_cast<size_t>(s.present)]);
  const int64_t rows = (lengths.empty() ? 0 : *std::ranges::max_element(lengths)) + room;
  const auto count = static_cast<int64_t>(sources.size());
  std::vector<Tensor> values;
  for (size_t i = 0; i < caches_.size(); ++i) {
    const Cache& cache = caches_[i];
    const bool state = cache.rows_axis < 0;
    MGE_ASSIGN_OR_RETURN(Tensor value, Tensor::Create(cache.dtype, DimsOf(cache, count, rows), *allocator_));
    if (value.bytes() > 0) std::memset(value.mutable_data(), 0, static_cast<size_t>(value.bytes()));
    const Shape one = cache.DimsOf(1);
    const int64_t outer = BatchAxis(one) == 1 ? one[0] : 1;
    const int64_t all = Elements(one) * ElementBytes(cache.dtype) / outer;  // bytes of a row of all heads, or of a state
    const int64_t row_bytes = state ? all : one.back() * ElementBytes(cache.dtype);
    const int64_t heads = row_bytes > 0 ? all / row_bytes : 0;
    for (size_t b = 0; b < sources.size(); ++b) {
      const Source& s = sources[b];
      const Tensor& from = s.own ? s.own->caches_[i].value : cache.value;
      const int64_t length = state ? 1 : lengths[b];
      const int64_t from_rows = state ? 1 : from.shape()[static_cast<size_t>(cache.rows_axis)];
      const Place source = {BytesOf(from), s.own ? 0 : s.present, s.own ? 1 : static_cast<int64_t>(lengths_.size()),
                            from_rows, state || s.own || aligns_left_ ? 0 : from_rows - length};
      const Place target = {BytesOf(value), static_cast<int64_t>(b), count, state ? 1 : rows,
                            state || aligns_left_ ? 0 : rows - length};
      CopyRows(source, target, outer, heads, length, row_bytes);
    }
    values.push_back(std::move(value));
  }
  for (size_t i = 0; i < caches_.size(); ++i) caches_[i].value = std::move(values[i]);
  lengths_ = std::move(lengths);
  rows_ = rows;
  return absl::OkStatus();
}

absl::Status JoinedCaches::Join(std::span<const Source> sources) { return Rebuild(sources, shared_ ? kRoom : 0); }

absl::Status JoinedCaches::Reserve() {
  if (!shared_ || longest() < rows_) return absl::OkStatus();
  std::vector<Source> all(lengths_.size());
  for (size_t b = 0; b < all.size(); ++b) all[b].present = static_cast<int>(b);
  return Rebuild(all, std::max(kRoom, rows_));
}

HostValue JoinedCaches::InputOf(size_t i) const {
  HostValue out;
  out.tensor = caches_[i].value;
  return out;
}

HostValue JoinedCaches::OutputOf(size_t i) const { return InPlace(caches_[i]) ? InputOf(i) : HostValue(); }

absl::Status JoinedCaches::Check(size_t i, const HostValue& output) const {
  const Cache& cache = caches_[i];
  const Shape expected = DimsOf(cache, static_cast<int64_t>(lengths_.size()), NextRows());
  const Tensor& got = output.tensor;
  if (got.dtype() == cache.dtype && got.shape() == expected && (!InPlace(cache) || got.data() == cache.value.data())) {
    return absl::OkStatus();
  }
  return Fail(errors::kUnsupportedFeature,
              fmt::format("the model does not continue the cache '{}' of several sequences", cache.name),
              {.what = fmt::format("{}{} was expected, the model returned {}{}", DTypeName(cache.dtype), ShapeText(expected),
                                   DTypeName(got.dtype()), ShapeText(got.shape())),
               .fix = "create a generator for each sequence"});
}

void JoinedCaches::Keep(std::vector<Tensor> outputs) {
  rows_ = NextRows();
  for (size_t i = 0; i < caches_.size(); ++i) caches_[i].value = std::move(outputs[i]);
  for (int64_t& length : lengths_) ++length;
}

}  // namespace mge
