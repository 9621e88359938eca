// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and maps: their parts, and their creation from parts; tensors of strings as one block of bytes.
#include <algorithm>
#include <cstring>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

using mge::DType;
using mge::HostValue;
using mge::Shape;
using mge::Tensor;
using mge::ValueKind;
using mge::api::Misuse;

namespace {

bool IsMapKey(const Tensor& t) { return t.dtype() == DType::kI64 || t.dtype() == DType::kString; }

// Returns a sequence of tensors or of maps.
absl::StatusOr<HostValue> SequenceOf(mge_tensor* const* parts, size_t count) {
  HostValue out;
  out.kind = count > 0 && parts[0]->value.kind == ValueKind::kMap ? ValueKind::kMapSequence : ValueKind::kSequence;
  const ValueKind wanted = out.kind == ValueKind::kMapSequence ? ValueKind::kMap : ValueKind::kTensor;
  for (size_t i = 0; i < count; ++i) {
    const HostValue& part = parts[i]->value;
    if (part.kind != wanted) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("part {} of a sequence differs in kind from part 0", i),
                       {.fix = "give tensors only, or maps only"});
    }
    if (wanted == ValueKind::kMap) {
      out.sequence.insert(out.sequence.end(), part.sequence.begin(), part.sequence.end());
      continue;
    }
    if (part.tensor.dtype() != parts[0]->value.tensor.dtype()) {
      return mge::Fail(mge::errors::kApiMisuse,
                       fmt::format("part {} of a sequence is {}, and part 0 is {}", i, mge::DTypeName(part.tensor.dtype()),
                                   mge::DTypeName(parts[0]->value.tensor.dtype())),
                       {.fix = "give tensors of one element type"});
    }
    out.sequence.push_back(part.tensor);
  }
  return out;
}

absl::StatusOr<HostValue> OptionalOf(mge_tensor* const* parts, size_t count) {
  HostValue out;
  out.kind = ValueKind::kOptional;
  out.present = count > 0;
  if (count == 0) return out;
  const HostValue& part = parts[0]->value;
  if (count > 1 || (part.kind != ValueKind::kTensor && part.kind != ValueKind::kSequence)) {
    return mge::Fail(mge::errors::kApiMisuse, "an optional is made of no part, of a tensor, or of a sequence of tensors");
  }
  if (part.kind == ValueKind::kSequence) out.kind = ValueKind::kOptionalSequence;
  out.tensor = part.tensor;
  out.sequence = part.sequence;
  return out;
}

absl::StatusOr<HostValue> MapOf(mge_tensor* const* parts, size_t count) {
  constexpr std::string_view kFix =
      "give the keys, a vector of int64 or strings, and the values, a vector of the same length";
  if (count != 2) {
    return mge::Fail(mge::errors::kApiMisuse, fmt::format("a map is made of 2 parts, not of {}", count),
                     {.fix = std::string(kFix)});
  }
  HostValue out;
  out.kind = ValueKind::kMap;
  for (size_t i = 0; i < count; ++i) {
    const HostValue& part = parts[i]->value;
    const bool vector = part.kind == ValueKind::kTensor && part.tensor.rank() == 1;
    if (!vector || (i == 0 && !IsMapKey(part.tensor)) || part.tensor.elements() != parts[0]->value.tensor.elements()) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("the {} of a map do not fit", i == 0 ? "keys" : "values"),
                       {.fix = std::string(kFix)});
    }
    out.sequence.push_back(part.tensor);
  }
  return out;
}

absl::StatusOr<HostValue> ValueOf(int32_t kind, mge_tensor* const* parts, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!parts[i] || !parts[i]->life.alive()) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("part {} is NULL or was released", i));
    }
  }
  switch (kind) {
    case MGE_VALUE_SEQUENCE: return SequenceOf(parts, count);
    case MGE_VALUE_OPTIONAL: return OptionalOf(parts, count);
    case MGE_VALUE_MAP: return MapOf(parts, count);
    default:
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("the kind {} has no parts", kind),
                       {.fix = "use MGE_VALUE_SEQUENCE, MGE_VALUE_OPTIONAL or MGE_VALUE_MAP"});
  }
}

bool Equal(const Tensor& a, const Tensor& b) {
  if (a.data() == b.data() && a.shape() == b.shape() && a.dtype() == b.dtype()) return true;
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) {
    return std::equal(a.Data<std::string>().begin(), a.Data<std::string>().end(), b.Data<std::string>().begin());
  }
  return a.elements() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

// Returns the values of maps with the same keys, a row for each map.
absl::StatusOr<Tensor> RowsOf(const std::vector<Tensor>& sequence) {
  const Tensor& keys = sequence[0];
  const Tensor& first = sequence[1];
  const auto maps = static_cast<int64_t>(sequence.size() / 2);
  for (size_t i = 2; i < sequence.size(); i += 2) {
    if (Equal(sequence[i], keys) && sequence[i + 1].dtype() == first.dtype()) continue;
    return mge::Fail(mge::errors::kApiMisuse, fmt::format("map {} has other keys than map 0", i / 2),
                     {.fix = "read each map with mge_tensor_part"});
  }
  MGE_ASSIGN_OR_RETURN(Tensor rows, Tensor::Create(first.dtype(), {maps, keys.elements()}));
  for (size_t i = 0; i < static_cast<size_t>(maps); ++i) {
    const Tensor& row = sequence[2 * i + 1];
    if (row.dtype() == DType::kString) {
      std::copy(row.Data<std::string>().begin(), row.Data<std::string>().end(),
                rows.MutableData<std::string>().begin() + static_cast<int64_t>(i) * keys.elements());
    } else if (row.bytes() > 0) {
      std::memcpy(static_cast<std::byte*>(rows.mutable_data()) + static_cast<int64_t>(i) * row.bytes(), row.data(),
                  static_cast<size_t>(row.bytes()));
    }
  }
  return rows;
}

}  // namespace

absl::Status mge::api::TakeInput(const Session& session, size_t i, const HostValue& given, HostValue& out) {
  out = given;
  if (given.kind == ValueKind::kTensor) [[likely]]
    return absl::OkStatus();
  const Value& declared = session.graph().value(session.graph().inputs()[i]);
  if (given.kind == ValueKind::kSequence && given.sequence.empty() && declared.kind == ValueKind::kMapSequence) {
    out.kind = declared.kind;
  }
  if (given.kind == ValueKind::kOptional && !given.present && declared.kind == ValueKind::kOptionalSequence) {
    out.kind = declared.kind;
  }
  const DType got = given.sequence.empty() ? given.tensor.dtype() : given.sequence.back().dtype();
  if (out.kind != declared.kind || got == DType::kUndefined || declared.type.dtype == DType::kUndefined ||
      got == declared.type.dtype) {
    return absl::OkStatus();
  }
  return Fail(errors::kBadInput, fmt::format("input '{}' has elements of another type", declared.name),
              {.what = fmt::format("expected {}, got {}", DTypeName(declared.type.dtype), DTypeName(got))});
}

int32_t mge::api::PublicKind(ValueKind kind) {
  switch (kind) {
    case ValueKind::kTensor: return MGE_VALUE_TENSOR;
    case ValueKind::kSequence:
    case ValueKind::kMapSequence: return MGE_VALUE_SEQUENCE;
    case ValueKind::kMap: return MGE_VALUE_MAP;
    case ValueKind::kOptional:
    case ValueKind::kOptionalSequence: break;
  }
  return MGE_VALUE_OPTIONAL;
}

int32_t mge_tensor_kind(const mge_tensor* value) { return mge::api::PublicKind(value->value.kind); }

size_t mge_tensor_part_count(const mge_tensor* value) {
  const HostValue& v = value->value;
  switch (v.kind) {
    case ValueKind::kTensor: return 0;
    case ValueKind::kSequence:
    case ValueKind::kMap: return v.sequence.size();
    case ValueKind::kMapSequence: return v.sequence.size() / 2;
    case ValueKind::kOptional:
    case ValueKind::kOptionalSequence: return v.present ? 1 : 0;
  }
  return 0;
}

mge_status* mge_tensor_part(const mge_tensor* value, size_t index, mge_tensor** out) try {
  MGE_API_NEEDS({"value", value}, {"out", out});
  if (index >= mge_tensor_part_count(value)) return Misuse("mge_tensor_part", "the value has no such part");
  const HostValue& v = value->value;
  auto part = std::make_unique<mge_tensor>();
  part->read_only = value->read_only;
  if (v.kind == ValueKind::kSequence || v.kind == ValueKind::kMap) {
    part->value.tensor = v.sequence[index];
  } else if (v.kind == ValueKind::kMapSequence) {
    part->value.kind = ValueKind::kMap;
    part->value.sequence = {v.sequence[2 * index], v.sequence[2 * index + 1]};
  } else if (v.kind == ValueKind::kOptionalSequence) {
    part->value.kind = ValueKind::kSequence;
    part->value.sequence = v.sequence;
  } else {
    part->value.tensor = v.tensor;
  }
  *out = part.release();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_value_create(int32_t kind, mge_tensor* const* parts, size_t count, mge_tensor** out) try {
  MGE_API_NEEDS({"parts", count == 0 || parts != nullptr}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(HostValue value, ValueOf(kind, parts, count));
  const bool read_only = std::any_of(parts, parts + count, [](const mge_tensor* part) { return part->read_only; });
  *out = new mge_tensor{.value = std::move(value), .read_only = read_only};
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_value_table(const mge_tensor* value, mge_tensor** keys, mge_tensor** values) try {
  MGE_API_NEEDS({"value", value}, {"keys", keys}, {"values", values});
  const HostValue& v = value->value;
  if (v.kind != ValueKind::kMapSequence || v.sequence.empty()) {
    return Misuse("mge_value_table", "the value is not a sequence of maps, or it is empty");
  }
  MGE_API_ASSIGN_OR_RETURN(Tensor rows, RowsOf(v.sequence));
  auto first = std::unique_ptr<mge_tensor>(mge::api::NewTensor(v.sequence[0]));
  *values = mge::api::NewTensor(std::move(rows));
  *keys = first.release();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_create_strings(const int64_t* dims, size_t rank, const char* bytes, const uint64_t* ends,
                                      mge_tensor** out) try {
  MGE_API_NEEDS({"out", out}, {"dims", rank == 0 || dims != nullptr});
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(DType::kString, Shape(dims, dims + rank)));
  const std::span<std::string> strings = tensor.MutableData<std::string>();
  MGE_API_NEEDS({"ends", strings.empty() || ends != nullptr});
  uint64_t begin = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (ends[i] < begin || (ends[i] > begin && !bytes)) {
      return Misuse("mge_tensor_create_strings", fmt::format("string {} ends before it begins, or has no bytes", i));
    }
    if (ends[i] > begin) strings[i].assign(bytes + begin, ends[i] - begin);
    begin = ends[i];
  }
  *out = mge::api::NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_read_strings(const mge_tensor* tensor, uint64_t* ends, char* bytes, uint64_t capacity) try {
  MGE_API_NEEDS({"tensor", tensor});
  if (tensor->value.kind != ValueKind::kTensor || tensor->value.tensor.dtype() != DType::kString) {
    return Misuse("mge_tensor_read_strings", "the value is not a tensor of strings");
  }
  const std::span<const std::string> strings = tensor->value.tensor.Data<std::string>();
  MGE_API_NEEDS({"ends", strings.empty() || ends != nullptr});
  uint64_t end = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (bytes && strings[i].size() > capacity - end) {
      return Misuse("mge_tensor_read_strings", fmt::format("the capacity of {} bytes ends in string {}", capacity, i));
    }
    if (bytes) std::copy(strings[i].begin(), strings[i].end(), bytes + end);
    ends[i] = end += strings[i].size();
  }
  return nullptr;
}
MGE_API_CATCH
