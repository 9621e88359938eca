// SPDX-License-Identifier: Apache-2.0
#include "core/cli/digest.h"

#include <cstdint>
#include <string_view>

#include "core/base/sha256.h"

namespace mge::cli {
namespace {

void AddNumber(uint64_t number, Sha256& hash) { hash.Update(&number, sizeof(number)); }

void AddText(std::string_view text, Sha256& hash) {
  AddNumber(text.size(), hash);
  hash.Update(text.data(), text.size());
}

Status Add(const Tensor& value, Sha256& hash) {
  AddNumber(static_cast<uint64_t>(value.kind()), hash);
  if (value.kind() != MGE_VALUE_TENSOR) {
    AddNumber(value.part_count(), hash);
    for (size_t i = 0; i < value.part_count(); ++i) {
      Tensor part;
      if (Status s = value.Part(i).MoveTo(part); !s.ok()) return s;
      if (Status s = Add(part, hash); !s.ok()) return s;
    }
    return Status();
  }
  AddNumber(static_cast<uint64_t>(value.dtype()), hash);
  AddNumber(value.dims().size(), hash);
  for (const int64_t d : value.dims()) AddNumber(static_cast<uint64_t>(d), hash);
  if (value.dtype() == MGE_DTYPE_STRING) {
    for (uint64_t i = 0; i < value.elements(); ++i) AddText(value.string(i), hash);
  } else {
    hash.Update(value.raw_data(), value.bytes());
  }
  return Status();
}

}  // namespace

Status DigestOf(const Session& session, const std::vector<Tensor>& outputs, std::string* out) {
  Sha256 hash;
  for (size_t i = 0; i < outputs.size(); ++i) {
    AddText(session.output(i).name(), hash);
    if (Status s = Add(outputs[i], hash); !s.ok()) return s;
  }
  *out = hash.Digest();
  return Status();
}

}  // namespace mge::cli
