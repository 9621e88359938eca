// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/batch_division.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::string FirstSymbol(const TensorType& type) { return type.symbols.empty() ? "" : type.symbols.front(); }

// Returns whether the sizes of the replicas' values show the batch as first dimension: they have the same number of rows per
// example.
bool HaveBatch(std::span<const HostValue* const> values, std::span<const BatchPart> parts) {
  const Shape& first = values[0]->tensor.shape();
  if (first.empty() || first[0] % parts[0].size != 0) return false;
  for (size_t r = 1; r < values.size(); ++r) {
    const Shape& shape = values[r]->tensor.shape();
    if (shape.size() != first.size() || shape[0] != first[0] / parts[0].size * parts[r].size) return false;
    if (!std::equal(shape.begin() + 1, shape.end(), first.begin() + 1)) return false;
  }
  return true;
}

}  // namespace

BatchDivision::BatchDivision(const Graph& graph, std::span<const ValueType> outputs, bool loss_first, size_t replicas)
    : replicas_(static_cast<int64_t>(replicas)) {
  bool found = false;
  for (ValueId v : graph.inputs()) {
    const Value& value = graph.value(v);
    names_.push_back(value.name);
    const bool has_first = value.kind == ValueKind::kTensor && (!value.type.has_rank || !value.type.dims.empty());
    if (found || !has_first) continue;
    found = true;
    if (!value.type.has_rank) continue;
    fixed_ = value.type.dims[0];
    symbol_ = FirstSymbol(value.type);
  }
  auto divided = [&](const ValueType& v) {
    if (v.kind != ValueKind::kTensor || (v.type.has_rank && v.type.dims.empty())) return Divided::kNo;
    if (!v.type.has_rank) return Divided::kMaybe;
    if (v.type.dims[0] != kUnknownDim) return v.type.dims[0] == fixed_ ? Divided::kYes : Divided::kNo;
    if (fixed_ != kUnknownDim) return Divided::kMaybe;
    const std::string symbol = FirstSymbol(v.type);
    if (symbol.empty() || symbol_.empty()) return Divided::kMaybe;
    return symbol == symbol_ ? Divided::kYes : Divided::kMaybe;
  };
  for (ValueId v : graph.inputs()) inputs_.push_back(divided({graph.value(v).type, graph.value(v).kind}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_loss = loss_first && graph.outputs()[i] == graph.outputs()[0];  // the same on all replicas
    outputs_.push_back(is_loss ? Divided::kNo : divided(outputs[i]));
  }
}

bool BatchDivision::IsDivided(size_t i, const InputType& input) const {
  return inputs_[i] != Divided::kNo && input.kind == ValueKind::kTensor && !input.shape.empty();
}

absl::StatusOr<std::vector<BatchPart>> BatchDivision::Divide(std::span<const InputType> inputs) const {
  int64_t examples = -1;
  std::string counted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsDivided(i, inputs[i])) continue;
    if (examples < 0) {
      examples = inputs[i].shape[0];
      counted = names_[i];
    }
    if (inputs[i].shape[0] == examples) continue;
    return Fail(errors::kBadInput,
                fmt::format("input '{}' has {} examples, and '{}' has {}", names_[i], inputs[i].shape[0], counted, examples),
                {.fix = "give all inputs as many examples"});
  }
  if (examples < 1) return Fail(errors::kBadInput, "the batch has no examples that replicas could share");
  if (fixed_ != kUnknownDim && examples != fixed_ * replicas_) {
    return Fail(errors::kBadInput, fmt::format("input '{}' has {} examples", counted, examples),
                {.what = fmt::format("the model has a fixed batch of {}, so {} replicas need {}", fixed_, replicas_,
                                     fixed_ * replicas_),
                 .fix = "give so many examples, or export the model with a variable batch"});
  }
  return Parts(examples, replicas_);
}

std::vector<BatchPart> BatchDivision::Parts(int64_t examples, int64_t replicas) {
  std::vector<BatchPart> parts(static_cast<size_t>(replicas));
  int64_t begin = 0;
  for (int64_t r = 0; r < replicas; ++r) {
    const int64_t size = examples / replicas + (r < examples % replicas);
    parts[static_cast<size_t>(r)] = size > 0 ? BatchPart{begin, size, size} : BatchPart{0, 1, 0};
    begin += size;
  }
  return parts;
}

HostValue BatchDivision::PartOf(size_t i, const HostValue& input, const BatchPart& part) const {
  const Tensor& whole = input.tensor;
  if (!IsDivided(i, TypeOfValue(input))) return input;
  HostValue out;
  Shape shape = whole.shape();
  const int64_t row = shape[0] > 0 ? whole.bytes() / shape[0] : 0;
  shape[0] = part.size;
  out.tensor = whole.Within(whole.dtype(), std::move(shape), static_cast<const char*>(whole.data()) + part.begin * row);
  return out;
}

InputType BatchDivision::PartOf(size_t i, const InputType& input, const BatchPart& part) const {
  InputType out = input;
  if (IsDivided(i, input)) out.shape[0] = part.size;
  return out;
}

absl::StatusOr<HostValue> BatchDivision::Join(size_t i, std::span<const HostValue* const> values,
                                              std::span<const BatchPart> parts, HostAllocator& allocator) const {
  size_t used = parts.size();
  while (used > 1 && parts[used - 1].counts == 0) --used;
  const HostValue& first = *values[0];
  const bool plain = first.kind == ValueKind::kTensor && first.tensor.dtype() != DType::kString;
  if (used == 1 || outputs_[i] == Divided::kNo || !plain) return first;
  if (!HaveBatch(values.first(used), parts.first(used))) return first;
  Shape shape = first.tensor.shape();
  for (size_t r = 1; r < used; ++r) shape[0] += values[r]->tensor.shape()[0];
  HostValue out;
  MGE_ASSIGN_OR_RETURN(out.tensor, Tensor::Create(first.tensor.dtype(), std::move(shape), allocator));
  auto* to = static_cast<char*>(out.tensor.mutable_data());
  for (const HostValue* value : values.first(used)) {
    const Tensor& from = value->tensor;
    if (from.bytes() > 0) std::memcpy(to, from.data(), static_cast<size_t>(from.bytes()));
    to += from.bytes();
  }
  return out;
}

}  // namespace mge
