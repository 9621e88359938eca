// SPDX-License-Identifier: Apache-2.0
// Runs of one token of each of several sequences.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/decoder.h"
#include "core/generate/logits.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns a tensor of integers, whose row `b` is what `fill(b, row)` writes into zeros.
template <typename Fill>
absl::StatusOr<Tensor> IntegerRows(DType dtype, int64_t rows, int64_t columns, const Fill& fill) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, {rows, columns}));
  std::vector<int64_t> row;
  const auto copy = [&]<typename T>(std::span<T> data) {
    for (int64_t b = 0; b < rows; ++b) {
      row.assign(static_cast<size_t>(columns), 0);
      fill(static_cast<size_t>(b), row);
      std::ranges::transform(row, data.begin() + b * columns, [](int64_t x) { return static_cast<T>(x); });
    }
  };
  dtype == DType::kI64 ? copy(out.MutableData<int64_t>()) : copy(out.MutableData<int32_t>());
  return out;
}

}  // namespace

std::string Decoder::ReasonAgainstRows() const {
  if (std::ranges::any_of(session_->devices(), [](Device* d) { return HasQueues(*d); }))
    return "its caches are on a device with queues";
  const Graph& graph = session_->graph();
  bool masks = false, positions = false, rows = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    const Content content = inputs_[i].content;
    if (content == Content::kSource) return "each sequence has a source of its own";
    masks |= content == Content::kMask;
    positions |= content == Content::kPositions;
    rows |= content == Content::kCache && value.type.dims.size() >= 4;
    if (content == Content::kPastLength || content == Content::kTotalLength) {
      return fmt::format("all sequences share the length in the input '{}'", value.name);
    }
    const size_t axis = content == Content::kCache && value.type.dims.size() == 5 ? 1 : 0;
    if (value.type.dims[axis] != kUnknownDim) return fmt::format("the input '{}' is for one sequence", value.name);
  }
  constexpr size_t kSinks = 11;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.node(n);
    if (node.dead || node.op != "GroupQueryAttention") continue;
    if (node.attrs.Int("sliding_window_cache") != 0) return "a cache holds only the latest tokens";
    if (node.inputs.size() > kSinks && node.inputs[kSinks] != kNone) return "its attention has sinks";
  }
  if (rows && !masks) return "it has no mask of tokens";
  if (rows && !aligns_left_ && !positions) return "it has no positions";
  return "";
}

absl::StatusOr<HostValue> Decoder::RowsFor(const Input& input, std::span<const int64_t> ids,
                                           const JoinedCaches& joined) const {
  if (input.content == Content::kCache) return joined.InputOf(input.cache);
  const std::span<const int64_t> lengths = joined.lengths();
  const bool mask = input.content == Content::kMask;
  const int64_t columns = !mask ? 1 : aligns_left_ ? joined.longest() + 1 : joined.rows() + 1;
  const auto fill = [&](size_t b, std::vector<int64_t>& row) {
    if (!mask) {
      row[0] = input.content == Content::kPositions ? lengths[b] : ids[b];
    } else if (aligns_left_) {
      std::fill_n(row.begin(), lengths[b] + 1, 1);
    } else {
      std::fill_n(row.rbegin(), lengths[b] + 1, 1);
    }
  };
  HostValue out;
  MGE_ASSIGN_OR_RETURN(out.tensor, IntegerRows(input.dtype, static_cast<int64_t>(ids.size()), columns, fill));
  return out;
}

absl::Status Decoder::RunRows(std::span<const int64_t> ids, JoinedCaches& joined, std::vector<std::vector<float>>* logits,
                              RunControl* control) const {
  MGE_RETURN_IF_ERROR(joined.Reserve());
  std::vector<HostValue> inputs, outputs;
  for (const Input& input : inputs_) {
    MGE_ASSIGN_OR_RETURN(HostValue value, RowsFor(input, ids, joined));
    inputs.push_back(std::move(value));
  }
  for (const size_t cache : all_.caches) outputs.push_back(cache == kLogits ? HostValue() : joined.OutputOf(cache));
  RunState state(control);
  MGE_RETURN_IF_ERROR(
      Explained(session_->Submit({.inputs = inputs, .outputs = outputs, .places = all_.places}, state).status(),
                joined.longest() + 1));
  std::vector<Tensor> caches(caches_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (all_.caches[i] == kLogits) {
      MGE_RETURN_IF_ERROR(ReadLogitsOfRows(outputs[i].tensor, ids.size(), *logits));
    } else {
      MGE_RETURN_IF_ERROR(joined.Check(all_.caches[i], outputs[i]));
      caches[all_.caches[i]] = std::move(outputs[i].tensor);
    }
  }
  joined.Keep(std::move(caches));
  return absl::OkStatus();
}

}  // namespace mge
