// SPDX-License-Identifier: Apache-2.0
#include "core/generate/caches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/layer_names.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kFirstRows = 256;  // of a shared cache, which then doubles

absl::Status Unusable(const std::string& name, std::string what) {
  return Fail(errors::kUnsupportedFeature, fmt::format("the cache '{}' cannot be used", name), {.what = std::move(what)});
}

// Returns the window of the attention that reads the cache, if the cache holds only the latest tokens; else 0.
int64_t WindowOf(const Graph& graph, ValueId cache) {
  constexpr size_t kPastKey = 3, kPastValue = 4;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.node(n);
    if (node.dead || node.op != "GroupQueryAttention" || node.inputs.size() <= kPastValue) continue;
    if (node.inputs[kPastKey] != cache && node.inputs[kPastValue] != cache) continue;
    return node.attrs.Int("sliding_window_cache") != 0 ? node.attrs.Int("local_window_size") : 0;
  }
  return 0;
}

}  // namespace

Shape Caches::Cache::DimsOf(int64_t rows) const {
  Shape out = dims;
  if (rows_axis >= 0) out[static_cast<size_t>(rows_axis)] = rows;
  return out;
}

absl::StatusOr<Caches> Caches::Find(Session& session, const GenerationConfig& config, int64_t most) {
  Caches out;
  out.allocator_ = &session.device().host_allocator();
  out.shared_ = config.shared_cache && std::ranges::none_of(session.devices(), [](Device* d) { return HasQueues(*d); });
  out.most_ = most;
  const Graph& graph = session.graph();
  for (int i = 0; i < session.input_count(); ++i) {
    const Value& value = graph.value(graph.inputs()[static_cast<size_t>(i)]);
    for (const CacheNames& names : config.caches) {
      const std::string layer = LayerOf(value.name, names.past);
      if (layer.empty()) continue;
      MGE_ASSIGN_OR_RETURN(const int output, session.OutputIndex(WithLayer(names.present, layer)));
      Cache cache = {.name = value.name, .input = i, .output = output, .dtype = value.type.dtype, .dims = value.type.dims};
      const auto rank = static_cast<int>(cache.dims.size());
      if (!value.type.has_rank || rank < 3) return Unusable(value.name, "its rank must be at least 3");
      // [batch, heads, rows, size], or [2, batch, heads, rows, size] for keys and values in one.
      const int batch = rank == 5 ? 1 : 0;
      if (cache.dims[batch] == kUnknownDim) cache.dims[batch] = 1;
      if (rank >= 4 && cache.dims[rank - 2] == kUnknownDim) cache.rows_axis = rank - 2;
      if (cache.rows_axis >= 0 && cache.dims[batch + 1] == kUnknownDim) cache.dims[batch + 1] = config.kv_heads;
      if (cache.rows_axis >= 0 && cache.dims[rank - 1] == kUnknownDim) cache.dims[rank - 1] = config.head_size;
      const ValueId input = graph.inputs()[static_cast<size_t>(i)];
      if (const int64_t window = cache.rows_axis >= 0 ? WindowOf(graph, input) : 0; window > 0) {
        cache.dims[static_cast<size_t>(cache.rows_axis)] = window + config.window_slack;
        cache.rows_axis = -1;
      }
      if (!IsStatic(cache.DimsOf(0)) || cache.dims[batch] != 1) {
        return Unusable(value.name,
                        fmt::format("its shape is {}; one sequence with known sizes is needed", ShapeText(value.type.dims)));
      }
      MGE_ASSIGN_OR_RETURN(cache.value, out.Create(cache, 0));
      out.caches_.push_back(std::move(cache));
      break;
    }
  }
  if (!out.caches_.empty()) return out;
  return Fail(
      errors::kUnsupportedFeature, "the model has no caches of earlier tokens",
      {.what = fmt::format("no input has a name such as '{}'", WithLayer(config.caches.front().past, "0")),
       .fix = "export the model with past keys and values, or name them in model.decoder.inputs of genai_config.json"});
}

absl::StatusOr<Tensor> Caches::Create(const Cache& cache, int64_t rows) const {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(cache.dtype, cache.DimsOf(rows), *allocator_));
  if (out.bytes() > 0) std::memset(out.mutable_data(), 0, static_cast<size_t>(out.bytes()));
  return out;
}

absl::StatusOr<Tensor> Caches::Copy(const Cache& cache, int64_t kept, int64_t rows) const {
  MGE_ASSIGN_OR_RETURN(Tensor out, Create(cache, rows));
  const int64_t row = cache.dims.back() * ElementBytes(cache.dtype);
  const int64_t from_step = cache.value.shape()[static_cast<size_t>(cache.rows_axis)] * row, to_step = rows * row;
  const int64_t heads = to_step > 0 ? out.bytes() / to_step : 0;
  for (int64_t i = 0; i < heads && kept > 0; ++i) {
    std::memcpy(static_cast<char*>(out.mutable_data()) + i * to_step,
                static_cast<const char*>(cache.value.data()) + i * from_step, static_cast<size_t>(kept * row));
  }
  return out;
}

absl::Status Caches::Resize(int64_t length, int64_t rows) {
  std::vector<Tensor> values;
  for (const Cache& cache : caches_) {
    if (cache.rows_axis < 0) continue;
    MGE_ASSIGN_OR_RETURN(Tensor value, Copy(cache, length, rows));
    values.push_back(std::move(value));
  }
  size_t next = 0;
  for (Cache& cache : caches_) {
    if (cache.rows_axis >= 0) cache.value = std::move(values[next++]);
  }
  return absl::OkStatus();
}

absl::Status Caches::Reserve(int64_t length, int64_t tokens) {
  if (!shared_ || tokens <= capacity_) return absl::OkStatus();
  const int64_t wanted = std::min(most_, std::max({tokens, 2 * capacity_, kFirstRows}));
  for (const int64_t rows : {wanted, tokens}) {
    const absl::Status status = Resize(length, rows);
    if (status.ok()) {
      capacity_ = rows;
      return absl::OkStatus();
    }
    if (rows != tokens) continue;
    ErrorParts parts = PartsOf(status);
    parts.what = fmt::format("the caches of {} tokens need {} bytes; the present memory holds {} tokens. {}", tokens,
                             static_cast<uint64_t>(tokens) * bytes_per_token(), capacity_, parts.what);
    const bool budget = ErrorId(status) == errors::kOverBudget.id;
    return Fail(budget ? errors::kOverBudget : errors::kOutOfMemory, "there is no memory for more tokens", std::move(parts));
  }
  return absl::OkStatus();
}

HostValue Caches::InputOf(size_t i) const {
  HostValue out;
  out.tensor = caches_[i].value;
  return out;
}

HostValue Caches::OutputOf(size_t i) const { return shared_ && caches_[i].rows_axis >= 0 ? InputOf(i) : HostValue(); }

absl::Status Caches::Check(size_t i, const HostValue& output, int64_t tokens) const {
  const Cache& cache = caches_[i];
  const bool in_place = shared_ && cache.rows_axis >= 0;
  const Shape expected = in_place ? cache.value.shape() : cache.DimsOf(tokens);
  const Tensor& got = output.tensor;
  if (got.dtype() == cache.dtype && got.shape() == expected && (!in_place || got.data() == cache.value.data())) {
    return absl::OkStatus();
  }
  return Fail(errors::kUnsupportedFeature, fmt::format("the model does not continue the cache '{}'", cache.name),
              {.what = fmt::format("{}{} was expected after {} tokens, the model returned {}{}", DTypeName(cache.dtype),
                                   ShapeText(expected), tokens, DTypeName(got.dtype()), ShapeText(got.shape())),
               .fix = in_place ? "set search.past_present_share_buffer of genai_config.json to false"
                               : "export the model for one sequence of any length"});
}

absl::StatusOr<int64_t> Caches::Truncate(int64_t length, int64_t tokens) {
  const auto can_be_cut = [&](const Cache& c) { return c.rows_axis >= 0 && (shared_ || DeviceMemory::OnHost(c.value)); };
  if (tokens > 0 && std::ranges::all_of(caches_, can_be_cut)) {
    if (!shared_ && tokens < length) MGE_RETURN_IF_ERROR(Resize(tokens, tokens));
    return tokens;
  }
  for (Cache& cache : caches_) {
    if (shared_ && cache.rows_axis >= 0) continue;
    MGE_ASSIGN_OR_RETURN(cache.value, Create(cache, 0));
  }
  return int64_t{0};
}

uint64_t Caches::bytes_per_token() const {
  uint64_t sum = 0;
  for (const Cache& c : caches_) {
    if (c.rows_axis >= 0) sum += static_cast<uint64_t>(Elements(c.DimsOf(1)) * ElementBytes(c.dtype));
  }
  return sum;
}

uint64_t Caches::bytes() const {
  uint64_t sum = 0;
  for (const Cache& c : caches_) sum += static_cast<uint64_t>(c.value.bytes());
  return sum;
}

}  // namespace mge
